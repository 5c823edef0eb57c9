"""What a client observed, in one typed form for every dialect and binding."""

from dataclasses import dataclass, replace
from enum import StrEnum

from cardkeeper.drift.model import Binding, Part
from cardkeeper.drift.state import TaskState


class Place(StrEnum):
    """Where a text stood."""

    STATUS = "status"
    """`status.message` of a task or a status event, or what stands in for it."""
    MESSAGE = "message"
    """A Message that is the whole answer."""
    ARTIFACT = "artifact"
    ERROR = "error"
    """An error's message or data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One text of the agent."""

    text: str
    pointer: str
    """JSON Pointer of the text in the document."""
    place: Place
    state: TaskState | None = None
    """State of the task that it belongs to; None: no task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldRemark:
    """What an error says about one field of the request."""

    field: str
    """Name or path, as the agent writes it."""
    remark: str
    """What is wrong with it; empty: nothing is said."""
    value: str
    """The refused value, where it is said."""
    pointer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One error, of any binding."""

    pointer: str
    code: int | None = None
    """JSON-RPC error code."""
    http_status: int | None = None
    grpc_code: int | None = None
    reason: str = ""
    """google.rpc.ErrorInfo.reason or what stands in for it: UPPER_SNAKE, without the suffix "_ERROR"."""
    message: str = ""
    statements: tuple[Statement, ...] = ()
    """Message and texts of the details."""
    fields: tuple[FieldRemark, ...] = ()
    a2a: bool = True
    """The agent's A2A layer speaks; False: anything on the way may have (an HTTP status with a page of HTML)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One outcome."""

    binding: Binding = Binding.UNKNOWN
    state: TaskState | None = None
    """The last state seen; None: no task."""
    faults: tuple[Fault, ...] = ()
    statements: tuple[Statement, ...] = ()
    parts: tuple[Part, ...] = ()
    """Parts of artifacts."""
    message_parts: tuple[Part, ...] = ()
    """Parts of Messages that are the whole answer."""
    echoes: tuple[str, ...] = ()
    """Texts of the caller that the document repeats: whatever the agent quotes of them is not its own."""
    append: bool = False
    """A chunk that continues an artifact."""
    last_chunk: bool = False
    matched_patterns: tuple[str, ...] = ()
    """Ids of text patterns that the client says have matched; with content-free summaries."""

    def merged(self, later: "Observation") -> "Observation":
        """Return both as one: lists joined, the later state and chunk flags."""
        return replace(
            self,
            state=later.state if later.state is not None else self.state,
            faults=self.faults + later.faults,
            statements=self.statements + later.statements,
            parts=self.parts + later.parts,
            message_parts=self.message_parts + later.message_parts,
            echoes=self.echoes + later.echoes,
            append=later.append,
            last_chunk=later.last_chunk,
            matched_patterns=self.matched_patterns + later.matched_patterns,
        )
