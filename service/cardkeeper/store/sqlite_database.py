"""What the store does to its SQLite file: blocking calls, all made from one thread.

The last revision and the bound of the log are read off the log itself, so that they cannot disagree with it.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cardkeeper.store.base import (
    AgentRecord,
    Commit,
    Compacted,
    Conflict,
    DriftRecord,
    Event,
    FleetImage,
    History,
    StoredCard,
    new_epoch,
)
from cardkeeper.store.claim import Claim
from cardkeeper.store.codec import decode, encode
from cardkeeper.store.retention import surplus_cards
from cardkeeper.store.sqlite_file import connect, meta, set_meta, transaction

_END = 2**63 - 1


class SqliteDatabase:
    """An open file with its claim. Raises sqlite3.Error, OSError and codec.Undecodable as they come."""

    def __init__(self, path: Path, history: History, *, busy_timeout: float) -> None:
        """Claim and open the file. Raises claim.Held and StoreUnavailable, too."""
        self._history = history
        self._claim = Claim(path)
        try:
            self._connection = connect(path, busy_timeout=busy_timeout)
        except BaseException:
            self._claim.release()
            raise

    def load(self) -> tuple[FleetImage, str]:
        """Return the state, and what put an end to its last epoch; empty: the epoch goes on."""
        epoch = meta(self._connection, "epoch")
        sequence = self._last_sequence()
        loss = self._loss(epoch, sequence)
        if loss:
            epoch = new_epoch()
            with transaction(self._connection):
                set_meta(self._connection, "epoch", epoch)
        self._epoch = epoch
        self._claim.testify(epoch, sequence, sync=True)
        rows = self._connection.execute("SELECT record FROM agent ORDER BY id")
        agents = tuple(decode(AgentRecord, record) for (record,) in rows)
        return FleetImage(epoch=epoch, sequence=sequence, agents=agents), loss

    def commit(self, commit: Commit) -> Event:
        """Compare, take the next sequence, write the record, the card and the event, evict; all or nothing."""
        agent = commit.event.agent
        with transaction(self._connection):
            row = self._connection.execute("SELECT sequence FROM agent WHERE id = ?", (agent,)).fetchone()
            held = row[0] if row else 0
            if held != commit.expected:
                raise Conflict(f"{agent} is at {held}, not at {commit.expected}")
            event = replace(commit.event, sequence=self._last_sequence() + 1)
            if commit.record is None:
                self._connection.execute("DELETE FROM agent WHERE id = ?", (agent,))
            else:
                record = replace(commit.record, sequence=event.sequence)
                self._connection.execute(
                    "INSERT OR REPLACE INTO agent VALUES (?, ?, ?)", (agent, record.sequence, encode(record))
                )
            if commit.card is not None:
                self._add_card(replace(commit.card, sequence=event.sequence))
                self._evict_cards(agent, commit.record.card_digest if commit.record else "")
            self._connection.execute("INSERT INTO event VALUES (?, ?, ?)", (event.sequence, agent, encode(event)))
            self._evict_events(event.sequence - self._history.events)
        with contextlib.suppress(OSError):  # a witness that lags is harmless; the commit is done
            self._claim.testify(self._epoch, event.sequence)
        return event

    def agent(self, agent: str) -> AgentRecord | None:
        """Return an agent's record."""
        row = self._connection.execute("SELECT record FROM agent WHERE id = ?", (agent,)).fetchone()
        return decode(AgentRecord, row[0]) if row else None

    def touch(self, record: AgentRecord) -> None:
        """Replace a record that is at the same sequence."""
        self._connection.execute(
            "UPDATE agent SET record = ? WHERE id = ? AND sequence = ?", (encode(record), record.id, record.sequence)
        )

    def events_after(self, sequence: int) -> Sequence[Event]:
        """Return the log after a revision. Raises Compacted."""
        (first,) = self._connection.execute("SELECT coalesce(min(sequence), 1) FROM event").fetchone()
        if sequence < first - 1:
            raise Compacted(f"the log begins after revision {first - 1}")
        rows = self._connection.execute("SELECT record FROM event WHERE sequence > ? ORDER BY sequence", (sequence,))
        return tuple(decode(Event, record) for (record,) in rows)

    def card(self, agent: str, digest: str) -> StoredCard | None:
        """Return the newest card of that skill fingerprint or card digest."""
        row = self._connection.execute(
            "SELECT record, body FROM card WHERE sequence = (SELECT max(sequence) FROM card"
            " WHERE agent = ? AND (skill_fingerprint = ? OR card_digest = ?))",
            (agent, digest, digest),
        ).fetchone()
        return replace(decode(StoredCard, row[0]), body=row[1]) if row else None

    def cards(self, agent: str, before: int, limit: int) -> Sequence[StoredCard]:
        """Return cards below a revision, newest first, without bodies."""
        rows = self._connection.execute(
            "SELECT record FROM card WHERE agent = ? AND sequence < ? ORDER BY sequence DESC LIMIT ?",
            (agent, before or _END, limit),
        )
        return tuple(decode(StoredCard, record) for (record,) in rows)

    def add_drift(self, record: DriftRecord) -> DriftRecord:
        """Append to the log of drift events, and evict."""
        with transaction(self._connection):
            (last,) = self._connection.execute("SELECT coalesce(max(number), 0) FROM drift").fetchone()
            record = replace(record, number=last + 1)
            self._connection.execute(
                "INSERT INTO drift VALUES (?, ?, ?)", (record.number, record.agent, encode(record))
            )
            bound = record.number - self._history.drift_records
            self._connection.execute("DELETE FROM drift WHERE number <= ?", (bound,))
        return record

    def drift(self, agent: str, before: int, limit: int) -> Sequence[DriftRecord]:
        """Return drift events below a number, newest first."""
        of_agent, values = ("agent = ? AND", (agent,)) if agent else ("", ())
        rows = self._connection.execute(
            f"SELECT record FROM drift WHERE {of_agent} number < ? ORDER BY number DESC LIMIT ?",  # noqa: S608 - constants
            (*values, before or _END, limit),
        )
        return tuple(decode(DriftRecord, record) for (record,) in rows)

    def close(self) -> None:
        """Fold the write-ahead log into the file and give up the claim."""
        try:
            self._connection.close()
        finally:
            self._claim.release()

    def _last_sequence(self) -> int:
        (last,) = self._connection.execute("SELECT coalesce(max(sequence), 0) FROM event").fetchone()
        return int(last)

    def _loss(self, epoch: str, sequence: int) -> str:
        """Why the log may have gone backwards since it was last open; empty: it has not, or it is new."""
        if not sequence:
            return ""
        witness = self._claim.witness()
        if witness is None:
            return "its .lock file, which says how far the log had come, is gone or illegible"
        if witness.epoch != epoch:
            return "its .lock file is that of another epoch: the file was put here from elsewhere"
        if witness.sequence > sequence:
            return f"revision {witness.sequence} was acknowledged, the file ends at {sequence}: it lost its newest part"
        return ""

    def _add_card(self, card: StoredCard) -> None:
        self._connection.execute(
            "INSERT INTO card VALUES (?, ?, ?, ?, ?, ?)",
            (
                card.sequence,
                card.agent,
                card.skill_fingerprint,
                card.card_digest,
                encode(replace(card, body=b"")),
                card.body,
            ),
        )

    def _evict_cards(self, agent: str, current_digest: str) -> None:
        kept = self._connection.execute(
            "SELECT sequence, card_digest FROM card WHERE agent = ? ORDER BY sequence", (agent,)
        ).fetchall()
        surplus = surplus_cards(kept, current_digest, self._history.cards_per_agent)
        self._connection.executemany("DELETE FROM card WHERE sequence = ?", [(sequence,) for sequence in surplus])

    def _evict_events(self, bound: int) -> None:
        """Forget the log up to `bound`, and the cards of removed agents that nothing in it names any more."""
        gone = self._connection.execute("SELECT DISTINCT agent FROM event WHERE sequence <= ?", (bound,)).fetchall()
        self._connection.execute("DELETE FROM event WHERE sequence <= ?", (bound,))
        self._connection.executemany(
            "DELETE FROM card WHERE agent = ?1 AND NOT EXISTS (SELECT 1 FROM agent WHERE id = ?1)"
            " AND NOT EXISTS (SELECT 1 FROM event WHERE agent = ?1)",
            gone,
        )
