"""How the commands reach a service, and how they end when they cannot or when the answer is no."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NoReturn

import grpc
import typer
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from cardkeeper.v1 import agent_ref_pb2, error_reason_pb2

REFUSED, USAGE, UNREACHABLE = 1, 2, 3

Server = Annotated[str, typer.Option("--server", envvar="CARDKEEPER_SERVER", help="host:port of the service.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Timeout = Annotated[float, typer.Option("--timeout", help="Seconds to wait for an answer.")]
Token = Annotated[str, typer.Option(envvar="CARDKEEPER_ADMIN_TOKEN", show_default=False, help="The operators' token.")]
CaFile = Annotated[
    str, typer.Option("--tls-ca", envvar="CARDKEEPER_TLS_CA", help="PEM of the service's CA; empty: plain text.")
]
DEFAULT_SERVER = "127.0.0.1:50051"


@contextmanager
def connected(server: str, ca_file: str = "") -> Iterator[grpc.Channel]:
    """A channel; a call that fails in it ends the command with one line, never a traceback."""
    try:
        with _channel(server, ca_file) as channel:
            yield channel
    except grpc.RpcError as error:
        fail(error, server)
    except OSError as error:
        stop(f"cannot read {ca_file}: {error.strerror}", USAGE)


def _channel(server: str, ca_file: str) -> grpc.Channel:
    if not ca_file:
        return grpc.insecure_channel(server)
    with open(ca_file, "rb") as file:
        return grpc.secure_channel(server, grpc.ssl_channel_credentials(file.read()))


def authorization(token: str) -> tuple[tuple[str, str], ...]:
    """Metadata with the operators' token, if there is one."""
    return (("authorization", f"Bearer {token}"),) if token else ()


def agent_ref(text: str) -> agent_ref_pb2.AgentRef:
    """An agent by URL, by resource name, or by bare id."""
    if "://" in text:
        return agent_ref_pb2.AgentRef(agent_url=text)
    return agent_ref_pb2.AgentRef(name=text if text.startswith("agents/") else f"agents/{text}")


def to_dict(message: Message) -> dict[str, Any]:
    """A message as JSON with the proto's own field names; fields without presence are there even when empty."""
    return MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def fail(error: grpc.RpcError, server: str) -> NoReturn:
    """End with what a failed call says: its reason, its message, and what is offered instead."""
    code = error.code()
    status = rpc_status.from_call(error)
    if status is None:
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
            stop(f"no service answers at {server} ({error.details()}); is `cardkeeper serve` running?", UNREACHABLE)
        stop(f"{code.name}: {error.details()}", REFUSED)
    reason, lines = code.name, [status.message]
    for detail in status.details:
        info, refusal, violations = (
            error_details_pb2.ErrorInfo(),
            error_reason_pb2.SkillRefusal(),
            error_details_pb2.PreconditionFailure(),
        )
        if detail.Unpack(info):
            reason = info.reason.removeprefix("ERROR_REASON_")
        elif detail.Unpack(refusal) and refusal.near_skill_ids:
            lines.append(f"did you mean: {', '.join(refusal.near_skill_ids)}")
        elif detail.Unpack(violations):
            lines.extend(f"{item.type} at {item.subject or '/'}: {item.description}" for item in violations.violations)
    stop(f"{reason}: " + "\n  ".join(lines), USAGE if code is grpc.StatusCode.INVALID_ARGUMENT else REFUSED)


def stop(text: str, code: int) -> NoReturn:
    """End the command with a line on standard error."""
    print(f"cardkeeper: {text}", file=sys.stderr)
    raise typer.Exit(code)
