"""What a client's record may be found guilty of. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    """Kinds of violation."""

    LOG = "the log itself is broken"
    BACKWARD = "a revision lower than an earlier one"
    REORDERED = "an agent's older state told after a newer one"
    DUPLICATED = "told twice"
    LOST = "never told before the stream claimed completeness"
    MISSING_DELETION = "a removal never told"
    DISHONEST = "completeness claimed before it was true"
    UNTRUE = "a frame or an answer that contradicts the log"
    STALE_HOLDING = "a client in sync holds what is no longer true"
    STALE_ANSWER = "an answer older than what its caller had been told"
    UNANSWERED = "a Subscribe without its one Synced"
    UNBOUNDED = "a difference longer than the fleet and what happened meanwhile"
    WRONG_EPOCH = "a frame of another epoch"
    UNWANTED = "a frame that no subscription asked for"
    UNDISCLOSED_GAP = "a gap in a resumed stream that no Resync told"
    POOR_HINT = "an invalidation that does not span what it merged"


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken promise, and where in the client's record."""

    fault: Fault
    client: str
    step: int
    detail: str

    def __str__(self) -> str:
        return f"{self.client}[{self.step}] {self.fault.name}: {self.detail}"
