"""One agent as the keeper holds it: the stored record, its parsed card, and where its lifetime stands."""

from dataclasses import dataclass
from enum import IntEnum

from cardkeeper.card.model import Card
from cardkeeper.clock import Clock
from cardkeeper.store.base import AgentRecord


class Freshness(IntEnum):
    """Whether, and why, an answer may be less than current. Values are those of the proto."""

    FRESH = 1
    STALE = 2
    SUSPECT = 3
    DEGRADED = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AgentState:
    """Immutable: any change makes a new state, so that whatever was derived from one is valid while it is the current one.

    Lifetimes are on the monotonic clock: a step of wall time neither ages nor rejuvenates a card.
    """

    record: AgentRecord
    card: Card | None
    fresh_until: float
    """Monotonic seconds: the end of the soft lifetime."""
    usable_until: float
    """Monotonic seconds: the end of the hard lifetime."""

    @property
    def name(self) -> str:
        """Resource name."""
        return f"agents/{self.record.id}"

    def freshness(self, now: float) -> Freshness:
        """Freshness at a monotonic instant."""
        if self.record.suspicion is not None:
            return Freshness.SUSPECT
        return Freshness.FRESH if now < self.fresh_until else Freshness.STALE


def agent_state(record: AgentRecord, card: Card | None, clock: Clock, *, hard_lifetime: float) -> AgentState:
    """Derive a state from a record whose times are wall time.

    A verification that seems to lie in the future (wall time stepped back) counts as one of now.
    """
    age = max(0.0, clock.now() - record.verified_at)
    verified = clock.monotonic() - age
    return AgentState(
        record=record,
        card=card,
        fresh_until=verified + record.lifetime,
        usable_until=verified + max(hard_lifetime, record.lifetime),
    )
