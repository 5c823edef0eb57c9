"""The unary surface as a synchronous client sees it (pytest-grpc)."""

from collections.abc import Callable
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_status import rpc_status

from cardkeeper.v1 import discovery_service_pb2_grpc, fleet_service_pb2, fleet_service_pb2_grpc, verdict_pb2
from contract_requests import failed_task, ref, report, resolve, subscribe, text_artifact, validate
from scripted_fetcher import ScriptedFetcher, card_document

AGENT = "http://agent.example"


@pytest.fixture(scope="module")
def grpc_stub_cls() -> Callable[[grpc.Channel], Any]:
    return discovery_service_pb2_grpc.DiscoveryServiceStub


def test_a_skill_is_resolved(grpc_stub: Any) -> None:
    resolution = grpc_stub.ResolveSkill(resolve(AGENT, "summarize-v2"), timeout=5).resolution
    assert list(resolution.output_modes) == ["text/markdown"]
    assert resolution.revision.sequence == 1


def test_a_refusal_has_its_code_and_its_reason(grpc_stub: Any) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        grpc_stub.ResolveSkill(resolve(AGENT, "summarize"), timeout=5)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    details = rpc_status.from_call(caught.value).details
    info = error_details_pb2.ErrorInfo()
    assert details[0].Unpack(info)
    assert info.reason.endswith("SKILL_NOT_ADVERTISED")


def test_an_outcome_is_judged(grpc_stub: Any) -> None:
    resolution = grpc_stub.ResolveSkill(resolve(AGENT, "summarize-v2"), timeout=5).resolution
    fine = {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "completed"}}
    answer = grpc_stub.ReportTaskOutcome(report(resolution, fine), timeout=5)
    assert answer.judgement.verdict == verdict_pb2.VERDICT_NO_DRIFT
    answer = grpc_stub.ReportTaskOutcome(report(resolution, failed_task("unknown skill: summarize-v2")), timeout=5)
    assert answer.judgement.verdict == verdict_pb2.VERDICT_AGENT_CONTRADICTS_CARD


def test_an_artifact_is_judged(grpc_stub: Any) -> None:
    resolution = grpc_stub.ResolveSkill(resolve(AGENT, "summarize-v2"), timeout=5).resolution
    assert grpc_stub.ValidateArtifact(validate(resolution, text_artifact("text/markdown")), timeout=5).accepted
    assert not grpc_stub.ValidateArtifact(validate(resolution, text_artifact("image/png")), timeout=5).accepted


def test_the_fleet_is_listed(grpc_stub: Any, grpc_channel: grpc.Channel) -> None:
    grpc_stub.ResolveSkill(resolve(AGENT, "summarize-v2"), timeout=5)
    fleet = fleet_service_pb2_grpc.FleetServiceStub(grpc_channel)
    agents = fleet.ListAgents(fleet_service_pb2.ListAgentsRequest(), timeout=5).agents
    assert AGENT in [agent.agent_url for agent in agents]
    card = fleet.GetCard(fleet_service_pb2.GetCardRequest(agent=ref(AGENT)), timeout=5).card
    assert b'"summarize-v2"' in card.body


def test_a_stream_is_read_by_a_synchronous_client(
    grpc_stub: Any, grpc_channel: grpc.Channel, fetcher: ScriptedFetcher
) -> None:
    changing = "http://changing.example"
    fetcher.answers[changing] = card_document("summarize-v2")
    grpc_stub.ResolveSkill(resolve(changing, "summarize-v2"), timeout=5)
    stream = grpc_stub.WatchInvalidations(iter([subscribe(changing)]), timeout=20)
    assert next(stream).WhichOneof("event") == "synced"
    fetcher.answers[changing] = card_document("translate")
    fleet = fleet_service_pb2_grpc.FleetServiceStub(grpc_channel)
    fleet.RefreshAgent(fleet_service_pb2.RefreshAgentRequest(agent=ref(changing)), timeout=5)
    told = next(frame for frame in stream if frame.WhichOneof("event") == "invalidation")
    assert set(told.invalidation.skill_ids) == {"summarize-v2", "translate"}
    stream.cancel()


def test_health_and_reflection_name_both_services(grpc_channel: grpc.Channel, grpc_server: Any) -> None:
    health = health_pb2_grpc.HealthStub(grpc_channel)
    for service in ("", "cardkeeper.v1.DiscoveryService", "cardkeeper.v1.FleetService"):
        answer = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=5)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    reflection = reflection_pb2_grpc.ServerReflectionStub(grpc_channel)
    asked = reflection_pb2.ServerReflectionRequest(list_services="")
    listed = next(reflection.ServerReflectionInfo(iter([asked]), timeout=5)).list_services_response.service
    assert {"cardkeeper.v1.DiscoveryService", "cardkeeper.v1.FleetService"} <= {item.name for item in listed}
