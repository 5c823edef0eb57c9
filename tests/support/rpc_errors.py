"""What a failed call says, read as a client would."""

from collections.abc import Awaitable
from dataclasses import dataclass, field

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from cardkeeper.v1 import error_reason_pb2


@dataclass
class Failed:
    """Code, reason and the typed details of an error."""

    code: grpc.StatusCode
    message: str
    reason: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    retry_after: float | None = None
    fields: dict[str, str] = field(default_factory=dict)
    refusal: error_reason_pb2.SkillRefusal = field(default_factory=error_reason_pb2.SkillRefusal)
    findings: dict[str, str] = field(default_factory=dict)


async def failure(call: Awaitable[object]) -> Failed:
    """Await a call that must fail, and return how it did."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return read(caught.value)


def read(error: grpc.aio.AioRpcError) -> Failed:
    """Read an error's details."""
    failed = Failed(code=error.code(), message=error.details() or "")
    status = rpc_status.from_call(error)
    for detail in status.details if status else ():
        info, retry, bad, broken = (
            error_details_pb2.ErrorInfo(),
            error_details_pb2.RetryInfo(),
            error_details_pb2.BadRequest(),
            error_details_pb2.PreconditionFailure(),
        )
        if detail.Unpack(info):
            failed.reason, failed.metadata = info.reason.removeprefix("ERROR_REASON_"), dict(info.metadata)
        elif detail.Unpack(retry):
            failed.retry_after = retry.retry_delay.ToTimedelta().total_seconds()
        elif detail.Unpack(bad):
            failed.fields = {item.field: item.description for item in bad.field_violations}
        elif detail.Unpack(broken):
            failed.findings = {item.type: item.description for item in broken.violations}
        else:
            detail.Unpack(failed.refusal)
    return failed
