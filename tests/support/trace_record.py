"""What one client did and saw, in its order. Pure; imports nothing of the service.

A record is a list of steps. Frames are steps too, each with the revision `at` that it carried.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from trace_history import Entry, Kind, Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """What a subscription asks for, judged by the words of the contract."""

    id: int
    agents: frozenset[str] = frozenset()
    """Ids and canonical URLs; empty: all."""
    min_severity: int = 0
    skill_ids: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()

    @property
    def by_content(self) -> bool:
        """Whether some changes of a covered agent are not told."""
        return bool(self.min_severity or self.skill_ids or self.tags)

    def covers(self, agent: str, agent_url: str = "") -> bool:
        """Whether it is about this agent."""
        return not self.agents or agent in self.agents or agent_url in self.agents

    def wants(self, entry: Entry) -> bool:
        """Whether an Invalidation of this entry has to be told."""
        if entry.kind in (Kind.SUSPECTED, Kind.CLEARED) or not self.covers(entry.agent, entry.agent_url):
            return False
        if entry.kind is Kind.REMOVED:
            return True
        return (
            entry.severity >= self.min_severity
            and (not self.skill_ids or entry.whole_agent or bool(self.skill_ids & entry.skill_ids))
            and (not self.tags or bool(self.tags & entry.tags))
        )


class Ending(StrEnum):
    """Why a stream ended."""

    CLIENT = "client"
    SERVER = "server"
    IMPATIENT = "impatient"
    """The client gave up: a Subscribe had no Synced although the server ran and the client read."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A new stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribed:
    """A Subscribe was sent."""

    filter: Filter
    resume_from: Point | None = None
    held: Mapping[str, str] = field(default_factory=dict)
    """Skill fingerprints by agent id."""


@dataclass(frozen=True, slots=True)
class Unsubscribed:
    """An Unsubscribe was sent."""

    id: int


@dataclass(frozen=True, slots=True)
class Forgot:
    """The client dropped everything it held: it is about to ask for other things than before."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The stream is over."""

    ending: Ending


@dataclass(frozen=True, slots=True, kw_only=True)
class Invalidated:
    """Frame: an Invalidation."""

    at: Point
    agent: str
    agent_at: Point
    removed: bool = False
    fingerprint: str = ""
    severity: int = 0
    skill_ids: frozenset[str] = frozenset()
    """Empty: all."""


@dataclass(frozen=True, slots=True)
class Revalidated:
    """Frame: a Revalidate of one suspected agent."""

    at: Point
    agent: str
    agent_at: Point


@dataclass(frozen=True, slots=True)
class Synced:
    """Frame: a difference is complete."""

    at: Point
    id: int
    agent_count: int


@dataclass(frozen=True, slots=True)
class Bookmarked:
    """Frame: everything up to here was sent."""

    at: Point


class Gap(StrEnum):
    """Reasons of a Resync."""

    COMPACTED = "COMPACTED"
    EPOCH_CHANGED = "EPOCH_CHANGED"
    OVERFLOWED = "OVERFLOWED"


@dataclass(frozen=True, slots=True)
class Resynced:
    """Frame: history has a gap."""

    at: Point
    id: int
    reason: Gap


@dataclass(frozen=True, slots=True)
class Draining:
    """Frame: goodbye."""

    at: Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """An answer to ResolveSkill arrived."""

    agent: str
    fingerprint: str
    at: Point
    floor: Point | None = None
    """Newest agent_revision that this client had been told of the agent when it asked."""
    kept: bool = True
    """The client holds it from now on: it asked and was answered on one stream in sync."""


@dataclass(frozen=True, slots=True)
class Holds:
    """What the client says it holds, right after the claim (Synced or Bookmark) before this step."""

    fingerprints: Mapping[str, str]


Frame = Invalidated | Revalidated | Synced | Bookmarked | Resynced | Draining
Step = Opened | Subscribed | Unsubscribed | Forgot | Closed | Frame | Resolved | Holds


@dataclass(slots=True)
class Record:
    """One client's steps."""

    client: str
    steps: list[Step] = field(default_factory=list)
