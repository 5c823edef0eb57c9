"""What an agent answered, in whatever form the caller has it, as the document that the service reads."""

import json
from typing import Any, TypeAlias

from cardkeeper_client.errors import CardkeeperError
from cardkeeper_client.v1 import observation_pb2

Answer: TypeAlias = Any
"""JSON as text or bytes, a value that JSON can carry, a protobuf message of A2A, a pydantic model, or a Document or
TaskOutcomeSummary made by the caller."""

MAX_DOCUMENT = 1024 * 1024
"""Bytes that the service reads of one document."""
MAX_CAUSES = 8
"""Exceptions behind an exception that are looked at."""

JSONRPC_CODES = {
    "TaskNotFoundError": -32001,
    "TaskNotCancelableError": -32002,
    "PushNotificationNotSupportedError": -32003,
    "UnsupportedOperationError": -32004,
    "ContentTypeNotSupportedError": -32005,
    "InvalidAgentResponseError": -32006,
    "ExtendedAgentCardNotConfiguredError": -32007,
    "ExtensionSupportRequiredError": -32008,
    "VersionNotSupportedError": -32009,
    "InvalidRequestError": -32600,
    "MethodNotFoundError": -32601,
    "InvalidParamsError": -32602,
    "InternalError": -32603,
}
"""Errors as the A2A specification names them, with their JSON-RPC codes: SDKs raise the name and drop the code."""


def document_of(answer: Answer, *, http_status: int | None = None) -> observation_pb2.Document:
    """Return the document that an answer is. Raises TypeError or ValueError where it is none of the forms."""
    if isinstance(answer, observation_pb2.Document):
        return answer
    if hasattr(answer, "SerializeToString") and hasattr(answer, "DESCRIPTOR"):
        return observation_pb2.Document(proto=answer.SerializeToString(), proto_type=answer.DESCRIPTOR.full_name)
    return observation_pb2.Document(json=_json(answer), http_status=http_status)


def document_of_error(error: BaseException) -> observation_pb2.Document | None:
    """Return what an exception says that came from the agent; None where it is not known to have.

    Read by shape, so that no HTTP or A2A library is needed here: errors of gRPC, of HTTP clients, and of A2A SDKs. Where an
    error was raised from another one, the one nearest to the wire tells most.
    """
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and len(chain) < MAX_CAUSES:
        if isinstance(cause, CardkeeperError):
            return None  # what is behind it came from the service, not from the agent
        chain.append(cause)
        cause = cause.__cause__
    for read in (_of_grpc, _of_response, _of_jsonrpc, _of_name, _of_status):
        for item in reversed(chain):
            document = read(item)
            if document is not None:
                return document
    return None


def _of_grpc(error: Any) -> observation_pb2.Document | None:
    """An error of a gRPC call: its code, and the rich status where it has one."""
    if not callable(getattr(error, "code", None)) or not callable(getattr(error, "details", None)):
        return None
    value = getattr(error.code(), "value", None)
    if not isinstance(value, tuple):
        return None
    number = value[0]
    trailers = error.trailing_metadata() if callable(getattr(error, "trailing_metadata", None)) else ()
    for key, status in trailers or ():
        if key == "grpc-status-details-bin":
            return observation_pb2.Document(proto=status, proto_type="google.rpc.Status", grpc_code=number)
    return observation_pb2.Document(json=_json({"code": number, "message": error.details() or ""}), grpc_code=number)


def _of_response(error: Any) -> observation_pb2.Document | None:
    """An error of an HTTP client that keeps the response (httpx, requests)."""
    response: Any = getattr(error, "response", None)
    status = getattr(response, "status_code", None)
    return observation_pb2.Document(json=_body(response), http_status=status) if _is_http(status) else None


def _of_jsonrpc(error: Any) -> observation_pb2.Document | None:
    """An error that carries the `error` member of a JSON-RPC response."""
    inner = getattr(error, "error", None)
    code = _member(inner, "code")
    return _jsonrpc(code, _member(inner, "message"), _member(inner, "data")) if isinstance(code, int) else None


def _of_name(error: Any) -> observation_pb2.Document | None:
    """An error that is named as in the A2A specification, and keeps message and data."""
    if not hasattr(error, "message"):
        return None
    for kind in type(error).__mro__:
        if kind.__name__ in JSONRPC_CODES:
            return _jsonrpc(JSONRPC_CODES[kind.__name__], error.message, getattr(error, "data", None))
    return None


def _of_status(error: Any) -> observation_pb2.Document | None:
    """An error that keeps an HTTP status and no body."""
    for name in ("status_code", "status"):
        status = getattr(error, name, None)
        if _is_http(status):
            return observation_pb2.Document(json=_json({"message": str(error)}), http_status=status)
    return None


def _jsonrpc(code: int, message: Any, data: Any) -> observation_pb2.Document:
    said = {"code": code, "message": str(message or ""), "data": _plain(data)}
    return observation_pb2.Document(json=_json({"jsonrpc": "2.0", "id": None, "error": said}))


def _json(answer: Answer) -> bytes:
    if isinstance(answer, bytes):
        return answer or b"null"
    if isinstance(answer, str):
        return answer.encode() or b"null"
    if hasattr(answer, "model_dump_json"):  # pydantic, which the 0.x SDKs answer with
        return str(answer.model_dump_json(by_alias=True, exclude_none=True)).encode()
    return json.dumps(answer).encode()


def _body(response: Any) -> bytes:
    """The body, if it is at hand: the status tells even without."""
    try:
        content = getattr(response, "content", b"")
    except RuntimeError:  # httpx: a streamed response that was not read
        content = b""
    return content if isinstance(content, bytes) and 0 < len(content) <= MAX_DOCUMENT else b'""'


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def _plain(value: Any) -> Any:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return None
    return value


def _is_http(status: Any) -> bool:
    return isinstance(status, int) and 100 <= status <= 599
