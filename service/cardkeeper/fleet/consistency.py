"""How fresh an answer must be, and what that asks of a state. Pure."""

from dataclasses import dataclass
from enum import Enum

from cardkeeper.errors import RevisionMismatch
from cardkeeper.fleet.agent_state import AgentState
from cardkeeper.fleet.revision_log import Revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Consistency:
    """At most one of these is set; none: whatever the cache policy allows."""

    max_age: float | None = None
    """Seconds since the card was last verified, at most."""
    at_least: Revision | None = None
    """A state that includes this revision."""
    refetch: bool = False
    """Fetch before answering."""


CACHED = Consistency()


class Step(Enum):
    """What has to be done before a state may be answered from."""

    SERVE = "serve"
    SERVE_AND_REVALIDATE = "serve, and revalidate in the background"
    REVALIDATE = "revalidate first"
    REFETCH = "fetch unconditionally first"


def step_for(state: AgentState, consistency: Consistency, monotonic: float) -> Step:
    """Decide by the state's lifetimes and the caller's wish."""
    record = state.record
    if consistency.refetch or record.suspicion is not None:
        return Step.REFETCH
    if state.card is None or monotonic >= state.usable_until:
        return Step.REVALIDATE
    if consistency.max_age is not None and monotonic - state.verified > consistency.max_age:
        return Step.REVALIDATE
    if monotonic < state.fresh_until:
        return Step.SERVE
    backing_off = record.failure is not None and monotonic < state.retry_at
    return Step.SERVE if backing_off else Step.SERVE_AND_REVALIDATE


def check_revision(wanted: Revision | None, head: Revision) -> None:
    """Raise RevisionMismatch where the wanted revision is of another epoch or not reached here."""
    if wanted is None:
        return
    current = {"epoch": head.epoch, "sequence": str(head.sequence)}
    if wanted.epoch != head.epoch:
        raise RevisionMismatch(
            "the revision is of another epoch: drop what you hold and resynchronise",
            reason="EPOCH_CHANGED",
            metadata=current,
        )
    if wanted.sequence > head.sequence:
        raise RevisionMismatch(
            f"revision {wanted.sequence} is not reached here; the head is {head.sequence}", metadata=current
        )
