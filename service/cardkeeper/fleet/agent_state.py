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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class AgentState:
    """Immutable: any change makes a new state, so that whatever was derived from one is valid while it is the current one.

    Every instant that something is decided by is on the monotonic clock: a step of wall time neither ages nor rejuvenates
    a card, and neither hurries nor delays a retry.
    """

    record: AgentRecord
    card: Card | None
    verified: float
    """Monotonic seconds: when the card was last verified."""
    fetched: float
    """Monotonic seconds: when the card was last fetched whole."""
    retry_at: float
    """Monotonic seconds: after a failure, no routine fetch before."""
    usable_until: float
    """Monotonic seconds: the end of the hard lifetime."""

    @property
    def name(self) -> str:
        """Resource name."""
        return f"agents/{self.record.id}"

    @property
    def fresh_until(self) -> float:
        """Monotonic seconds: the end of the soft lifetime."""
        return self.verified + self.record.lifetime

    def freshness(self, now: float) -> Freshness:
        """Freshness at a monotonic instant."""
        if self.record.suspicion is not None:
            return Freshness.SUSPECT
        return Freshness.FRESH if now < self.fresh_until else Freshness.STALE


def agent_state(
    record: AgentRecord, card: Card | None, clock: Clock, *, hard_lifetime: float, previous: AgentState | None = None
) -> AgentState:
    """Derive a state from a record whose times are wall time.

    What the record has in common with the `previous` state keeps its instant. Otherwise wall time is all there is: what seems
    to lie in the future (wall time stepped back) counts as of now.
    """
    now, monotonic = clock.now(), clock.monotonic()
    if previous is not None and previous.record.verified_at == record.verified_at:
        verified = previous.verified
    else:
        verified = monotonic - max(0.0, now - record.verified_at)
    if previous is not None and previous.record.fetched_at == record.fetched_at:
        fetched = previous.fetched
    else:
        fetched = monotonic - max(0.0, now - record.fetched_at)
    failure = record.failure
    if previous is not None and previous.record.failure == failure:
        retry_at = previous.retry_at
    else:
        wait = min(failure.retry_at - now, failure.retry_at - failure.failed_at) if failure else 0.0
        retry_at = monotonic + max(0.0, wait)
    return AgentState(
        record=record,
        card=card,
        verified=verified,
        fetched=fetched,
        retry_at=retry_at,
        usable_until=verified + max(hard_lifetime, record.lifetime),
    )
