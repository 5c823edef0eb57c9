"""Protobuf bytes of A2A messages to their JSON, which the readers of outcomes and artifacts take. Pure.

The few messages that matter are described here, in a descriptor pool of their own, so that the service needs no SDK and no
other package's stubs can collide with it. Field numbers are those of the published a2a.proto; tests hold them against the
SDKs' own descriptors.
"""

from functools import cache
from typing import Any

from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    descriptor_pool,
    json_format,
    message_factory,
    struct_pb2,
    timestamp_pb2,
)
from google.protobuf.message import DecodeError, Message

from cardkeeper.errors import DocumentUnreadable

MAX_BYTES = 1024 * 1024
MAX_DEPTH = 32
"""Nesting of google.protobuf.Value that is rendered."""

_WELL_KNOWN = {
    "Struct": "google.protobuf.Struct",
    "Value": "google.protobuf.Value",
    "Timestamp": "google.protobuf.Timestamp",
}
_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "string": _Field.TYPE_STRING,
    "bytes": _Field.TYPE_BYTES,
    "bool": _Field.TYPE_BOOL,
    "int32": _Field.TYPE_INT32,
}

# One line a message: "number name type", with * for repeated and | for a member of its oneof; "=" gives another JSON name.
_V1_0 = {
    "Task": "1 id string, 2 context_id string, 3 status TaskStatus, 4 artifacts *Artifact, 5 history *Message, "
    "6 metadata Struct",
    "TaskStatus": "1 state TaskState, 2 message Message, 3 timestamp Timestamp",
    "Message": "1 message_id string, 2 context_id string, 3 task_id string, 4 role Role, 5 parts *Part, 6 metadata Struct, "
    "7 extensions *string, 8 reference_task_ids *string",
    "Artifact": "1 artifact_id string, 2 name string, 3 description string, 4 parts *Part, 5 metadata Struct, "
    "6 extensions *string",
    "Part": "1 text |string, 2 raw |bytes, 3 url |string, 4 data |Value, 5 metadata Struct, 6 filename string, "
    "7 media_type string",
    "TaskStatusUpdateEvent": "1 task_id string, 2 context_id string, 3 status TaskStatus, 4 metadata Struct",
    "TaskArtifactUpdateEvent": "1 task_id string, 2 context_id string, 3 artifact Artifact, 4 append bool, "
    "5 last_chunk bool, 6 metadata Struct",
    "StreamResponse": "1 task |Task, 2 message |Message, 3 status_update |TaskStatusUpdateEvent, "
    "4 artifact_update |TaskArtifactUpdateEvent",
    "SendMessageResponse": "1 task |Task, 2 message |Message",
}
_V0_3 = {
    "Task": _V1_0["Task"],
    "TaskStatus": "1 state TaskState, 2 update=message Message, 3 timestamp Timestamp",
    "Message": "1 message_id string, 2 context_id string, 3 task_id string, 4 role Role, 5 content *Part, 6 metadata Struct, "
    "7 extensions *string",
    "Artifact": "1 artifact_id string, 3 name string, 4 description string, 5 parts *Part, 6 metadata Struct, "
    "7 extensions *string",
    "Part": "1 text |string, 2 file |FilePart, 3 data |DataPart, 4 metadata Struct",
    "FilePart": "1 file_with_uri |string, 2 file_with_bytes |bytes, 3 mime_type string, 4 name string",
    "DataPart": "1 data Struct",
    "TaskStatusUpdateEvent": "1 task_id string, 2 context_id string, 3 status TaskStatus, 4 final bool, 5 metadata Struct",
    "TaskArtifactUpdateEvent": "1 task_id string, 2 context_id string, 3 artifact Artifact, 4 append bool, "
    "5 last_chunk bool, 6 metadata Struct",
    "StreamResponse": "1 task |Task, 2 msg=message |Message, 3 status_update |TaskStatusUpdateEvent, "
    "4 artifact_update |TaskArtifactUpdateEvent",
    "SendMessageResponse": "1 task |Task, 2 msg=message |Message",
}
_ENUMS = {
    "TaskState": "UNSPECIFIED SUBMITTED WORKING COMPLETED FAILED CANCELED INPUT_REQUIRED REJECTED AUTH_REQUIRED",
    "Role": "UNSPECIFIED USER AGENT",
}
_PREFIXES = {"TaskState": "TASK_STATE_", "Role": "ROLE_"}
_PACKAGES = {"lf.a2a.v1": _V1_0, "a2a.v1": _V0_3}
_STATUS = "google.rpc.Status"
SUPPORTED = (*(f"{package}.{name}" for package, messages in _PACKAGES.items() for name in messages), _STATUS)
"""Full names of the messages that are read."""


def proto_to_json(data: bytes, proto_type: str) -> bytes:
    """Return the protobuf JSON of a message; `proto_type` is its full name, or a type URL that ends in it.

    Raises DocumentUnreadable for a type that is not in SUPPORTED, and for bytes that are no such message.
    """
    name = proto_type.rpartition("/")[2]
    if name not in SUPPORTED:
        named = ", ".join(SUPPORTED)
        raise DocumentUnreadable(f"proto_type {name[:100]!r} is not read; send JSON, or one of {named}")
    if len(data) > MAX_BYTES:
        raise DocumentUnreadable(f"the document has {len(data)} bytes; at most {MAX_BYTES} are read")
    pool = _pool()
    message = new_message(name)
    try:
        message.ParseFromString(data)
        if name == _STATUS:
            _drop_unknown_details(message)
        return json_format.MessageToJson(message, indent=None, descriptor_pool=pool).encode()
    except (DecodeError, UnicodeDecodeError) as error:
        raise DocumentUnreadable(f"the bytes are no {name}") from error
    except (json_format.SerializeToJsonError, ValueError, TypeError, RecursionError) as error:
        raise DocumentUnreadable(f"the {name} holds something that JSON cannot: {str(error)[:100]}") from error


def _drop_unknown_details(status: Any) -> None:
    """Details of types that say nothing about a refusal cannot be rendered, and need not be."""
    known = {f"google.rpc.{name}" for name in ("ErrorInfo", "BadRequest")}
    kept = [detail for detail in status.details if detail.type_url.rpartition("/")[2] in known]
    del status.details[:]
    status.details.extend(kept)


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    for well_known in (any_pb2, struct_pb2, timestamp_pb2):
        file = descriptor_pb2.FileDescriptorProto()
        well_known.DESCRIPTOR.CopyToProto(file)
        pool.Add(file)
    for package, messages in _PACKAGES.items():
        pool.Add(_file(package, messages))
    pool.Add(_status_file())
    return pool


def _file(package: str, messages: dict[str, str]) -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(
        name=f"{package}.proto",
        package=package,
        syntax="proto3",
        dependency=["google/protobuf/struct.proto", "google/protobuf/timestamp.proto"],
    )
    for enum, values in _ENUMS.items():
        described = file.enum_type.add(name=enum)
        for number, value in enumerate(values.split()):
            described.value.add(name=_PREFIXES[enum] + value, number=number)
    for name, fields in messages.items():
        _describe(file.message_type.add(name=name), fields, package)
    return file


def _describe(message: descriptor_pb2.DescriptorProto, fields: str, package: str) -> None:
    for line in fields.split(", "):
        number, label, kind = line.split()
        name, _, json_name = label.partition("=")
        field = message.field.add(name=name, number=int(number), label=_Field.LABEL_OPTIONAL)
        if json_name:
            field.json_name = json_name
        if kind.startswith("*"):
            field.label = _Field.LABEL_REPEATED
        elif kind.startswith("|"):
            if not message.oneof_decl:
                message.oneof_decl.add(name="content")
            field.oneof_index = 0
        kind = kind.lstrip("*|")
        if kind in _SCALARS:
            field.type = _SCALARS[kind]
        else:
            field.type = _Field.TYPE_ENUM if kind in _ENUMS else _Field.TYPE_MESSAGE
            field.type_name = "." + _WELL_KNOWN.get(kind, f"{package}.{kind}")


def _status_file() -> descriptor_pb2.FileDescriptorProto:
    """google.rpc.Status and the details that tell what was refused (google/rpc/status.proto, error_details.proto)."""
    file = descriptor_pb2.FileDescriptorProto(
        name="google.rpc.proto", package="google.rpc", syntax="proto3", dependency=["google/protobuf/any.proto"]
    )
    _describe(file.message_type.add(name="Status"), "1 code int32, 2 message string", "google.rpc")
    details = file.message_type[0].field.add(name="details", number=3, label=_Field.LABEL_REPEATED)
    details.type, details.type_name = _Field.TYPE_MESSAGE, ".google.protobuf.Any"
    info = file.message_type.add(name="ErrorInfo")
    _describe(info, "1 reason string, 2 domain string", "google.rpc")
    entry = info.nested_type.add(name="MetadataEntry")
    _describe(entry, "1 key string, 2 value string", "google.rpc")
    entry.options.map_entry = True
    metadata = info.field.add(name="metadata", number=3, label=_Field.LABEL_REPEATED)
    metadata.type, metadata.type_name = _Field.TYPE_MESSAGE, ".google.rpc.ErrorInfo.MetadataEntry"
    bad_request = file.message_type.add(name="BadRequest")
    violation = bad_request.nested_type.add(name="FieldViolation")
    _describe(violation, "1 field string, 2 description string, 3 reason string", "google.rpc")
    violations = bad_request.field.add(name="field_violations", number=1, label=_Field.LABEL_REPEATED)
    violations.type, violations.type_name = _Field.TYPE_MESSAGE, ".google.rpc.BadRequest.FieldViolation"
    return file


def new_message(name: str) -> Message:
    """Return an empty message of a supported type."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(name))()
