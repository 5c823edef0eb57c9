"""The values that observations are judged in."""

from dataclasses import dataclass
from enum import StrEnum

from cardkeeper.card.model import Skill


class EvidenceKind(StrEnum):
    """What sort of promise was contradicted (design section 5). Names are those of the proto without prefix."""

    UNKNOWN_SKILL = "UNKNOWN_SKILL"
    UNSUPPORTED_MODE = "UNSUPPORTED_MODE"
    METHOD_REFUSED = "METHOD_REFUSED"
    CAPABILITY_REFUSED = "CAPABILITY_REFUSED"
    EXTENSION_REQUIRED = "EXTENSION_REQUIRED"
    VERSION_REFUSED = "VERSION_REFUSED"
    ENDPOINT_GONE = "ENDPOINT_GONE"
    ARTIFACT_TYPE = "ARTIFACT_TYPE"
    SKILL_NOT_ADVERTISED = "SKILL_NOT_ADVERTISED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One contradiction between what was observed and what the negotiated snapshot says."""

    kind: EvidenceKind
    rule: str
    """Stable id of the rule or text pattern that fired."""
    expected: str
    """What the card promised, in words for a log line."""
    observed: str
    """What was observed, without payload; at most 200 characters."""
    pointer: str = ""
    """JSON Pointer into the reported document."""
    untyped: bool = False
    """ARTIFACT_TYPE of a part that states no type of its own: what the artifact policies differ on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """How the task was asked for; what is unknown stays empty."""

    skill_id: str
    method: str = ""
    input_modes: tuple[str, ...] = ()
    accepted_output_modes: tuple[str, ...] = ()
    streaming: bool = False
    push_notifications: bool = False
    protocol_version: str = ""
    extensions: tuple[str, ...] = ()


class Binding(StrEnum):
    """The transport that an outcome came over."""

    JSONRPC = "jsonrpc"
    HTTP_JSON = "http+json"
    GRPC = "grpc"
    UNKNOWN = "unknown"
    """A bare Task, Message or event, whatever brought it."""


class PartKind(StrEnum):
    """What a part holds."""

    TEXT = "text"
    FILE = "file"
    DATA = "data"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of an artifact or a message, of any dialect."""

    kind: PartKind
    pointer: str
    """JSON Pointer of the part in the document."""
    media_type: str = ""
    """The type that it states, verbatim; empty: untyped."""
    file_name: str = ""
    data: str = ""
    """JSON text of a data part, for schema validation; empty otherwise or where the content was not sent."""


class PartResult(StrEnum):
    """Judgement of one part (design section 5). Names are those of the proto without prefix."""

    ACCEPTED = "ACCEPTED"
    REJECTED = "REJECTED"
    UNTYPED = "UNTYPED"
    UNDECLARED = "UNDECLARED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One violation of an output schema: a JSON Pointer into the part, and what is wrong."""

    pointer: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartJudgement:
    """What was made of one part."""

    pointer: str
    media_type: str
    """The type that the part was taken to have: stated, or implied."""
    result: PartResult
    violations: tuple[Violation, ...] = ()
    schema_checked: bool = False
    """The part's data was validated against an output schema; False says nothing about it."""


class ArtifactPolicy(StrEnum):
    """What becomes of a part that states no type and whose implied type is not offered."""

    STRICT = "strict"
    CONFIRM = "confirm"
    LENIENT = "lenient"


class Verdict(StrEnum):
    """Verdict on an observation (design section 5). Names are those of the proto without prefix."""

    NO_DRIFT = "NO_DRIFT"
    CARD_CHANGED = "CARD_CHANGED"
    AGENT_CONTRADICTS_CARD = "AGENT_CONTRADICTS_CARD"
    UNCONFIRMED = "UNCONFIRMED"


class Advice(StrEnum):
    """What the caller should do. Names are those of the proto without prefix."""

    PROCEED = "PROCEED"
    RETRY_WITH_RESOLUTION = "RETRY_WITH_RESOLUTION"
    DO_NOT_RETRY = "DO_NOT_RETRY"
    WAIT = "WAIT"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactJudgement:
    """What was made of an artifact against one skill of the snapshot, before any re-fetch."""

    parts: tuple[PartJudgement, ...]
    evidence: tuple[Evidence, ...]
    skill: Skill | None
    """None: the snapshot does not have the skill."""

    @property
    def rejected(self) -> bool:
        """Whether some part states a type that is not offered, or violates the schema."""
        return any(part.result is PartResult.REJECTED for part in self.parts)

    @property
    def untyped(self) -> bool:
        """Whether some part states no type and implies one that is not offered."""
        return any(part.result is PartResult.UNTYPED for part in self.parts)
