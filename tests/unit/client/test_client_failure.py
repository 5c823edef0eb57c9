"""From the trailers of a failed call to a typed error."""

from typing import Any

import grpc
import pytest
from google.protobuf import any_pb2, duration_pb2
from google.rpc import error_details_pb2, status_pb2

from cardkeeper_client import ServiceError, ServiceUnavailableError, SkillRefusedError
from cardkeeper_client.failure import service_error
from cardkeeper_client.v1 import error_reason_pb2


class Failed(grpc.RpcError):
    """A call's error in gRPC's shape, both of the threaded and of the asyncio stack."""

    def __init__(self, code: grpc.StatusCode, words: str | None, trailers: Any = ()) -> None:
        super().__init__(words)
        self._code, self._words, self._trailers = code, words, trailers

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str | None:
        return self._words

    def trailing_metadata(self) -> Any:
        return self._trailers


def failed(code: grpc.StatusCode, *details: Any) -> Failed:
    """With the details as the public google.rpc messages write them, which the client does not depend on."""
    status = status_pb2.Status(code=code.value[0], message="words")
    for detail in details:
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    return Failed(code, "words", (("x", "y"), ("grpc-status-details-bin", status.SerializeToString())))


def test_a_refusal_is_read_with_its_reason_and_what_is_offered_instead() -> None:
    error = service_error(
        failed(
            grpc.StatusCode.NOT_FOUND,
            error_details_pb2.ErrorInfo(
                reason="ERROR_REASON_SKILL_NOT_ADVERTISED", domain="cardkeeper.dev", metadata={"agent": "agents/a"}
            ),
            error_reason_pb2.SkillRefusal(near_skill_ids=["s2"], advertised_skill_ids=["s2", "t"]),
        )
    )
    assert isinstance(error, SkillRefusedError)
    assert (error.reason, error.code, error.message) == ("SKILL_NOT_ADVERTISED", "NOT_FOUND", "words")
    assert error.metadata == {"agent": "agents/a"}
    assert (error.near, error.advertised, error.offered) == (("s2",), ("s2", "t"), ())
    assert error.retry_after is None


def test_a_delay_is_in_seconds() -> None:
    delay = error_details_pb2.RetryInfo(retry_delay=duration_pb2.Duration(seconds=1, nanos=250_000_000))
    info = error_details_pb2.ErrorInfo(reason="ERROR_REASON_CARD_SUSPECT")
    error = service_error(failed(grpc.StatusCode.FAILED_PRECONDITION, info, delay))
    assert type(error) is ServiceError
    assert (error.reason, error.retry_after) == ("CARD_SUSPECT", 1.25)


def test_wrong_fields_are_named() -> None:
    violation = error_details_pb2.BadRequest.FieldViolation(field="need.skill_id", description="is required")
    error = service_error(
        failed(grpc.StatusCode.INVALID_ARGUMENT, error_details_pb2.BadRequest(field_violations=[violation]))
    )
    assert error.fields == {"need.skill_id": "is required"}


@pytest.mark.parametrize(
    "code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED]
)
def test_a_service_that_is_away_is_told_apart(code: grpc.StatusCode) -> None:
    error = service_error(Failed(code, "gone"))
    assert isinstance(error, ServiceUnavailableError)
    assert (error.reason, error.code) == (code.name, code.name)


@pytest.mark.parametrize("trailers", [(), None, (("grpc-status-details-bin", b"\xff\xff"),), (("a", "b"),)])
def test_an_error_without_readable_details_is_still_one(trailers: Any) -> None:
    error = service_error(Failed(grpc.StatusCode.PERMISSION_DENIED, None, trailers))
    assert type(error) is ServiceError
    assert (error.reason, error.metadata, error.fields) == ("PERMISSION_DENIED", {}, {})


def test_a_detail_that_cannot_be_read_does_not_hide_the_error() -> None:
    status = status_pb2.Status(code=5)
    status.details.append(any_pb2.Any(type_url="type.googleapis.com/google.rpc.ErrorInfo", value=b"\xff"))
    error = service_error(
        Failed(grpc.StatusCode.NOT_FOUND, "w", (("grpc-status-details-bin", status.SerializeToString()),))
    )
    assert (error.code, error.message) == ("NOT_FOUND", "w")
