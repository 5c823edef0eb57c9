"""One client of the raw contract: subscribes, reads at its own pace, resolves, reconnects; and notes everything."""

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import grpc

from cardkeeper_client.v1 import agent_ref_pb2, resolution_pb2, revision_pb2
from cardkeeper_client.v1.discovery_service_pb2 import ResolveSkillRequest
from robustness.card_site import SKILLS, TAGS
from robustness.frame_steps import ack_request, agent_id, point, step_of, subscribe_request, unsubscribe_request
from robustness.mirror import Mirror
from trace_history import Point
from trace_record import (
    Bookmarked,
    Closed,
    Ending,
    Filter,
    Forgot,
    Holds,
    Invalidated,
    Opened,
    Resolved,
    Resynced,
    Step,
    Subscribed,
    Synced,
    Unsubscribed,
)

if TYPE_CHECKING:
    from cardkeeper_client.v1.discovery_service_pb2_grpc import DiscoveryServiceAsyncStub

PATIENCE = 40.0
"""Seconds without a Synced on an open stream that the client reads, after which it gives up."""
FORBIDDEN = frozenset({grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DATA_LOSS})
"""Codes that no fault excuses."""


class Watcher:
    """Streams, one after the other, until it is told to finish. Every choice comes from `chance`."""

    def __init__(
        self,
        stub: "DiscoveryServiceAsyncStub",
        agents: Sequence[str],
        chance: random.Random,
        note: Callable[[Step], None],
        complain: Callable[[str], None],
    ) -> None:
        self._stub = stub
        self._agents = agents
        self._chance = chance
        self._note = note
        self._complain = complain
        self._mirror = Mirror()
        self._filters = self._some_filters()
        self._listed: dict[str, str] = {}
        self._reached: Point | None = None
        """Everything up to here is known to all subscriptions."""
        self._waiting: dict[int, int] = {}
        """Subscribes that have no Synced yet, by id."""
        self._generation = 0
        """Moves whenever what was asked before is not kept any more."""
        self._in_sync = asyncio.Event()
        self._readable = asyncio.Event()
        self._last: Point | None = None

    async def run(self, finishing: asyncio.Event) -> None:
        """Watch until told to finish; then come in sync once more and go."""
        while not finishing.is_set():
            await self._session(finishing)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._chance.choice((0.0, 0.2, 1.0, 4.0)) * self._chance.random()):
                    await finishing.wait()
        for _ in range(60):
            if await self._last_session():
                return
            await asyncio.sleep(0.5)
        self._complain("could not come in sync at the end")

    async def _session(self, finishing: asyncio.Event) -> None:
        call, reader = await self._connect()
        lasting = asyncio.get_running_loop().time() + self._chance.choice((0.3, 2.0, 8.0, 15.0)) * self._chance.random()
        never_reads = self._chance.random() < 0.08
        if never_reads:
            self._readable.clear()
        try:
            while not reader.done() and not finishing.is_set() and asyncio.get_running_loop().time() < lasting:
                await asyncio.wait((reader,), timeout=self._chance.random() * 0.3)
                if not never_reads:
                    await self._do_something(call)
        finally:
            await self._disconnect(call, reader)

    async def _last_session(self) -> bool:
        call, reader = await self._connect()
        try:
            waiting = asyncio.create_task(self._in_sync.wait())
            await asyncio.wait((reader, waiting), timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            return self._in_sync.is_set()
        finally:
            await self._disconnect(call, reader, patient=self._in_sync.is_set() or reader.done())

    async def _connect(self) -> "tuple[Any, asyncio.Task[None]]":
        self._note(Opened())
        self._generation += 1
        self._waiting.clear()
        self._in_sync.clear()
        self._readable.set()
        self._last = None
        call = self._stub.WatchInvalidations()
        self._listed = self._mirror.fingerprints
        with suppress(grpc.RpcError, asyncio.InvalidStateError):
            for item in self._filters:
                await self._subscribe(call, item, self._reached, self._listed)
        return call, asyncio.create_task(self._read(call))

    async def _disconnect(self, call: Any, reader: "asyncio.Task[None]", *, patient: bool = True) -> None:
        ended_by_server = reader.done()
        call.cancel()
        self._readable.set()
        await asyncio.wait((reader,))
        if not reader.cancelled():
            reader.result()
        self._note(Closed(Ending.SERVER if ended_by_server else Ending.CLIENT if patient else Ending.IMPATIENT))
        self._generation += 1
        # "from Core" is the client's own runtime, which could not even begin the call.
        if ended_by_server and await call.code() in FORBIDDEN and await call.details() != "Internal error from Core":
            self._complain(f"a stream ended with {await call.code()}: {await call.details()}")

    async def _subscribe(self, call: Any, item: Filter, resume_from: Point | None, held: dict[str, str]) -> None:
        step = Subscribed(filter=item, resume_from=resume_from, held=held)
        self._note(step)
        self._waiting[item.id] = self._waiting.get(item.id, 0) + 1
        self._in_sync.clear()
        await call.write(subscribe_request(step))

    async def _read(self, call: Any) -> None:
        lazy = self._chance.choice((0.0, 0.0, 0.0, 0.02, 0.3))
        with suppress(grpc.RpcError, asyncio.CancelledError):
            while True:
                await self._readable.wait()
                frame = await call.read()
                if frame is grpc.aio.EOF:
                    return
                step = step_of(frame)
                if step is not None:
                    self._apply(step)
                if lazy:
                    await asyncio.sleep(lazy * self._chance.random())

    def _apply(self, step: Any) -> None:
        self._note(step)
        self._last = step.at
        match step:
            case Invalidated():
                self._mirror.invalidated(step)
            case Resynced():
                self._mirror.resynced(self._listed, step)
            case Synced():
                self._mirror.synced(step)
                left = self._waiting.get(step.id, 0) - 1
                if left > 0:
                    self._waiting[step.id] = left
                else:
                    self._waiting.pop(step.id, None)
                if not self._waiting:
                    self._in_sync.set()
        # Before all are in sync, a frame of one subscription says nothing about what another has missed.
        if self._in_sync.is_set():
            self._reached = step.at
            if isinstance(step, Synced | Bookmarked):
                self._note(Holds(self._mirror.fingerprints))

    async def _do_something(self, call: Any) -> None:
        with suppress(grpc.RpcError, asyncio.InvalidStateError):
            dice = self._chance.random()
            if dice < 0.5:
                await self._resolve()
            elif dice < 0.6 and self._last is not None:
                await call.write(ack_request(self._last))
            elif dice < 0.7 and self._in_sync.is_set():
                await self._ask_anew(call)

    async def _ask_anew(self, call: Any) -> None:
        """Change what is asked for on the live stream. What is held was held under other terms: it goes."""
        self._generation += 1
        self._mirror.forget()
        self._note(Forgot())
        before, self._filters = self._filters, self._some_filters()
        self._reached = None
        for item in self._filters:
            await self._subscribe(call, item, None, {})
        for item in before:
            if item.id not in {kept.id for kept in self._filters}:
                self._note(Unsubscribed(item.id))
                await call.write(unsubscribe_request(item))

    async def _resolve(self) -> None:
        generation = self._generation if self._in_sync.is_set() else -1
        agent = self._chance.choice(self._agents)
        name = self._chance.choice((f"agents/agent-{self._agents.index(agent)}", ""))
        floor = self._mirror.told(agent_id(name), self._last.epoch) if name and self._last is not None else None
        ref = agent_ref_pb2.AgentRef(name=name) if name else agent_ref_pb2.AgentRef(agent_url=agent)
        request = ResolveSkillRequest(
            agent=ref,
            need=resolution_pb2.SkillNeed(skill_id="base"),
            consistency=self._chance.choice((None, None, revision_pb2.Consistency(refetch=revision_pb2.Refetch()))),
        )
        try:
            found = (await self._stub.ResolveSkill(request, timeout=5.0)).resolution
        except grpc.aio.AioRpcError as error:
            if error.code() in FORBIDDEN:
                self._complain(f"ResolveSkill ended with {error.code()}: {error.details()}")
            return
        if name and found.agent != name:
            self._complain(f"ResolveSkill of {name} answers for {found.agent}")
        kept = generation == self._generation and self._in_sync.is_set()
        at = point(found.revision)
        self._note(
            Resolved(agent=agent_id(found.agent), fingerprint=found.skill_fingerprint, at=at, floor=floor, kept=kept)
        )
        if kept:
            self._mirror.resolved(agent_id(found.agent), found.skill_fingerprint, at)

    def _some_filters(self) -> list[Filter]:
        def some(values: Sequence[str]) -> frozenset[str]:
            return frozenset(self._chance.sample(values, 1)) if self._chance.random() < 0.2 else frozenset()

        names = [*self._agents, *(f"agent-{number}" for number in range(len(self._agents)))]
        few = self._chance.random() < 0.3
        return [
            Filter(
                id=number,
                agents=frozenset(self._chance.sample(names, min(6, len(names)))) if few else frozenset(),
                min_severity=self._chance.choice((0, 0, 0, 0, 1, 2, 3)),
                skill_ids=some(SKILLS),
                tags=some(TAGS),
            )
            for number in range(1, self._chance.choice((1, 1, 1, 2)) + 1)
        ]
