"""The composition root: makes every part, in order, and ends them in reverse."""

import asyncio
import logging
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

import grpc

from cardkeeper.clock import Clock, SystemClock
from cardkeeper.drift.overlay import load_overlay
from cardkeeper.drift.pattern import load_patterns
from cardkeeper.fetch.base import Fetcher
from cardkeeper.fetch.fetcher import HttpFetcher
from cardkeeper.fleet.budget import Budget
from cardkeeper.fleet.fanout import Fanout
from cardkeeper.fleet.investigation import Investigator
from cardkeeper.fleet.judge import Judge
from cardkeeper.fleet.keeper import Keeper
from cardkeeper.fleet.refetch import Refetcher
from cardkeeper.fleet.registry import Registry
from cardkeeper.fleet.revision_log import RevisionLog
from cardkeeper.fleet.schedule import RefreshSchedule
from cardkeeper.fleet.statistics import Statistics
from cardkeeper.fleet.task_scope import TaskScope
from cardkeeper.rpc.authorization import Authorization
from cardkeeper.rpc.discovery import Discovery
from cardkeeper.rpc.fleet import Fleet
from cardkeeper.rpc.frames import Frames
from cardkeeper.rpc.rules import Rules
from cardkeeper.rpc.server import Server
from cardkeeper.rpc.watch import WatchEndpoint, WatchStream
from cardkeeper.settings import Settings
from cardkeeper.store.base import Store
from cardkeeper.store.memory import MemoryStore
from cardkeeper.store.sqlite import SqliteStore

log = logging.getLogger(__name__)


class Application:
    """One running service: `async with Application(settings) as app`.

    `port` is where it listens. The parts that a test may want to look at are attributes.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock | None = None,
        store: Store | None = None,
        fetcher: Fetcher | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        self.store = store or _store(settings)
        self.fetcher = fetcher or HttpFetcher(settings.egress)
        self.statistics = Statistics()
        self.port = 0
        self._stack = AsyncExitStack()
        self._scope = TaskScope()
        self.registry = Registry(self.store, RevisionLog(Fanout()), self.clock, settings.fleet, self._scope)
        refetcher = Refetcher(self.registry, self.fetcher, self.clock, settings.fleet, self._scope, self.statistics)
        fleet = settings.fleet
        requested = Budget(self.clock, burst=fleet.agent_refetch_burst, interval=fleet.agent_refetch_interval)
        self.keeper = Keeper(self.registry, refetcher, self.clock, fleet, requested)
        investigator = Investigator(self.registry, refetcher, self.clock, fleet, self.statistics)
        patterns = load_patterns(settings.patterns.read_text("utf-8") if settings.patterns else None)
        overlay = load_overlay(settings.output_schemas.read_text("utf-8") if settings.output_schemas else None)
        self.judge = Judge(
            self.registry, investigator, self.clock, patterns, settings.artifact_policy, overlay, self.statistics
        )
        self._schedule = RefreshSchedule(self.registry, refetcher, self.clock, fleet, self._scope)
        rules = Rules()
        self.frames = Frames(self.registry, self.clock)
        self.watch = WatchEndpoint(
            lambda context: WatchStream(self.registry, self.frames, rules, self.clock, settings.streams, context),
            settings.streams,
        )
        self.server = Server(
            Discovery(self.registry, self.keeper, self.judge, self.clock),
            Fleet(self.registry, self.keeper, self.clock, self.statistics),
            self.watch,
            rules,
            Authorization(settings.admin_token),
            self.statistics,
        )

    async def __aenter__(self) -> Self:
        """Open the store, listen, and start the background work. Raises StoreUnavailable, OSError."""
        try:
            self._stack.push_async_callback(self.store.close)
            self._stack.push_async_callback(self.fetcher.close)
            await self.registry.open()
            self._stack.push_async_callback(self._scope.close)
            self._scope.start(self._schedule.run(), "refresh schedule")
            self._scope.start(self.watch.pulse_for_ever(), "stream pulse")
            self.port = await self.server.start(self.settings.listen, _credentials(self.settings))
            self._stack.push_async_callback(self.server.drain, self.settings.drain_timeout)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drain and close, whatever happened."""
        await asyncio.shield(self._stack.aclose())


def _store(settings: Settings) -> Store:
    return MemoryStore(settings.history) if settings.data is None else SqliteStore(settings.data, settings.history)


def _credentials(settings: Settings) -> grpc.ServerCredentials | None:
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    pair = (settings.tls_key.read_bytes(), settings.tls_certificate.read_bytes())
    return grpc.ssl_server_credentials([pair])
