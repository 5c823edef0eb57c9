"""Outcomes and artifacts in every form that the contract takes, over a real channel."""

import json
from typing import Any

import pytest
from a2a.types import a2a_pb2
from google.protobuf import any_pb2
from google.rpc import error_details_pb2, status_pb2

from cardkeeper.v1 import discovery_service_pb2 as pb
from cardkeeper.v1 import observation_pb2, verdict_pb2
from contract_requests import negotiated, resolve
from rpc_errors import failure
from running_service import Running
from scripted_fetcher import ScriptedFetcher, card_document

URL = "http://agent.example"


def failed_task() -> a2a_pb2.Task:
    task = a2a_pb2.Task(id="t", context_id="c")
    task.status.state = a2a_pb2.TASK_STATE_FAILED
    task.status.message.parts.add(text="unknown skill: summarize-v2")
    return task


def refusal() -> status_pb2.Status:
    status = status_pb2.Status(code=3, message="refused")
    detail = any_pb2.Any()
    detail.Pack(
        error_details_pb2.ErrorInfo(reason="SKILL_NOT_FOUND", domain="agent", metadata={"skill": "summarize-v2"})
    )
    status.details.append(detail)
    return status


DOCUMENTS: list[tuple[str, dict[str, Any]]] = [
    ("1.0 task", {"proto": failed_task().SerializeToString(), "proto_type": "lf.a2a.v1.Task"}),
    (
        "1.0 stream",
        {
            "proto": a2a_pb2.StreamResponse(task=failed_task()).SerializeToString(),
            "proto_type": "type.googleapis.com/lf.a2a.v1.StreamResponse",
        },
    ),
    ("gRPC status", {"proto": refusal().SerializeToString(), "proto_type": "google.rpc.Status", "grpc_code": 3}),
    ("HTTP", {"json": b'{"message": "Unknown skill summarize-v2"}', "http_status": 422}),
    ("a page", {"json": b"<html>gone</html>", "http_status": 410}),
]


@pytest.mark.parametrize(("name", "document"), DOCUMENTS, ids=[item[0] for item in DOCUMENTS])
async def test_a_refusal_is_read_in_every_form(
    service: Running, fetcher: ScriptedFetcher, name: str, document: dict[str, Any]
) -> None:
    resolution = (await service.discovery.ResolveSkill(resolve(URL, "summarize-v2"))).resolution
    fetcher.answers[URL] = card_document("translate")
    request = pb.ReportTaskOutcomeRequest(
        negotiated=negotiated(resolution), document=observation_pb2.Document(**document)
    )
    judgement = (await service.discovery.ReportTaskOutcome(request)).judgement
    assert judgement.verdict == verdict_pb2.VERDICT_CARD_CHANGED


async def test_protobuf_of_an_artifact_is_judged(service: Running) -> None:
    resolution = (await service.discovery.ResolveSkill(resolve(URL, "summarize-v2"))).resolution
    artifact = a2a_pb2.Artifact(artifact_id="a")
    artifact.parts.add(text="x", media_type="image/png")
    document = observation_pb2.Document(proto=artifact.SerializeToString(), proto_type="lf.a2a.v1.Artifact")
    answer = await service.discovery.ValidateArtifact(
        pb.ValidateArtifactRequest(negotiated=negotiated(resolution), artifact=document)
    )
    assert not answer.accepted
    assert answer.parts[0].media_type == "image/png"
    assert not answer.parts[0].schema_checked


async def test_protobuf_that_is_none_is_unreadable_and_says_what_is_read(service: Running) -> None:
    resolution = (await service.discovery.ResolveSkill(resolve(URL, "summarize-v2"))).resolution
    for proto, name in ((b"\xff\xff", "lf.a2a.v1.Task"), (b"", "my.Task"), (b"", "")):
        request = pb.ReportTaskOutcomeRequest(
            negotiated=negotiated(resolution), document=observation_pb2.Document(proto=proto, proto_type=name)
        )
        failed = await failure(service.discovery.ReportTaskOutcome(request))
        assert failed.reason == "DOCUMENT_UNREADABLE"
        assert "lf.a2a.v1.Task" in failed.message


async def test_an_artifact_without_content_is_judged_by_its_summary(service: Running) -> None:
    resolution = (await service.discovery.ResolveSkill(resolve(URL, "summarize-v2"))).resolution
    part = observation_pb2.ArtifactSummary.Part
    summary = observation_pb2.ArtifactSummary(
        parts=[
            part(media_type="text/markdown", kind=observation_pb2.ArtifactSummary.KIND_TEXT),
            part(media_type="image/png"),
        ]
    )
    answer = await service.discovery.ValidateArtifact(
        pb.ValidateArtifactRequest(negotiated=negotiated(resolution), summary=summary)
    )
    names = [pb.ValidateArtifactResponse.Result.Name(item.result) for item in answer.parts]
    assert names == ["RESULT_ACCEPTED", "RESULT_REJECTED"]


async def test_a_schema_violation_is_answered_with_its_pointer(service: Running, fetcher: ScriptedFetcher) -> None:
    extension = {
        "uri": "https://cardkeeper.dev/a2a/output-schemas/v1",
        "params": {"skills": {"sum": {"type": "object", "properties": {"total": {"type": "integer"}}}}},
    }
    fetcher.answers[URL] = card_document(
        {"id": "sum", "name": "s", "outputModes": ["application/json"]}, capabilities={"extensions": [extension]}
    )
    resolution = (await service.discovery.ResolveSkill(resolve(URL, "sum"))).resolution
    document = observation_pb2.Document(json=json.dumps({"parts": [{"data": {"total": "three"}}]}).encode())
    answer = await service.discovery.ValidateArtifact(
        pb.ValidateArtifactRequest(negotiated=negotiated(resolution), artifact=document)
    )
    assert not answer.accepted
    assert [item.pointer for item in answer.parts[0].violations] == ["/total"]
    assert answer.parts[0].schema_checked
