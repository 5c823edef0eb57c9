"""Errors to gRPC status: the one place where it is decided what a caller sees of a failure.

Details stay under MAX_DETAILS: beyond 8 KiB of trailers a caller gets RESOURCE_EXHAUSTED, and the status and every detail
are lost (measured with grpcio 1.85).
"""

from collections.abc import Iterator, Sequence

import grpc
from google.protobuf import any_pb2, duration_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from cardkeeper.errors import (
    CardInvalid,
    CardkeeperError,
    InvalidInput,
    NotFound,
    NotOffered,
    SkillNotAdvertised,
)
from cardkeeper.v1 import error_reason_pb2 as pb

DOMAIN = "cardkeeper.dev"
MAX_DETAILS = 4096
"""Bytes of a serialised google.rpc.Status, at most."""
MAX_MESSAGE = 512
MAX_WORD = 200
MAX_LISTED = 1536
"""Bytes that one list of a detail may take."""

CODES = {
    "INVALID_REQUEST": grpc.StatusCode.INVALID_ARGUMENT,
    "DOCUMENT_UNREADABLE": grpc.StatusCode.INVALID_ARGUMENT,
    "SKILL_NOT_ADVERTISED": grpc.StatusCode.NOT_FOUND,
    "AGENT_UNKNOWN": grpc.StatusCode.NOT_FOUND,
    "SNAPSHOT_UNKNOWN": grpc.StatusCode.NOT_FOUND,
    "AGENT_EXISTS": grpc.StatusCode.ALREADY_EXISTS,
    "MODE_NOT_OFFERED": grpc.StatusCode.FAILED_PRECONDITION,
    "CAPABILITY_ABSENT": grpc.StatusCode.FAILED_PRECONDITION,
    # An agent's outage must not look like ours: retry policies retry UNAVAILABLE, and another replica would not help.
    "CARD_UNREACHABLE": grpc.StatusCode.FAILED_PRECONDITION,
    "CARD_INVALID": grpc.StatusCode.FAILED_PRECONDITION,
    "CARD_SUSPECT": grpc.StatusCode.FAILED_PRECONDITION,
    "EGRESS_REFUSED": grpc.StatusCode.PERMISSION_DENIED,
    "REVISION_NOT_REACHED": grpc.StatusCode.OUT_OF_RANGE,
    "EPOCH_CHANGED": grpc.StatusCode.OUT_OF_RANGE,
    "RATE_LIMITED": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "ACK_OVERDUE": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "QUOTA_EXCEEDED": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "DRAINING": grpc.StatusCode.UNAVAILABLE,
    "STORE_UNAVAILABLE": grpc.StatusCode.UNAVAILABLE,
    "OVERLOADED": grpc.StatusCode.UNAVAILABLE,
    "UNAUTHENTICATED": grpc.StatusCode.UNAUTHENTICATED,
    "DEADLINE_TOO_SHORT": grpc.StatusCode.DEADLINE_EXCEEDED,
    "INTERNAL": grpc.StatusCode.INTERNAL,
}


def status_of(error: CardkeeperError) -> status_pb2.Status:
    """Return the status with its details, ErrorInfo first, within MAX_DETAILS bytes."""
    status = status_pb2.Status(code=CODES[error.reason].value[0], message=clip(error.message, MAX_MESSAGE))
    for detail in (_info(error), *_more(error)):
        packed = any_pb2.Any()
        packed.Pack(detail)
        if status.ByteSize() + packed.ByteSize() + 8 <= MAX_DETAILS:
            status.details.append(packed)
    return status


async def abort(context: "grpc.aio.ServicerContext[bytes, bytes]", error: CardkeeperError) -> None:
    """End a call with an error; raises grpc's abort, never returns."""
    status = rpc_status.to_status(status_of(error))
    trailers = tuple(status.trailing_metadata or ())
    if status.code is grpc.StatusCode.UNAVAILABLE:
        # gRFC A6: tell the channel's own retry policy when to come back.
        trailers += (("grpc-retry-pushback-ms", str(int((error.retry_after or 1.0) * 1000))),)
    await context.abort(status.code, status.details or "", trailers)


def clip(text: str, limit: int) -> str:
    """Cut text to a number of characters, and make it valid UTF-8: cards may bring lone surrogates."""
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _info(error: CardkeeperError) -> error_details_pb2.ErrorInfo:
    reason = f"ERROR_REASON_{error.reason}"
    pb.ErrorReason.Value(reason)  # a reason that the contract does not have is a defect: fail loudly in tests
    metadata = {clip(key, 64): clip(value, MAX_WORD) for key, value in list(error.metadata.items())[:8]}
    return error_details_pb2.ErrorInfo(reason=reason, domain=DOMAIN, metadata=metadata)


def _more(error: CardkeeperError) -> Iterator[Message]:
    if error.retry_after is not None:
        delay = duration_pb2.Duration()
        delay.FromMilliseconds(int(error.retry_after * 1000))
        yield error_details_pb2.RetryInfo(retry_delay=delay)
    match error:
        case InvalidInput():
            yield error_details_pb2.BadRequest(
                field_violations=[
                    error_details_pb2.BadRequest.FieldViolation(
                        field=clip(field, MAX_WORD), description=clip(text, MAX_WORD)
                    )
                    for field, text in error.violations[:8]
                ]
            )
        case SkillNotAdvertised():
            near, cut = fit(error.near, MAX_LISTED // 3)
            advertised, cut_too = fit(error.advertised, MAX_LISTED)
            yield pb.SkillRefusal(near_skill_ids=near, advertised_skill_ids=advertised, truncated=cut or cut_too)
        case NotFound():
            yield error_details_pb2.ResourceInfo(
                resource_type="cardkeeper.dev/Agent", resource_name=clip(error.resource, MAX_WORD)
            )
        case NotOffered():
            offered, cut = fit(error.offered, MAX_LISTED)
            yield pb.SkillRefusal(offered_modes=offered, truncated=cut)
        case CardInvalid():
            yield error_details_pb2.PreconditionFailure(
                violations=[
                    error_details_pb2.PreconditionFailure.Violation(
                        type=clip(finding.id, 64),
                        subject=clip(finding.pointer, 64),
                        description=clip(finding.message, 160),
                    )
                    for finding in error.findings[:8]
                ]
            )
    if error.reason == "QUOTA_EXCEEDED":
        yield error_details_pb2.QuotaFailure(
            violations=[error_details_pb2.QuotaFailure.Violation(description=clip(error.message, MAX_WORD))]
        )


def fit(items: Sequence[str], budget: int) -> tuple[list[str], bool]:
    """Take items from the front while they fit into a number of bytes; say whether some were left out."""
    taken: list[str] = []
    for item in items:
        text = clip(item, MAX_WORD)
        budget -= len(text.encode()) + 3
        if budget < 0:
            return taken, True
        taken.append(text)
    return taken, False
