"""From a failed call to a typed error: the one place where gRPC's details are read."""

import grpc

from cardkeeper_client.errors import ServiceError, ServiceUnavailableError, SkillRefusedError
from cardkeeper_client.v1 import error_reason_pb2, rpc_status_pb2

_REFUSALS = frozenset({"SKILL_NOT_ADVERTISED", "MODE_NOT_OFFERED", "CAPABILITY_ABSENT"})
_AWAY = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED"})


def service_error(error: grpc.RpcError) -> ServiceError:
    """Read an error of a call, with every detail that it carries."""
    found = ServiceError(_details(error), code=code_of(error))
    refusal = error_reason_pb2.SkillRefusal()
    for detail in _status(error).details:
        match detail.type_url.rpartition("/")[2]:
            case "google.rpc.ErrorInfo":
                info = rpc_status_pb2.RpcErrorInfo.FromString(detail.value)
                found.reason = info.reason.removeprefix("ERROR_REASON_")
                found.metadata = dict(info.metadata)
            case "google.rpc.RetryInfo":
                delay = rpc_status_pb2.RpcRetryInfo.FromString(detail.value).retry_delay
                found.retry_after = delay.seconds + delay.nanos / 1e9
            case "google.rpc.BadRequest":
                violations = rpc_status_pb2.RpcBadRequest.FromString(detail.value).field_violations
                found.fields = {item.field: item.description for item in violations}
            case "cardkeeper.v1.SkillRefusal":
                refusal = error_reason_pb2.SkillRefusal.FromString(detail.value)
    return _typed(found, refusal)


def code_of(error: grpc.RpcError) -> str:
    """Name of an error's gRPC code. Errors of calls have one, although gRPC's own type does not say so."""
    code = getattr(error, "code", None)
    return str(code().name) if callable(code) else "UNKNOWN"


def _typed(found: ServiceError, refusal: error_reason_pb2.SkillRefusal) -> ServiceError:
    if found.reason in _REFUSALS:
        refused = SkillRefusedError(found.message)
        refused.__dict__.update(found.__dict__)
        refused.near = tuple(refusal.near_skill_ids)
        refused.advertised = tuple(refusal.advertised_skill_ids)
        refused.offered = tuple(refusal.offered_modes)
        return refused
    if found.code in _AWAY:
        away = ServiceUnavailableError(found.message)
        away.__dict__.update(found.__dict__)
        return away
    return found


def _details(error: grpc.RpcError) -> str:
    details = getattr(error, "details", None)
    return (details() if callable(details) else "") or str(error)


def _status(error: grpc.RpcError) -> rpc_status_pb2.RpcStatus:
    """The rich status in the trailers; an empty one where there is none."""
    trailers = getattr(error, "trailing_metadata", None)
    for key, value in (trailers() if callable(trailers) else None) or ():
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            return rpc_status_pb2.RpcStatus.FromString(value)
    return rpc_status_pb2.RpcStatus()
