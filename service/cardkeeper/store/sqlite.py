"""The embedded store: one process, one SQLite file.

The fleet is loaded once, at opening, and lives in the keeper's memory; cards and events are read on demand. All work on
the file is done in one thread of its own, so that a slow disk delays commits and never the event loop.
docs/storage.md says what survives what.
"""

import logging
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from cardkeeper.store.base import (
    AgentRecord,
    Commit,
    DriftRecord,
    Event,
    FleetImage,
    History,
    StoredCard,
    StoreUnavailable,
)
from cardkeeper.store.claim import Held
from cardkeeper.store.codec import Undecodable
from cardkeeper.store.serial_thread import Backlogged, Overdue, SerialThread
from cardkeeper.store.sqlite_database import SqliteDatabase
from cardkeeper.store.sqlite_file import refusal

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger(__name__)

BACKLOG = 1024
"""Calls that may wait for the file at once."""
OPEN_TIMEOUT = 60.0
"""Opening reads the whole file to find damage; seconds."""


class SqliteStore:
    """A store.base.Store in a SQLite file; one process at a time."""

    def __init__(self, path: str | Path, history: History | None = None, timeout: float = 5.0) -> None:
        """Name the file; `timeout` is the deadline of each call, in seconds."""
        self._path = Path(path).resolve()  # two names of one file are one claim
        self._history = history or History()
        self._timeout = timeout
        self._thread: SerialThread | None = None
        self._database: SqliteDatabase | None = None
        """Touched only in the thread."""

    async def open(self) -> FleetImage:
        """Claim, check and load the file, or create it. Raises StoreUnavailable.

        The epoch is a new one where the log may have gone backwards since it was last open (see claim.py).
        """
        if self._thread is not None:
            raise StoreUnavailable(f"{self._path}: this store is open already")
        self._thread = SerialThread("cardkeeper-store", backlog=BACKLOG)
        try:
            return await self._run(max(OPEN_TIMEOUT, self._timeout), self._open)
        except BaseException:
            await self.close()
            raise

    async def commit(self, commit: Commit) -> Event:
        """Take the next revision for one change; on the disk when it returns. Raises Conflict and StoreUnavailable."""
        return await self._ask(SqliteDatabase.commit, commit)

    async def agent(self, agent: str) -> AgentRecord | None:
        """Return an agent's record as it is in the file, or None."""
        return await self._ask(SqliteDatabase.agent, agent)

    async def touch(self, record: AgentRecord) -> None:
        """Replace a record that is at the same sequence."""
        await self._ask(SqliteDatabase.touch, record)

    async def events_after(self, sequence: int) -> Sequence[Event]:
        """Return the events after a revision, in order. Raises Compacted."""
        return await self._ask(SqliteDatabase.events_after, sequence)

    async def card(self, agent: str, digest: str) -> StoredCard | None:
        """Return the newest card of that skill fingerprint or card digest, or None."""
        return await self._ask(SqliteDatabase.card, agent, digest)

    async def cards(self, agent: str, *, before: int, limit: int) -> Sequence[StoredCard]:
        """Return cards of revisions below `before` (0: all), newest first, with empty bodies."""
        return await self._ask(SqliteDatabase.cards, agent, before, limit)

    async def add_drift(self, record: DriftRecord) -> DriftRecord:
        """Append to the log of drift events."""
        return await self._ask(SqliteDatabase.add_drift, record)

    async def drift(self, agent: str, *, before: int, limit: int) -> Sequence[DriftRecord]:
        """Return drift events with numbers below `before` (0: all), newest first."""
        return await self._ask(SqliteDatabase.drift, agent, before, limit)

    async def close(self) -> None:
        """Finish what waits, fold the write-ahead log into the file, release it. Raises StoreUnavailable past the deadline."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        try:
            await thread.close(self._timeout, self._close)
        except Overdue as error:
            raise self._overdue(error) from error
        except (sqlite3.Error, OSError) as error:
            raise refusal(self._path, error) from error

    def _open(self) -> FleetImage:
        self._database = SqliteDatabase(self._path, self._history, busy_timeout=self._timeout / 2)
        image, loss = self._database.load()
        if loss:
            log.warning("%s: a new epoch begins, and clients synchronise anew: %s", self._path, loss)
        return image

    def _close(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            database.close()

    async def _ask(
        self, operation: Callable[Concatenate[SqliteDatabase, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        def call() -> T:
            if self._database is None:
                raise self._not_open()
            return operation(self._database, *args, **kwargs)

        return await self._run(self._timeout, call)

    async def _run(self, timeout: float, call: Callable[[], T]) -> T:
        if self._thread is None:
            raise self._not_open()
        try:
            return await self._thread.run(timeout, call)
        except Held as error:
            owner = f" (process {error.owner})" if error.owner else ""
            raise StoreUnavailable(
                f"{self._path}: another process{owner} uses this file: stop it, or give this one a file of its own"
            ) from error
        except Backlogged as error:
            raise StoreUnavailable(
                f"{self._path}: {error}: the disk is too slow for the load; ask again later"
            ) from error
        except Overdue as error:
            raise self._overdue(error) from error
        except (sqlite3.Error, OSError, Undecodable) as error:
            raise refusal(self._path, error) from error

    def _not_open(self) -> StoreUnavailable:
        return StoreUnavailable(f"{self._path}: the store is not open")

    def _overdue(self, error: Overdue) -> StoreUnavailable:
        return StoreUnavailable(
            f"{self._path}: {error}: look for a slow or failing disk; what was begun may still be done"
        )
