"""Reads the service's log of revisions out of its database, while the service runs and writes it."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from cardkeeper.fleet.subscription import WHOLE_AGENT
from cardkeeper.store.base import Event
from cardkeeper.store.codec import decode
from trace_history import Entry, Epoch, History, Kind


class LogReader:
    """Follows one file through its epochs. History that the service forgets is kept here."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.history = History()
        self._current: Epoch | None = None
        self.exclusive = asyncio.Lock()
        """Held by whoever puts other files in the place of the database."""

    async def follow(self, pause: float = 0.1) -> None:
        """Read again and again."""
        while True:
            async with self.exclusive:
                await asyncio.to_thread(self.read)
            await asyncio.sleep(pause)

    def read(self, *, alone: bool = False) -> None:
        """Read what is new. `alone`: no service runs, and what a killed one left may be recovered by this reading."""
        if not self._file.exists():
            return
        mode = "rw" if alone else "ro"
        try:
            with closing(sqlite3.connect(f"file:{self._file}?mode={mode}", uri=True, timeout=5.0)) as connection:
                self._read(connection)
        except sqlite3.Error:
            if alone:
                raise  # else: being created, removed or recovered just now; the next reading sees it

    def _read(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN")  # one instant
        (epoch_id,) = connection.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()
        if self._current is None or self._current.id != epoch_id:
            self._current = self._begin(connection, epoch_id)
        head = self._current.head
        rows = connection.execute("SELECT record FROM event WHERE sequence > ? ORDER BY sequence", (head,))
        for (record,) in rows:
            entry = _entry(decode(Event, record))
            if entry.sequence != self._current.head + 1:
                raise LogLost(f"revision {self._current.head + 1} was forgotten before it was read")
            self._current.append(entry)

    def _begin(self, connection: sqlite3.Connection, epoch_id: str) -> Epoch:
        """An epoch on an older copy goes on from what that copy holds: a beginning of the epoch before."""
        epoch = self.history.epoch(epoch_id)
        (first,) = connection.execute("SELECT coalesce(min(sequence), 1) FROM event").fetchone()
        if self._current is not None and first > 1:
            for entry in self._current.between(0, first - 1):
                epoch.append(entry)
        return epoch


class LogLost(Exception):
    """The reader was too slow for the service's history bound: the run proves nothing."""


def _entry(event: Event) -> Entry:
    changes = event.changes
    return Entry(
        sequence=event.sequence,
        kind=Kind(event.kind.value),
        agent=event.agent,
        agent_url=event.agent_url,
        previous=changes.previous_skill_fingerprint,
        fingerprint=changes.skill_fingerprint,
        severity=int(changes.severity),
        skill_ids=frozenset(changes.skill_ids),
        whole_agent=any(change.kind in WHOLE_AGENT for change in changes.changes),
        tags=frozenset(event.tags),
    )
