"""What can go wrong.

::

    CardkeeperError
    ├── ServiceError            the service refused, or cannot be reached; `reason` says which
    │   ├── SkillRefusedError   the skill, mode or capability is not offered; `near`, `offered`
    │   └── ServiceUnavailableError
    ├── DriftError              an observation contradicts the negotiated card
    │   ├── StaleAgentCardError         the card changed, or could not be confirmed
    │   ├── ArtifactSchemaDriftError    the artifact is not what was negotiated: do not store it
    │   └── AgentContradictsCardError   the agent does not do what its card still says
    ├── NotJudgedError          the agent answered, and nobody could judge it; `answer`
    ├── ClosedError             the client was closed
    └── ForkedError             the client was made in another process

`str(error)` is one line for a log, whatever an agent put into its words. All of them can be pickled.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from cardkeeper_client.resolution import Resolution
from cardkeeper_client.v1 import verdict_pb2

SHOWN = 3
"""Pieces of evidence, near ids and alternatives in one log line, at most of each."""


class CardkeeperError(Exception):
    """Base of all errors of this package."""


class ServiceError(CardkeeperError):
    """A call of the service failed.

    `reason` is stable ("CARD_UNREACHABLE", see ErrorReason in the protos); `code` is the gRPC code's name; `retry_after` is in
    seconds, where waiting helps.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: str = "",
        code: str = "",
        metadata: Mapping[str, str] | None = None,
        retry_after: float | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason or code
        self.code = code
        self.metadata = dict(metadata or {})
        self.retry_after = retry_after
        self.fields = dict(fields or {})
        """With INVALID_REQUEST: what is wrong, by field."""

    def __str__(self) -> str:
        wait = f" (retry after {self.retry_after:.1f} s)" if self.retry_after else ""
        return _one_line(f"{self.reason}: {self.message}{wait}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message,), self.__dict__.copy()


class SkillRefusedError(ServiceError):
    """The agent's card does not offer what was asked for. `near` are ids that may be meant, `offered` modes that are."""

    near: Sequence[str] = ()
    advertised: Sequence[str] = ()
    offered: Sequence[str] = ()


class ServiceUnavailableError(ServiceError):
    """The service cannot be reached, is draining, or answered too late."""


class DriftError(CardkeeperError):
    """An observation contradicts the card that was negotiated. Carries everything that a log line needs."""

    def __init__(self, negotiated: Resolution, judgement: verdict_pb2.Judgement, answer: Any = None) -> None:
        super().__init__(judgement.message)
        self.negotiated = negotiated
        self.judgement = judgement
        self.answer = answer
        """What the agent answered; None where it failed with an exception, which is then `__cause__`, and after pickling."""

    @property
    def agent(self) -> str:
        """Resource name of the agent."""
        return self.negotiated.agent

    @property
    def skill_id(self) -> str:
        """The skill."""
        return self.negotiated.skill_id

    @property
    def verdict(self) -> str:
        """The verdict's name, "CARD_CHANGED" for example."""
        return _name(verdict_pb2.Verdict, self.judgement.verdict, "VERDICT_", "UNCONFIRMED")

    @property
    def advice(self) -> str:
        """What to do, "DO_NOT_RETRY" for example."""
        return _name(verdict_pb2.Advice, self.judgement.advice, "ADVICE_", "DO_NOT_RETRY")

    @property
    def previous_fingerprint(self) -> str:
        """Skill fingerprint that was negotiated."""
        return self.negotiated.skill_fingerprint

    @property
    def current_fingerprint(self) -> str:
        """Skill fingerprint of the card of now; empty where that is not known."""
        return self.judgement.changes.skill_fingerprint

    @property
    def evidence(self) -> list[verdict_pb2.Evidence]:
        """Why."""
        return list(self.judgement.evidence)

    @property
    def near_skill_ids(self) -> list[str]:
        """Skills of the same agent that resemble the one that is gone."""
        return list(self.judgement.near_skill_ids)

    @property
    def alternatives(self) -> list[Resolution]:
        """Other agents that serve the need."""
        return [Resolution.of(item) for item in self.judgement.alternatives]

    @property
    def retry_after(self) -> float | None:
        """Seconds after which asking again may help."""
        if not self.judgement.HasField("retry_delay"):
            return None
        return self.judgement.retry_delay.seconds + self.judgement.retry_delay.nanos / 1e9

    def __str__(self) -> str:
        evidence = [f"{item.rule} at {item.pointer or '/'}: {item.observed}" for item in self.judgement.evidence]
        known = {
            "agent": self.negotiated.agent_url,
            "skill": self.skill_id,
            "verdict": self.verdict,
            "advice": self.advice,
            "fingerprint": f"{self.previous_fingerprint[:12]}->{self.current_fingerprint[:12] or '?'}",
            "evidence": evidence and f"[{_some(evidence, '; ')}]",
            "near": _some(self.near_skill_ids, ","),
            "alternatives": _some([item.agent_url for item in self.judgement.alternatives], ","),
            "retry_after": self.retry_after and f"{self.retry_after:.1f}s",
        }
        said = self.judgement.message or type(self).__name__
        return _one_line(" ".join([said, *(f"{key}={value}" for key, value in known.items() if value)]))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_drift, (type(self), self.negotiated, self.judgement.SerializeToString())


class StaleAgentCardError(DriftError):
    """The task failed because the card behind it was stale, and a retry does not help; or drift could not be settled."""


class ArtifactSchemaDriftError(DriftError):
    """The artifact's type or data is not what was negotiated. It must not go anywhere."""


class AgentContradictsCardError(DriftError):
    """The agent still advertises what it refused. Retrying blindly does not help."""


class NotJudgedError(CardkeeperError):
    """The agent answered, but nobody could judge the answer. `answer` is what it said; `__cause__` says why."""

    def __init__(self, message: str, answer: Any = None) -> None:
        super().__init__(message)
        self.answer = answer

    def __str__(self) -> str:
        return _one_line(super().__str__())


class ClosedError(CardkeeperError):
    """The client was closed."""

    def __init__(self, message: str = "the client is closed") -> None:
        super().__init__(message)


class ForkedError(CardkeeperError):
    """The client was made before a fork. gRPC does not survive one: make a client in each process."""

    def __init__(self, message: str = "this client was made before a fork: make one in each process") -> None:
        super().__init__(message)


def _rebuild_drift(kind: type[DriftError], negotiated: Resolution, judgement: bytes) -> DriftError:
    return kind(negotiated, verdict_pb2.Judgement.FromString(judgement))


def _name(enum: Any, number: int, prefix: str, unknown: str) -> str:
    """Name of an enum's value; of one that this release does not know, what the contract says to take it for."""
    return str(enum.Name(number)).removeprefix(prefix) if number in enum.values() else unknown


def _some(items: Sequence[str], between: str) -> str:
    more = f"{between}… {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return between.join(items[:SHOWN]) + more


def _one_line(text: str) -> str:
    """Escape what is not printable: words of cards and agents come from strangers."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
