"""Task states, in the spelling of every A2A generation (a2a-facts 4.2)."""

from enum import StrEnum


class TaskState(StrEnum):
    """What a task has come to."""

    SUBMITTED = "SUBMITTED"
    WORKING = "WORKING"
    INPUT_REQUIRED = "INPUT_REQUIRED"
    AUTH_REQUIRED = "AUTH_REQUIRED"
    COMPLETED = "COMPLETED"
    CANCELED = "CANCELED"
    FAILED = "FAILED"
    REJECTED = "REJECTED"
    UNKNOWN = "UNKNOWN"
    """A state that no generation defines, or that says of itself that it is unknown."""


REFUSING = frozenset({TaskState.FAILED, TaskState.REJECTED})
"""States in which what the agent says explains why it did not do the task."""

_NUMBERS = (
    TaskState.UNKNOWN,
    TaskState.SUBMITTED,
    TaskState.WORKING,
    TaskState.COMPLETED,
    TaskState.FAILED,
    TaskState.CANCELED,
    TaskState.INPUT_REQUIRED,
    TaskState.REJECTED,
    TaskState.AUTH_REQUIRED,
)
"""By the enum numbers of a2a.proto, which careless encoders let through."""

_SPELLINGS = {state.value: state for state in TaskState} | {
    "CANCELLED": TaskState.CANCELED,
    "FAILURE": TaskState.FAILED,
    "FAIL": TaskState.FAILED,
    "ERROR": TaskState.FAILED,
    "ERRORED": TaskState.FAILED,
    "REFUSED": TaskState.REJECTED,
    "COMPLETE": TaskState.COMPLETED,
    "SUCCEEDED": TaskState.COMPLETED,
    "RUNNING": TaskState.WORKING,
    "IN_PROGRESS": TaskState.WORKING,
    "PENDING": TaskState.SUBMITTED,
    "QUEUED": TaskState.SUBMITTED,
}


def read_state(value: object) -> TaskState:
    """Return the state that a member `state` means, whatever it holds; UNKNOWN where nothing defines it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return _NUMBERS[value] if 0 <= value < len(_NUMBERS) else TaskState.UNKNOWN
    if not isinstance(value, str):
        return TaskState.UNKNOWN
    name = value[:64].strip().upper().replace("-", "_").replace(" ", "_").removeprefix("TASK_STATE_")
    return _SPELLINGS.get(name, TaskState.UNKNOWN)
