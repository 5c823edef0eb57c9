"""What an agent answered, in whatever form the caller has it, as the document that the service reads."""

import json
from typing import Any, TypeAlias

from cardkeeper_client.v1 import observation_pb2

Answer: TypeAlias = Any
"""JSON as text or bytes, a value that JSON can carry, a protobuf message of A2A, a pydantic model, or a Document or
TaskOutcomeSummary made by the caller."""


def document_of(answer: Answer, *, http_status: int | None = None) -> observation_pb2.Document:
    """Return the document that an answer is. Raises TypeError where it is none of the forms."""
    if isinstance(answer, observation_pb2.Document):
        return answer
    if hasattr(answer, "SerializeToString") and hasattr(answer, "DESCRIPTOR"):
        return observation_pb2.Document(proto=answer.SerializeToString(), proto_type=answer.DESCRIPTOR.full_name)
    return observation_pb2.Document(json=_json(answer), http_status=http_status)


def document_of_error(error: BaseException) -> observation_pb2.Document | None:
    """Return what an exception says that came from the agent; None where it is not known to have.

    Read by shape, so that no HTTP or A2A library is needed here: errors of gRPC, of HTTP clients that keep the response
    (httpx, requests), and of A2A SDKs that carry a JSON-RPC error.
    """
    if callable(getattr(error, "code", None)) and callable(getattr(error, "details", None)):
        return _of_grpc(error)
    response: Any = getattr(error, "response", None)
    if isinstance(getattr(response, "status_code", None), int):
        return observation_pb2.Document(json=_body(response), http_status=_http(response.status_code))
    inner = getattr(error, "error", None)
    code, message = (_member(inner, name) for name in ("code", "message"))
    if isinstance(code, int):
        said = {"code": code, "message": str(message or ""), "data": _plain(_member(inner, "data"))}
        return observation_pb2.Document(json=_json({"jsonrpc": "2.0", "id": None, "error": said}))
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return observation_pb2.Document(json=_json({"message": str(error)}), http_status=_http(status))
    return None


def _of_grpc(error: Any) -> observation_pb2.Document:
    number = error.code().value[0]
    trailers = error.trailing_metadata() if callable(getattr(error, "trailing_metadata", None)) else ()
    for key, value in trailers or ():
        if key == "grpc-status-details-bin":
            return observation_pb2.Document(proto=value, proto_type="google.rpc.Status", grpc_code=number)
    return observation_pb2.Document(json=_json({"code": number, "message": error.details() or ""}), grpc_code=number)


def _json(answer: Any) -> bytes:
    if isinstance(answer, bytes):
        return answer or b"null"
    if isinstance(answer, str):
        return answer.encode() or b"null"
    if hasattr(answer, "model_dump_json"):  # pydantic, which the 0.x SDKs answer with
        return str(answer.model_dump_json(by_alias=True, exclude_none=True)).encode()
    return json.dumps(answer).encode()


def _body(response: Any) -> bytes:
    content = getattr(response, "content", b"")
    return content if isinstance(content, bytes) and content else b'""'


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def _plain(value: Any) -> Any:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return None
    return value


def _http(status: int) -> int | None:
    return status if 100 <= status <= 599 else None
