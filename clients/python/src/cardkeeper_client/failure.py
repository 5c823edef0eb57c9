"""From a failed call to a typed error: the one place where gRPC's details are read."""

from collections.abc import Mapping

import grpc
from google.protobuf.message import DecodeError

from cardkeeper_client.errors import ServiceError, ServiceUnavailableError, SkillRefusedError
from cardkeeper_client.v1 import error_reason_pb2, rpc_status_pb2

_REFUSALS = frozenset({"SKILL_NOT_ADVERTISED", "MODE_NOT_OFFERED", "CAPABILITY_ABSENT"})
_AWAY = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED"})


def service_error(error: grpc.RpcError) -> ServiceError:
    """Read an error of a call, with every detail that it carries."""
    code = code_of(error)
    try:
        details = _details(error)
        info = rpc_status_pb2.RpcErrorInfo.FromString(details.get("google.rpc.ErrorInfo", b""))
        wrong = rpc_status_pb2.RpcBadRequest.FromString(details.get("google.rpc.BadRequest", b""))
        refusal = error_reason_pb2.SkillRefusal.FromString(details.get("cardkeeper.v1.SkillRefusal", b""))
        delay = rpc_status_pb2.RpcRetryInfo.FromString(details.get("google.rpc.RetryInfo", b"")).retry_delay
    except DecodeError:
        # A proxy, or not our service at all: its code and words are all there is.
        return _kind_of("", code)(_words(error), code=code)
    reason = info.reason.removeprefix("ERROR_REASON_")
    found = _kind_of(reason, code)(
        _words(error),
        reason=reason,
        code=code,
        metadata=info.metadata,
        retry_after=delay.seconds + delay.nanos / 1e9 if "google.rpc.RetryInfo" in details else None,
        fields={item.field: item.description for item in wrong.field_violations},
    )
    if isinstance(found, SkillRefusedError):
        found.near = tuple(refusal.near_skill_ids)
        found.advertised = tuple(refusal.advertised_skill_ids)
        found.offered = tuple(refusal.offered_modes)
    return found


def code_of(error: grpc.RpcError) -> str:
    """Name of an error's gRPC code. Errors of calls have one, although gRPC's own type does not say so."""
    code = getattr(error, "code", None)
    return str(code().name) if callable(code) else "UNKNOWN"


def _kind_of(reason: str, code: str) -> type[ServiceError]:
    if reason in _REFUSALS:
        return SkillRefusedError
    return ServiceUnavailableError if code in _AWAY else ServiceError


def _words(error: grpc.RpcError) -> str:
    details = getattr(error, "details", None)
    return (details() if callable(details) else "") or str(error)


def _details(error: grpc.RpcError) -> Mapping[str, bytes]:
    """The rich status in the trailers, by type; nothing where there is none. Raises DecodeError."""
    trailers = getattr(error, "trailing_metadata", None)
    for key, value in (trailers() if callable(trailers) else None) or ():
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            status = rpc_status_pb2.RpcStatus.FromString(value)
            return {detail.type_url.rpartition("/")[2]: detail.value for detail in status.details}
    return {}
