"""The store's contract: records, and the operations that every engine offers.

A commit is the only way to take a revision, and it is atomic: compare with what is held, take the next sequence, write
the agent's record, its card and the event. Coherence lives here; caches are elsewhere.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from cardkeeper.card.change import ChangeSet
from cardkeeper.drift.model import Evidence, Verdict


class Cause(StrEnum):
    """Why a change was noticed. Names are those of the proto without prefix."""

    EVIDENCE = "EVIDENCE"
    REFRESH = "REFRESH"
    REQUESTED = "REQUESTED"
    OPERATOR = "OPERATOR"


class EventKind(StrEnum):
    """What a revision did to an agent."""

    ADDED = "ADDED"
    """The agent is kept from now on, with or without a card."""
    CHANGED = "CHANGED"
    """Another card is held."""
    REMOVED = "REMOVED"
    """The agent is not kept any more."""
    SUSPECTED = "SUSPECTED"
    """Evidence against the card could not be settled: the service cannot vouch for it."""
    CLEARED = "CLEARED"
    """The suspicion was settled, and the surface is what it was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCard:
    """One fetched document, kept past its replacement."""

    agent: str
    """Agent id: the last part of the resource name."""
    skill_fingerprint: str
    card_digest: str
    body: bytes
    """Byte for byte as fetched."""
    card_url: str
    fetched_at: float
    """Seconds since the Unix epoch."""
    cause: Cause
    dialect: str = ""
    version: str = ""
    sequence: int = 0
    """The revision that brought it; set by the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why the last fetch failed, and when the next may be tried."""

    reason: str
    """An ErrorReason name without prefix: CARD_UNREACHABLE, CARD_INVALID or EGRESS_REFUSED."""
    message: str
    count: int
    """Failures in a row."""
    failed_at: float
    """Seconds since the Unix epoch."""
    retry_at: float
    """Seconds since the Unix epoch: no routine fetch before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """Evidence that no fetch could settle yet."""

    since: float
    """Seconds since the Unix epoch."""
    skill_id: str
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRecord:
    """What is known of one agent. Immutable: a change makes a new record."""

    id: str
    agent_url: str
    """Canonical base URL."""
    registered: bool = False
    sequence: int = 0
    """Revision of its last change; set by the store."""
    card_digest: str = ""
    """Digest of the card held; empty: none yet."""
    skill_fingerprint: str = ""
    card_url: str = ""
    """Where the card was last found."""
    etag: str = ""
    last_modified: str = ""
    validators_lie: bool = False
    """A validator answered "not modified" for a card that had changed: never send one again."""
    verified_at: float = 0.0
    """When the card was last verified, in seconds since the Unix epoch; 0: never."""
    fetched_at: float = 0.0
    """When the card was last fetched whole, not merely said to be unmodified; seconds since the Unix epoch."""
    lifetime: float = 0.0
    """Soft lifetime from verified_at on, in seconds."""
    failure: Failure | None = None
    suspicion: Suspicion | None = None
    change_count: int = 0
    silent_change_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One entry of the revision log."""

    kind: EventKind
    agent: str
    agent_url: str
    cause: Cause
    changes: ChangeSet
    tags: tuple[str, ...] = ()
    """Tags of the skills touched, before or after, sorted."""
    occurred_at: float = 0.0
    sequence: int = 0
    """Set by the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftRecord:
    """Evidence that was settled, or a change that was found."""

    agent: str
    occurred_at: float
    cause: Cause
    verdict: Verdict
    skill_id: str = ""
    skill_fingerprint: str = ""
    """Fingerprint of the snapshot that the evidence spoke against."""
    evidence: tuple[Evidence, ...] = ()
    changes: ChangeSet | None = None
    sequence: int = 0
    """The revision that the change took; 0: none."""
    number: int = 0
    """Position in the log of drift events; set by the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One atomic change of one agent's state."""

    expected: int
    """`sequence` of the agent's record as the committer knows it; 0: the agent is not kept."""
    event: Event
    record: AgentRecord | None
    """The new record; None removes the agent (its cards stay until they are evicted)."""
    card: StoredCard | None = None
    """A new document to keep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetImage:
    """Everything that a process needs to start from."""

    epoch: str
    """Random id of the revision log."""
    sequence: int
    """Last revision taken; 0: none."""
    agents: tuple[AgentRecord, ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Bounds of what an engine keeps; older entries are evicted, oldest first."""

    events: int = 10_000
    """Entries of the revision log. The cards of a removed agent go with the last entry that names it."""
    cards_per_agent: int = 64
    """The card that an agent's record names is among them and is never evicted."""
    drift_records: int = 10_000

    def __post_init__(self) -> None:
        """Refuse bounds below 1: sequences and numbers go on from the newest entry that is kept."""
        if min(self.events, self.cards_per_agent, self.drift_records) < 1:
            raise ValueError("every bound of the history is at least 1")


class Conflict(Exception):
    """The agent's record is not the one that the committer knew."""


class Compacted(Exception):
    """The log no longer reaches back that far."""


class StoreUnavailable(Exception):
    """The engine does not answer, is damaged, or refuses to write; the message says which and what to do."""


def new_epoch() -> str:
    """Return the id of a revision log that begins now."""
    return secrets.token_hex(8)


class Store(Protocol):
    """What every engine offers. Each call is bounded by the engine's own deadline and raises StoreUnavailable past it."""

    async def open(self) -> FleetImage:
        """Open or create the state, and return it.

        Raises StoreUnavailable where it is damaged or held by another process.
        """
        ...

    async def commit(self, commit: Commit) -> Event:
        """Take the next revision for one change, durably, and return its event with the sequence set.

        The sequence is also set in the record and the card that are kept. Raises Conflict where the agent's record is not
        at `commit.expected`, StoreUnavailable where nothing was written; or where the deadline passed or the caller was
        cancelled while the engine was writing: then it is there whole or not at all, and any later call sees which.
        """
        ...

    async def agent(self, agent: str) -> AgentRecord | None:
        """Return an agent's record as it is stored, or None. For catching up after a commit whose outcome is unknown."""
        ...

    async def touch(self, record: AgentRecord) -> None:
        """Keep a record's freshness, validators and failure without a revision.

        Ignored where the agent is gone or at another sequence than the record's.
        """
        ...

    async def events_after(self, sequence: int) -> Sequence[Event]:
        """Return the events after a revision, in order. Raises Compacted where the log does not reach back."""
        ...

    async def card(self, agent: str, digest: str) -> StoredCard | None:
        """Return the newest card of that skill fingerprint or card digest, body included, or None."""
        ...

    async def cards(self, agent: str, *, before: int, limit: int) -> Sequence[StoredCard]:
        """Return cards brought by revisions below `before` (0: all), newest first, with empty bodies."""
        ...

    async def add_drift(self, record: DriftRecord) -> DriftRecord:
        """Append to the log of drift events and return the record with its number."""
        ...

    async def drift(self, agent: str, *, before: int, limit: int) -> Sequence[DriftRecord]:
        """Return drift events with numbers below `before` (0: all), newest first; of one agent, or of all if empty."""
        ...

    async def close(self) -> None:
        """Flush and release; safe to call twice."""
        ...
