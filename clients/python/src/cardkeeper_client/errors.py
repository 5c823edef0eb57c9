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
    ├── NotJudgedError          the agent answered, and the service could not judge it; `answer`
    └── ForkedError             the client was made in another process
"""

from collections.abc import Mapping, Sequence
from typing import Any

from cardkeeper_client.resolution import Resolution
from cardkeeper_client.v1 import verdict_pb2


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
        return f"{self.reason}: {self.message}{wait}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), (self.message,), self.__dict__.copy())


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
        """What the agent answered; None where it failed with an exception, which is then `__cause__`."""

    @property
    def agent(self) -> str:
        """Resource name of the agent."""
        return self.negotiated.agent

    @property
    def skill_id(self) -> str:
        """The skill."""
        return self.negotiated.skill_id

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
        seen = "; ".join(f"{item.rule} at {item.pointer or '/'}: {item.observed}" for item in self.judgement.evidence)
        parts = [
            self.judgement.message or type(self).__name__,
            f"agent={self.negotiated.agent_url}",
            f"skill={self.skill_id}",
            f"verdict={verdict_pb2.Verdict.Name(self.judgement.verdict).removeprefix('VERDICT_')}",
            f"fingerprint={self.previous_fingerprint[:12]}->{self.current_fingerprint[:12] or '?'}",
        ]
        if seen:
            parts.append(f"evidence=[{seen}]")
        if self.near_skill_ids:
            parts.append(f"near={','.join(self.near_skill_ids)}")
        return " ".join(parts)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_drift, (type(self), self.negotiated, self.judgement.SerializeToString())


class StaleAgentCardError(DriftError):
    """The task failed because the card behind it was stale, and a retry does not help; or drift could not be settled."""


class ArtifactSchemaDriftError(DriftError):
    """The artifact's type or data is not what was negotiated. It must not go anywhere."""


class AgentContradictsCardError(DriftError):
    """The agent still advertises what it refused. Retrying blindly does not help."""


class NotJudgedError(CardkeeperError):
    """The agent answered, but the service could not judge the answer. `answer` is what it said; `__cause__` says why."""

    def __init__(self, message: str, answer: Any = None) -> None:
        super().__init__(message)
        self.answer = answer


class ForkedError(CardkeeperError):
    """The client was made before a fork. gRPC does not survive one: make a client in each process."""


def _rebuild(kind: type[ServiceError], args: tuple[Any, ...], state: dict[str, Any]) -> ServiceError:
    error = kind(*args)
    error.__dict__.update(state)
    return error


def _rebuild_drift(kind: type[DriftError], negotiated: Resolution, judgement: bytes) -> DriftError:
    return kind(negotiated, verdict_pb2.Judgement.FromString(judgement))
