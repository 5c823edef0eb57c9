"""From any outcome that a client reports to one Observation.

Reads Tasks, Messages, status and artifact events, JSON-RPC responses, HTTP+JSON and gRPC errors, and lists of them (a
stream, a batch), of every A2A generation. The shape decides, never a version member: SDKs mix them (a2a-facts 4).
"""

from collections.abc import Iterator

from cardkeeper.drift.document import JsonObject, JsonValue, child, read_json
from cardkeeper.drift.fault import read_body, read_error, read_problem, read_status
from cardkeeper.drift.model import Binding, Part
from cardkeeper.drift.observation import Fault, Observation, Place, Statement
from cardkeeper.drift.parts import MAX_PARTS, part_items, part_text, read_parts
from cardkeeper.drift.speech import MAX_TEXT, MAX_TEXTS, said_in_message, spoken
from cardkeeper.drift.state import REFUSING, TaskState, read_state
from cardkeeper.drift.summary import observation_from_summary
from cardkeeper.errors import DocumentUnreadable

__all__ = ["Observation", "observation_from_summary", "observe", "read_outcome"]

MAX_EVENTS = 1_000
"""Events that one document may hold."""

_WRAPPERS = ("task", "message", "msg", "statusUpdate", "status_update", "artifactUpdate", "artifact_update")


def read_outcome(
    document: bytes,
    *,
    binding: Binding = Binding.UNKNOWN,
    http_status: int | None = None,
    grpc_code: int | None = None,
) -> Observation:
    """Read an outcome as the client received it.

    `http_status` and `grpc_code` are what came with it. An HTTP error needs no JSON body: a page of HTML is read as a
    fault with that status. Raises DocumentUnreadable where the document is no JSON, too large, too deep, or nothing
    that A2A knows.
    """
    try:
        value = read_json(document)
    except DocumentUnreadable:
        if http_status is None or http_status < 300 or len(document) > MAX_EVENTS * MAX_TEXT:
            raise
        value = _plain_text(document)
    return observe(value, binding=binding, http_status=http_status, grpc_code=grpc_code)


def observe(
    value: JsonValue,
    *,
    binding: Binding = Binding.UNKNOWN,
    http_status: int | None = None,
    grpc_code: int | None = None,
) -> Observation:
    """Read an outcome that is a JSON value already; see read_outcome."""
    reader = _Reader(http_status, grpc_code or None)
    observation = reader.read(value, "")
    if observation is None and (http_status or 0) >= 300:
        observation = Observation(faults=(read_body(value, "", http_status=http_status, a2a=isinstance(value, dict)),))
    if observation is None and grpc_code:
        observation = Observation(faults=(Fault(pointer="", grpc_code=grpc_code),))
    if observation is None:
        raise DocumentUnreadable(
            "the document is no outcome that A2A knows: a Task, a Message, a stream event, a JSON-RPC response or an error"
        )
    if len(observation.parts) > MAX_PARTS:
        raise DocumentUnreadable(f"{len(observation.parts)} parts; at most {MAX_PARTS} are read")
    return Observation(binding=binding).merged(observation)


class _Reader:
    """Reads nested values; each method returns None where the value is not of its shape."""

    def __init__(self, http_status: int | None, grpc_code: int | None) -> None:
        self._http_status = http_status
        self._grpc_code = grpc_code

    def read(self, value: JsonValue, pointer: str) -> Observation | None:
        if isinstance(value, list):
            return self._sequence(value, pointer)
        if not isinstance(value, dict):
            return None
        if "jsonrpc" in value or "result" in value:
            return self._response(value, pointer)
        return (
            self._refusal(value, pointer)
            or self._wrapped(value, pointer)
            or _task(value, pointer)
            or _artifact_event(value, pointer)
            or _message(value, pointer)
            or _artifact(value, pointer)
            or self._bare_error(value, pointer)
        )

    def _sequence(self, values: list[JsonValue], pointer: str) -> Observation | None:
        """A stream's events or a JSON-RPC batch: read in order, the last state counts."""
        if len(values) > MAX_EVENTS:
            raise DocumentUnreadable(f"{len(values)} events; at most {MAX_EVENTS} are read")
        merged: Observation | None = None
        for index, value in enumerate(values):
            if isinstance(value, list):  # a list of lists is no stream
                return None
            observation = self.read(value, child(pointer, index))
            if observation is not None:
                merged = observation if merged is None else merged.merged(observation)
        return merged

    def _response(self, response: JsonObject, pointer: str) -> Observation:
        """A JSON-RPC response. Some carry a result beside the error: both are read."""
        observation = self._refusal(response, pointer) or Observation()
        result = response.get("result")
        where = child(pointer, "result")
        inner = self.read(result, where)
        if inner is None and isinstance(result, dict):
            inner = _foreign(result, where)
        return observation.merged(inner) if inner is not None else observation

    def _refusal(self, value: JsonObject, pointer: str) -> Observation | None:
        error = value.get("error")
        if not error or (isinstance(error, str) and ("status" in value or "artifacts" in value)):
            return None
        fault = read_error(error, child(pointer, "error"), http_status=self._http_status, grpc_code=self._grpc_code)
        return Observation(faults=(fault,))

    def _wrapped(self, value: JsonObject, pointer: str) -> Observation | None:
        """1.0 and proto JSON: {task | message | statusUpdate | artifactUpdate}."""
        if "status" in value or "artifact" in value:
            return None
        merged: Observation | None = None
        for key in _WRAPPERS:
            inner = value.get(key)
            if isinstance(inner, dict):
                observation = self.read(inner, child(pointer, key)) or Observation()
                merged = observation if merged is None else merged.merged(observation)
        return merged

    def _bare_error(self, value: JsonObject, pointer: str) -> Observation | None:
        """An error without a wrapper: google.rpc.Status, RFC 9457, or an HTTP error's own JSON."""
        status = self._http_status
        if self._grpc_code is not None or ("code" in value and "message" in value and status is None):
            return Observation(faults=(read_status(value, pointer, grpc_code=self._grpc_code),))
        if isinstance(value.get("type"), str) and ("title" in value or "detail" in value):
            return Observation(faults=(read_problem(value, pointer, http_status=status),))
        if status is not None and status >= 300:
            return Observation(faults=(read_body(value, pointer, http_status=status, a2a=True),))
        return None


def _task(task: JsonObject, pointer: str) -> Observation | None:
    """A Task or a status event: whatever has a status."""
    status = task.get("status")
    if isinstance(status, str) and not _is_state(status) and "artifacts" not in task:
        return None
    if not isinstance(status, dict | str):
        return None if not isinstance(task.get("artifacts"), list) else _task_of(task, None, {}, pointer)
    if isinstance(status, str):
        return _task_of(task, read_state(status), {}, pointer)
    return _task_of(task, read_state(status.get("state")), status, pointer)


def _is_state(text: str) -> bool:
    return read_state(text) is not TaskState.UNKNOWN


def _task_of(task: JsonObject, state: TaskState | None, status: JsonObject, pointer: str) -> Observation:
    history = _list(task.get("history"))
    said = list(_status_texts(task, state, status, pointer))
    if not said and state in REFUSING:
        # agno and others put the reason of a failure in the history alone (a2a-facts 6.3)
        agents = [(item, index) for item, index in history if not _by_user(item)]
        for item, index in agents[-1:]:
            said = list(said_in_message(item, child(child(pointer, "history"), index)))
    echoes = [text for item, _ in history if _by_user(item) for text in _texts(item)]
    parts: tuple[Part, ...] = ()
    artifact_said: list[tuple[str, str]] = []
    where = child(pointer, "artifacts")
    for item, index in _list(task.get("artifacts")):
        if isinstance(item, dict):
            parts += read_parts(item, child(where, index))
            artifact_said.extend(_text_parts(item, child(where, index)))
    return Observation(
        state=state,
        statements=_statements(said, Place.STATUS, state) + _statements(artifact_said, Place.ARTIFACT, state),
        parts=parts if state not in REFUSING and state is not TaskState.CANCELED else (),
        echoes=tuple(echoes[:MAX_TEXTS]),
    )


def _status_texts(
    task: JsonObject, state: TaskState | None, status: JsonObject, pointer: str
) -> Iterator[tuple[str, str]]:
    message = status.get("message", status.get("update"))
    if message is not None:
        yield from said_in_message(message, child(child(pointer, "status"), "message"))
    if state in REFUSING:
        for key in ("error", "reason", "detail"):
            yield from spoken(status.get(key), child(child(pointer, "status"), key))
        for key in ("error", "message", "metadata"):
            yield from spoken(task.get(key), child(pointer, key))


def _artifact_event(event: JsonObject, pointer: str) -> Observation | None:
    artifact = event.get("artifact")
    if not isinstance(artifact, dict):
        return None
    where = child(pointer, "artifact")
    holders = (event, artifact)  # 0.1 has the chunk's flags in the artifact
    return Observation(
        statements=_statements(_text_parts(artifact, where), Place.ARTIFACT, TaskState.WORKING),
        parts=read_parts(artifact, where),
        append=any(holder.get("append") is True for holder in holders),
        last_chunk=any(holder.get(key) is True for holder in holders for key in ("lastChunk", "last_chunk")),
    )


def _message(message: JsonObject, pointer: str) -> Observation | None:
    if not ("role" in message or message.get("kind") == "message" or "messageId" in message):
        return None
    if _by_user(message):
        return Observation(echoes=tuple(_texts(message))[:MAX_TEXTS])
    said = said_in_message(message, pointer)
    return Observation(statements=_statements(said, Place.MESSAGE, None), message_parts=read_parts(message, pointer))


def _artifact(artifact: JsonObject, pointer: str) -> Observation | None:
    if not isinstance(artifact.get("parts"), list):
        return None
    return Observation(
        statements=_statements(_text_parts(artifact, pointer), Place.ARTIFACT, TaskState.WORKING),
        parts=read_parts(artifact, pointer),
        append=artifact.get("append") is True,
        last_chunk=artifact.get("lastChunk") is True,
    )


def _foreign(result: JsonObject, pointer: str) -> Observation:
    """A result that is no A2A object: some agents answer {"status": "error", "error": …} and mean a failure."""
    failed = any(result.get(key) is False for key in ("success", "ok")) or bool(result.get("error"))
    failed = failed or str(result.get("status", "")).lower() in ("error", "failed", "failure")
    state = TaskState.FAILED if failed else None
    return Observation(statements=_statements(spoken(dict(result), pointer), Place.MESSAGE, state))


def _statements(
    said: Iterator[tuple[str, str]] | list[tuple[str, str]], place: Place, state: TaskState | None
) -> tuple[Statement, ...]:
    found = [(text, where) for text, where in said if text.strip()][:MAX_TEXTS]
    return tuple(Statement(text=text, pointer=where, place=place, state=state) for text, where in found)


def _list(value: JsonValue) -> list[tuple[JsonValue, int]]:
    return [(item, index) for index, item in enumerate(value)] if isinstance(value, list) else []


def _by_user(message: JsonValue) -> bool:
    role = message.get("role") if isinstance(message, dict) else None
    return role == 1 or (isinstance(role, str) and role.lower().removeprefix("role_") == "user")


def _texts(message: JsonValue) -> Iterator[str]:
    if isinstance(message, dict):
        for raw, _ in list(part_items(message, ""))[:MAX_TEXTS]:
            if text := part_text(raw)[:MAX_TEXT]:
                yield text


def _text_parts(artifact: JsonObject, pointer: str) -> list[tuple[str, str]]:
    items = list(part_items(artifact, pointer))[:MAX_TEXTS]
    return [(text[:MAX_TEXT], where) for raw, where in items if (text := part_text(raw))]


def _plain_text(document: bytes) -> JsonValue:
    """The body of an HTTP error that is no JSON; a page is nothing an agent says."""
    text = document[: MAX_TEXT * 4].decode("utf-8", "replace").strip()[:MAX_TEXT]
    return "" if text.startswith("<") else text
