"""What an agent answered or refused, in the forms that callers have it in."""

import json
from typing import Any

import grpc
import httpx
import pytest
from a2a.types import a2a_pb2
from a2a.utils import errors as a2a_errors
from pydantic import BaseModel, Field

from cardkeeper_client import ServiceUnavailableError
from cardkeeper_client.observed import JSONRPC_CODES, document_of, document_of_error
from cardkeeper_client.v1 import observation_pb2


class Model(BaseModel):
    context_id: str = Field(serialization_alias="contextId")
    absent: str | None = None


@pytest.mark.parametrize(
    ("answer", "sent"),
    [
        (b'{"a": 1}', b'{"a": 1}'),
        ('{"a": 1}', b'{"a": 1}'),
        ({"a": [1, None]}, b'{"a": [1, null]}'),
        ("", b"null"),
        (None, b"null"),
        (Model(context_id="c"), b'{"contextId":"c"}'),
    ],
)
def test_json_goes_as_it_is_and_values_as_json(answer: Any, sent: bytes) -> None:
    assert document_of(answer).json == sent


def test_a_protobuf_message_goes_as_its_bytes_and_its_name() -> None:
    task = a2a_pb2.Task(id="t")
    document = document_of(task)
    assert (document.proto, document.proto_type) == (task.SerializeToString(), "lf.a2a.v1.Task")


def test_a_ready_document_is_left_alone() -> None:
    document = observation_pb2.Document(json=b"{}", http_status=404)
    assert document_of(document) is document


@pytest.mark.parametrize("answer", [object(), {1, 2}, "\ud800"])
def test_what_is_none_of_the_forms_is_refused(answer: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        document_of(answer)


# Errors


def jsonrpc(document: observation_pb2.Document | None) -> dict[str, Any]:
    assert document is not None
    error: dict[str, Any] = json.loads(document.json)["error"]
    return error


def test_every_error_that_the_sdk_names_has_the_code_of_the_specification() -> None:
    known = {kind.__name__: code for kind, code in a2a_errors.JSON_RPC_ERROR_CODE_MAP.items()}
    assert JSONRPC_CODES.items() <= known.items()
    assert set(known) - set(JSONRPC_CODES) == {"JSONParseError"}  # says nothing of what the agent offers


def test_an_error_of_the_sdk_without_a_code_is_read_by_its_name() -> None:
    class Ours(a2a_errors.InvalidParamsError):
        """A subclass is the same error."""

    for kind in (a2a_errors.InvalidParamsError, Ours):
        said = jsonrpc(document_of_error(kind("unknown skill: s", data={"skill": "s"})))
        assert said == {"code": -32602, "message": "unknown skill: s", "data": {"skill": "s"}}


def test_an_error_that_keeps_the_jsonrpc_member_is_read_from_it() -> None:
    class Sdk03Error(Exception):
        error = type("JSONRPCError", (), {"code": -32601, "message": "no such method", "data": object()})()

    class PlainError(Exception):
        error = {"code": -32601, "message": "no such method"}  # noqa: RUF012 - a test's shape

    for error in (Sdk03Error(), PlainError()):
        assert jsonrpc(document_of_error(error)) == {"code": -32601, "message": "no such method", "data": None}


def response(status: int, body: bytes) -> httpx.HTTPStatusError:
    request = httpx.Request("POST", "http://a.example")
    return httpx.HTTPStatusError("m", request=request, response=httpx.Response(status, content=body, request=request))


def test_an_http_error_brings_status_and_body() -> None:
    document = document_of_error(response(404, b'{"detail": "gone"}'))
    assert document == observation_pb2.Document(json=b'{"detail": "gone"}', http_status=404)
    assert document_of_error(response(410, b"Gone")) == observation_pb2.Document(json=b"Gone", http_status=410)


def test_a_body_that_was_not_read_or_is_too_long_leaves_the_status() -> None:
    class Body(httpx.SyncByteStream):
        """Never read."""

    request = httpx.Request("POST", "http://a.example")
    unread = httpx.Response(404, stream=Body(), request=request)
    for error in (httpx.HTTPStatusError("m", request=request, response=unread), response(404, b"x" * 2**20 + b"x")):
        assert document_of_error(error) == observation_pb2.Document(json=b'""', http_status=404)


def test_an_error_that_keeps_a_status_alone_is_told_by_it() -> None:
    class AiohttpError(Exception):
        status = 404

    document = document_of_error(AiohttpError("not found"))
    assert document == observation_pb2.Document(json=b'{"message": "not found"}', http_status=404)


class CallError(grpc.RpcError):
    def __init__(self, trailers: Any = ()) -> None:
        self.trailing_metadata = lambda: trailers

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNIMPLEMENTED

    def details(self) -> str:
        return "unknown method"


def test_an_error_of_grpc_brings_its_code_and_its_rich_status() -> None:
    plain = document_of_error(CallError())
    assert plain is not None
    assert (json.loads(plain.json), plain.grpc_code) == ({"code": 12, "message": "unknown method"}, 12)
    rich = document_of_error(CallError((("grpc-status-details-bin", b"\x08\x0c"),)))
    assert rich == observation_pb2.Document(proto=b"\x08\x0c", proto_type="google.rpc.Status", grpc_code=12)


def test_of_errors_raised_from_errors_the_one_nearest_to_the_wire_tells() -> None:
    mapped = a2a_errors.MethodNotFoundError("Resource not found")
    mapped.__cause__ = response(404, b'{"x": 1}')
    outer = RuntimeError("the task failed")
    outer.__cause__ = mapped
    assert document_of_error(outer) == observation_pb2.Document(json=b'{"x": 1}', http_status=404)


def test_what_the_service_itself_refused_is_no_answer_of_the_agent() -> None:
    refused = ServiceUnavailableError("away", code="UNAVAILABLE")
    refused.__cause__ = CallError()
    outer = RuntimeError("no card")
    outer.__cause__ = refused
    assert document_of_error(refused) is None
    assert document_of_error(outer) is None


@pytest.mark.parametrize(
    "error",
    [ZeroDivisionError(), TimeoutError("slow"), OSError(2, "x"), httpx.ConnectTimeout("slow"), KeyError("code")],
)
def test_an_error_of_the_callers_own_says_nothing_of_the_agent(error: Exception) -> None:
    assert document_of_error(error) is None


def test_causes_that_go_round_in_a_circle_end() -> None:
    one, two = RuntimeError("one"), RuntimeError("two")
    one.__cause__, two.__cause__ = two, one
    assert document_of_error(one) is None
