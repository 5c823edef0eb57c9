"""What the validator knows of one connection while it walks a record. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from trace_history import Point
from trace_record import Filter, Gap


@dataclass(slots=True)
class Subscription:
    filter: Filter
    resume_from: Point | None
    settled: int | None = None
    """Everything that it wants up to here was told; None: its difference is not complete."""
    resync: Gap | None = None
    held: Mapping[str, str] = field(default_factory=dict)
    number: int = 0
    """Its Subscribe's place among those of the stream, from 1 on."""
    asked_at: int = 0
    """Revision of the stream when it was asked for."""
    frames: int = 0
    """Invalidations since it was asked for."""


@dataclass(slots=True)
class Stream:
    """One connection: forgotten when it ends."""

    epoch: str = ""
    last: int = 0
    told: dict[str, int] = field(default_factory=dict)
    """Newest state told of each agent."""
    doubted: dict[str, int] = field(default_factory=dict)
    """Newest suspicion told of each agent."""
    pending: dict[int, list[Subscription]] = field(default_factory=dict)
    """Asked for and not answered yet, oldest first: the same id may be asked for again."""
    active: dict[int, Subscription] = field(default_factory=dict)
    doubtful: list[tuple[int, Subscription]] = field(default_factory=list)
    """Replaced or removed by the client, perhaps still in force at the server: until it answers a later Subscribe than
    the one of that number."""
    has_synced: bool = False
    asked: int = 0
    """Subscribes so far."""

    def filters(self) -> Iterator[Filter]:
        """All that may be in force."""
        for waiting in self.pending.values():
            yield from (item.filter for item in waiting)
        yield from (item.filter for item in (*self.active.values(), *(old for _, old in self.doubtful)))


@dataclass(slots=True)
class Holding:
    fingerprint: str
    at: Point
