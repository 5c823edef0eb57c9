"""Errors of every binding: JSON-RPC, google.rpc.Status as JSON, RFC 9457 problems, and what SDKs send instead."""

import re
from collections.abc import Iterator, Mapping

from cardkeeper.drift.document import JsonValue, child
from cardkeeper.drift.observation import Fault, FieldRemark, Place, Statement
from cardkeeper.drift.parts import text_member
from cardkeeper.drift.speech import MAX_TEXT, MAX_TEXTS, SKILL_KEYS, spoken

GRPC_CODES = (
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
)
"""By number."""

_REASON = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_FIELD_KEYS = ("field", "path", "param", "parameter", "fieldPath", "field_path")
_REMARK_KEYS = ("description", "reason", "message", "msg", "detail", "error")


def read_error(error: JsonValue, pointer: str, *, http_status: int | None, grpc_code: int | None) -> Fault:
    """Return the fault that a member `error` holds: a JSON-RPC error, a google.rpc.Status, or a bare text."""
    if not isinstance(error, dict):
        texts = tuple(spoken(error, pointer))
        return _fault(pointer, texts, "", http_status=http_status, grpc_code=grpc_code)
    code = error.get("code")
    number = code if isinstance(code, int) and not isinstance(code, bool) else None
    status = text_member(error, "status")
    rpc = number if number is not None and not _is_status_code(number, error) else None
    if number is not None and 300 <= number <= 599 and http_status is None:
        http_status = number
    details: list[tuple[str, JsonValue]] = [(key, error[key]) for key in ("data", "details") if key in error]
    texts = (*_head(error, pointer), *(found for key, value in details for found in spoken(value, child(pointer, key))))
    return Fault(
        pointer=pointer,
        code=rpc,
        http_status=http_status,
        grpc_code=_grpc_number(status) if status else grpc_code,
        reason=_reason(error, [value for _, value in details]),
        message=text_member(error, "message")[:MAX_TEXT],
        statements=_statements(texts),
        fields=tuple(_fields(details, pointer))[:MAX_TEXTS],
    )


def read_status(status: Mapping[str, JsonValue], pointer: str, *, grpc_code: int | None) -> Fault:
    """Return the fault of a google.rpc.Status that comes over gRPC: `code` is a gRPC code, as number or name."""
    code = status.get("code")
    number = code if isinstance(code, int) and not isinstance(code, bool) else _grpc_number(str(code or ""))
    error = {key: value for key, value in status.items() if key != "code"}
    return read_error(error, pointer, http_status=None, grpc_code=grpc_code if grpc_code is not None else number)


def read_problem(problem: Mapping[str, JsonValue], pointer: str, *, http_status: int | None) -> Fault:
    """Return the fault of an RFC 9457 problem; the last segment of an A2A `type` is the reason."""
    status = problem.get("status")
    kind = text_member(problem, "type")
    reason = re.sub(r"[^A-Za-z0-9]+", "_", kind.rstrip("/").rpartition("/")[2]).upper() if "/errors/" in kind else ""
    texts = [(text, child(pointer, key)) for key in ("title", "detail") if (text := text_member(problem, key))]
    return Fault(
        pointer=pointer,
        http_status=status if isinstance(status, int) and not isinstance(status, bool) else http_status,
        reason=_plain_reason(text_member(problem, "reason") or reason),
        message=text_member(problem, "detail", "title")[:MAX_TEXT],
        statements=_statements((*texts, *spoken(problem.get("errors"), child(pointer, "errors")))),
        fields=tuple(_fields([("errors", problem.get("errors"))], pointer))[:MAX_TEXTS],
    )


def read_body(body: JsonValue, pointer: str, *, http_status: int | None, a2a: bool) -> Fault:
    """Return the fault of an error body in no standard form: `{"message": …}` of the 0.3 Python SDK, a text, a page."""
    texts = tuple(spoken(body, pointer))
    reason = _reason(body, [body]) if isinstance(body, dict) else ""
    return _fault(
        pointer,
        texts,
        reason,
        http_status=http_status,
        fields=tuple(_fields([("", body)], pointer)),
        a2a=a2a,
    )


def _fault(
    pointer: str,
    texts: tuple[tuple[str, str], ...],
    reason: str,
    *,
    http_status: int | None = None,
    grpc_code: int | None = None,
    fields: tuple[FieldRemark, ...] = (),
    a2a: bool = True,
) -> Fault:
    return Fault(
        pointer=pointer,
        http_status=http_status,
        grpc_code=grpc_code,
        reason=reason,
        message=texts[0][0] if texts else "",
        statements=_statements(texts),
        fields=fields[:MAX_TEXTS],
        a2a=a2a,
    )


def _is_status_code(number: int, error: Mapping[str, JsonValue]) -> bool:
    """Whether the code is an HTTP status (google.rpc.Status as JSON), not a JSON-RPC code."""
    return 100 <= number <= 599 and ("details" in error or "status" in error or "data" not in error)


def _head(error: Mapping[str, JsonValue], pointer: str) -> Iterator[tuple[str, str]]:
    """What the error says outside of its details; a code in words ("unknown_skill") says something too."""
    skill = text_member(error, *SKILL_KEYS)
    for key in ("message", "detail", "description", "title", "code", "type", "name", "reason"):
        if text := text_member(error, key)[:MAX_TEXT].strip():
            yield (f"{text}: {skill}" if skill and skill not in text else text), child(pointer, key)


def _statements(texts: tuple[tuple[str, str], ...]) -> tuple[Statement, ...]:
    return tuple(Statement(text=text, pointer=where, place=Place.ERROR) for text, where in texts[:MAX_TEXTS])


def _grpc_number(name: str) -> int | None:
    name = name.upper().rpartition(".")[2]
    return GRPC_CODES.index(name) if name in GRPC_CODES else None


def _reason(error: Mapping[str, JsonValue], details: list[JsonValue]) -> str:
    """ErrorInfo.reason wherever it stands; else a member that looks like one."""
    for detail in details:
        for item in detail if isinstance(detail, list) else [detail]:
            if isinstance(item, dict) and (reason := text_member(item, "reason")) and _REASON.fullmatch(reason):
                return _plain_reason(reason)
    for holder in (error, *details):
        if isinstance(holder, dict):
            for key in ("reason", "code", "type", "error", "errorCode", "error_code", "name"):
                if _REASON.fullmatch(text := text_member(holder, key)[:64]):
                    return _plain_reason(text)
    return ""


def _plain_reason(reason: str) -> str:
    return reason[:64].removesuffix("_ERROR") if reason != "INTERNAL_ERROR" else reason


def _fields(details: list[tuple[str, JsonValue]], pointer: str) -> Iterator[FieldRemark]:
    """Remarks about single fields: BadRequest, pydantic's list, and members that name a field or a skill."""
    for key, detail in details:
        where = child(pointer, key) if key else pointer
        yield from _fields_of(detail, where, depth=0)


def _fields_of(value: JsonValue, pointer: str, *, depth: int) -> Iterator[FieldRemark]:
    if depth > 4:
        return
    if isinstance(value, list):
        for index, item in enumerate(value[:MAX_TEXTS]):
            yield from _fields_of(item, child(pointer, index), depth=depth + 1)
    elif isinstance(value, dict):
        location = value.get("loc")
        field = text_member(value, *_FIELD_KEYS)
        if isinstance(location, list):
            field = ".".join(str(step) for step in location[:16] if isinstance(step, str | int))
        refused = value.get("input", value.get("value"))
        if field:
            yield FieldRemark(
                field=field[:256],
                remark=text_member(value, *_REMARK_KEYS)[:MAX_TEXT],
                value=refused[:256] if isinstance(refused, str) else "",
                pointer=pointer,
            )
        for key, item in value.items():
            if not field and key in SKILL_KEYS and isinstance(item, str):
                yield FieldRemark(field=key, remark="", value=item[:256], pointer=child(pointer, key))
            elif key in ("fieldViolations", "field_violations", "errors", "violations", "metadata", "details", "data"):
                yield from _fields_of(item, child(pointer, key), depth=depth + 1)
