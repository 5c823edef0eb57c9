"""Protobuf bytes of A2A messages, read without anybody's stubs."""

import json

import pytest
from a2a.types import a2a_pb2
from google.protobuf import any_pb2, struct_pb2
from google.rpc import error_details_pb2, status_pb2

from cardkeeper.drift.wire import SUPPORTED, new_message, proto_to_json
from cardkeeper.errors import DocumentUnreadable

V1_0 = [name for name in SUPPORTED if name.startswith("lf.a2a.v1.")]


def fields_of(descriptor: object) -> dict[int, tuple[str, str, int, str, bool]]:
    return {
        field.number: (
            field.name,
            field.json_name,
            field.type,
            field.message_type.full_name if field.message_type else "",
            field.is_repeated,
        )
        for field in descriptor.fields  # type: ignore[attr-defined]
    }


@pytest.mark.parametrize("name", V1_0)
def test_descriptions_are_those_of_the_published_1_0_proto(name: str) -> None:
    published = a2a_pb2.DESCRIPTOR.message_types_by_name[name.rpartition(".")[2]]
    assert fields_of(new_message(name).DESCRIPTOR) == fields_of(published)


def test_states_are_those_of_the_published_1_0_proto() -> None:
    published = {value.number: value.name for value in a2a_pb2.DESCRIPTOR.enum_types_by_name["TaskState"].values}
    ours = new_message("lf.a2a.v1.TaskStatus").DESCRIPTOR.fields_by_name["state"].enum_type
    assert {value.number: value.name for value in ours.values} == published


def test_a_1_0_task_becomes_its_json() -> None:
    task = a2a_pb2.Task(id="t", context_id="c")
    task.status.state = a2a_pb2.TASK_STATE_FAILED
    task.status.message.parts.add(text="unknown skill")
    artifact = task.artifacts.add(artifact_id="a")
    artifact.parts.add(data=struct_pb2.Value(number_value=3), media_type="application/json")
    assert json.loads(proto_to_json(task.SerializeToString(), "lf.a2a.v1.Task")) == {
        "id": "t",
        "contextId": "c",
        "status": {"state": "TASK_STATE_FAILED", "message": {"parts": [{"text": "unknown skill"}]}},
        "artifacts": [{"artifactId": "a", "parts": [{"data": 3.0, "mediaType": "application/json"}]}],
    }


def test_a_0_3_task_becomes_its_json() -> None:
    # Written out by the numbers of a2a.v1 (0.3.0): Task 1 id, 3 status; TaskStatus 1 state, 2 message; Message 5 content;
    # Part 1 text.
    part = b"\x0a\x04gone"
    message = b"\x2a" + bytes([len(part)]) + part
    status = b"\x08\x04\x12" + bytes([len(message)]) + message
    task = b"\x0a\x01t\x1a" + bytes([len(status)]) + status
    assert json.loads(proto_to_json(task, "type.googleapis.com/a2a.v1.Task")) == {
        "id": "t",
        "status": {"state": "TASK_STATE_FAILED", "message": {"content": [{"text": "gone"}]}},
    }


def test_a_status_keeps_the_details_that_tell_what_was_refused() -> None:
    status = status_pb2.Status(code=3, message="no such skill")
    info = error_details_pb2.ErrorInfo(reason="SKILL_NOT_FOUND", domain="a2a", metadata={"skill": "x"})
    violation = error_details_pb2.BadRequest(field_violations=[{"field": "skill", "description": "unknown"}])
    for detail in (info, error_details_pb2.DebugInfo(detail="stack"), violation):
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    read = json.loads(proto_to_json(status.SerializeToString(), "google.rpc.Status"))
    assert (read["code"], read["message"]) == (3, "no such skill")
    assert [detail["@type"].rpartition(".")[2] for detail in read["details"]] == ["ErrorInfo", "BadRequest"]
    assert read["details"][0]["metadata"] == {"skill": "x"}


@pytest.mark.parametrize(
    ("data", "name", "says"),
    [
        (b"", "a2a.v9.Task", "lf.a2a.v1.Task"),
        (b"", "", "lf.a2a.v1.Task"),
        (b"\xff\xff", "lf.a2a.v1.Task", "lf.a2a.v1.Task"),
        (b"\x0a\x02\xff\xfe", "lf.a2a.v1.Task", "lf.a2a.v1.Task"),
        (b"x" * 1_100_000, "lf.a2a.v1.Task", "at most"),
    ],
)
def test_what_is_no_such_message_is_refused(data: bytes, name: str, says: str) -> None:
    with pytest.raises(DocumentUnreadable, match=says):
        proto_to_json(data, name)


def test_deep_nesting_is_refused() -> None:
    def field(number: int, content: bytes) -> bytes:
        size, length = len(content), b""
        while size > 127:
            length += bytes([size & 127 | 128])
            size >>= 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + content

    value = b""
    for _ in range(200):
        value = field(6, field(1, value))  # Value.list_value, ListValue.values
    artifact = field(4, field(4, value))  # Artifact.parts, Part.data
    with pytest.raises(DocumentUnreadable):
        proto_to_json(artifact, "lf.a2a.v1.Artifact")


def test_a_number_that_json_lacks_is_refused() -> None:
    artifact = a2a_pb2.Artifact()
    artifact.parts.add(data=struct_pb2.Value(number_value=float("nan")))
    with pytest.raises(DocumentUnreadable):
        proto_to_json(artifact.SerializeToString(), "lf.a2a.v1.Artifact")
