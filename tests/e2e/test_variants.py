"""The variants of design section 1 with real agents: what a naive client sees, and what a Cardkeeper client sees."""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import pytest
from process import service, started
from send import send_task

from cardkeeper.v1 import discovery_service_pb2_grpc, fleet_service_pb2, fleet_service_pb2_grpc
from cardkeeper_client import (
    AgentContradictsCardError,
    ArtifactSchemaDriftError,
    Cardkeeper,
    Resolution,
    SkillRefusedError,
    StaleAgentCardError,
)
from cardkeeper_client.v1 import verdict_pb2
from contract_requests import ref, report, resolve

SKILL = "summarize-v2"
HERE = Path(__file__).parent


@pytest.fixture(params=["1.0", "0.3"])
def generation(request: pytest.FixtureRequest) -> str:
    """The protocol version in which tasks are sent, to one agent that speaks both."""
    return str(request.param)


@pytest.fixture
def run(generation: str) -> Callable[[Resolution], bytes]:
    return lambda resolution: send_task(resolution.endpoint_url, resolution.skill_id, protocol_version=generation)


def answered(peer: Any, version: str = "1.0") -> dict[str, Any]:
    """What a naive client gets that still believes in the skill."""
    response: dict[str, Any] = json.loads(send_task(f"{peer.url}/", SKILL, protocol_version=version))
    return response


def state_of(response: dict[str, Any]) -> str:
    """The task's state, in the words that both generations share."""
    result = response["result"]
    return str(result.get("task", result)["status"]["state"]).removeprefix("TASK_STATE_").lower()


def _resolve_for(cards: Cardkeeper, agent_url: str, seconds: float) -> None:
    """Ask again and again, until it is refused or the time is over."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        cards.resolve(agent_url, SKILL)
        time.sleep(0.05)


def test_an_unchanged_agent_is_served_by_one_fetch(cards: Cardkeeper, peer: Any) -> None:
    for _ in range(20):
        done = json.loads(cards.call(peer.url, SKILL, peer.run))
        assert state_of(done) == "completed"
    assert peer.fetched == 1


def test_variant_a_a_retired_skill_fails_inside_the_task(
    cards: Cardkeeper, peer: Any, generation: str, run: Callable[[Resolution], bytes]
) -> None:
    cards.call(peer.url, SKILL, run)
    asked = peer.fetched
    peer.become("A")
    assert state_of(answered(peer, generation)) == "failed"
    with pytest.raises(StaleAgentCardError) as caught:
        cards.call(peer.url, SKILL, run)
    drift = caught.value
    assert drift.judgement.verdict == verdict_pb2.VERDICT_CARD_CHANGED
    assert drift.judgement.changes.silent
    assert drift.near_skill_ids == ["summarize-v3"]
    assert drift.evidence[0].kind == verdict_pb2.EVIDENCE_KIND_UNKNOWN_SKILL
    assert peer.fetched == asked + 1
    healed = cards.call(peer.url, drift.near_skill_ids[0], run, validate=False)
    assert state_of(json.loads(healed)) == "completed"


def test_variant_a_strict_a_retired_skill_is_refused_at_the_boundary(
    cards: Cardkeeper, peer: Any, generation: str, run: Callable[[Resolution], bytes]
) -> None:
    cards.call(peer.url, SKILL, run)
    asked = peer.fetched
    peer.become("A-strict")
    assert answered(peer, generation)["error"]["code"] == -32602
    with pytest.raises(StaleAgentCardError) as caught:
        cards.call(peer.url, SKILL, run)
    assert caught.value.evidence[0].kind == verdict_pb2.EVIDENCE_KIND_UNKNOWN_SKILL
    assert peer.fetched == asked + 1


def test_variant_b_a_reused_id_never_reaches_storage(cards: Cardkeeper, peer: Any) -> None:
    cards.call(peer.url, SKILL, peer.run)
    peer.become("B")
    assert state_of(answered(peer)) == "completed"
    with pytest.raises(ArtifactSchemaDriftError) as caught:
        cards.call(peer.url, SKILL, peer.run)
    assert caught.value.judgement.verdict == verdict_pb2.VERDICT_CARD_CHANGED
    assert peer.fetched == 2
    with pytest.raises(SkillRefusedError):
        cards.resolve(peer.url, SKILL, output_modes=["text/markdown"])


def test_variant_b_in_0_3_where_text_has_no_type_is_caught_by_asking_for_the_card(cards: Cardkeeper, peer: Any) -> None:
    def run_0_3(resolution: Resolution) -> bytes:
        return send_task(resolution.endpoint_url, resolution.skill_id, protocol_version="0.3")

    cards.resolve(peer.url, SKILL)
    peer.become("B")
    assert "text/plain" not in json.dumps(answered(peer, "0.3"))
    with pytest.raises(ArtifactSchemaDriftError) as caught:
        cards.call(peer.url, SKILL, run_0_3)
    assert caught.value.judgement.verdict == verdict_pb2.VERDICT_CARD_CHANGED
    assert peer.fetched == 2


def test_variant_c_another_meaning_is_a_hint_and_never_drift(
    cards: Cardkeeper, target: str, peer: Any, run: Callable[[Resolution], bytes]
) -> None:
    before = cards.resolve(peer.url, SKILL)
    peer.become("C")
    cards.call(peer.url, SKILL, run)
    with grpc.insecure_channel(target) as channel:
        fleet = fleet_service_pb2_grpc.FleetServiceStub(channel)
        fleet.RefreshAgent(fleet_service_pb2.RefreshAgentRequest(agent=ref(peer.url)), timeout=5)
        changes = fleet.DiffCards(fleet_service_pb2.DiffCardsRequest(agent=ref(peer.url)), timeout=5).changes
        drift = fleet.ListDriftEvents(fleet_service_pb2.ListDriftEventsRequest(), timeout=5).drift_events
    assert [change.skill_id for change in changes.changes] == [SKILL]
    assert not changes.silent
    assert not drift
    assert cards.resolve(peer.url, SKILL).skill_fingerprint == before.skill_fingerprint


def test_a_silent_mutation_is_found_by_the_background_refresh_alone(peer: Any) -> None:
    with service("--soft-ttl", "2") as target, Cardkeeper(target) as cards:
        cards.wait_until_in_sync()
        cards.resolve(peer.url, SKILL)
        peer.become("A")
        with pytest.raises(SkillRefusedError):
            _resolve_for(cards, peer.url, seconds=20.0)


def test_untyped_text_of_an_agent_that_always_sent_it_passes_by_default_and_not_under_strict(peer: Any) -> None:
    peer.become("untyped")
    with service() as target, Cardkeeper(target) as cards:
        answer = cards.call(peer.url, SKILL, peer.run)
        assert "mediaType" not in json.dumps(json.loads(answer))
    with service("--artifact-policy", "strict") as target, Cardkeeper(target) as cards:
        with pytest.raises((ArtifactSchemaDriftError, AgentContradictsCardError)):
            cards.call(peer.url, SKILL, peer.run)


def test_artifacts_are_judged_by_what_was_negotiated_after_the_card_changed_and_after_a_restart(
    peer: Any, state: Path
) -> None:
    typed = {"artifactId": "a", "parts": [{"text": "# x", "mediaType": "text/markdown"}]}
    plain = {"artifactId": "a", "parts": [{"text": "x", "mediaType": "text/plain"}]}
    with service("--data", str(state)) as target, Cardkeeper(target) as cards:
        held = cards.resolve(peer.url, SKILL)
        peer.become("B")
        with pytest.raises(ArtifactSchemaDriftError):
            cards.validate(held, plain)
        assert cards.validate(held, typed).accepted
    with service("--data", str(state)) as target, Cardkeeper(target) as cards:
        assert cards.validate(held, typed).accepted
        with pytest.raises(ArtifactSchemaDriftError):
            cards.validate(held, plain)
        assert cards.resolve(peer.url, SKILL).output_modes == ("text/plain",)


def test_a_client_in_another_process_learns_by_push_and_never_answers_the_old_again(
    cards: Cardkeeper, target: str, peer: Any
) -> None:
    cards.call(peer.url, SKILL, peer.run)
    with started(sys.executable, str(HERE / "second_client.py"), target, peer.url, SKILL) as (first, process):
        held = json.loads(first)
        assert held["held"]
        peer.become("A")
        with pytest.raises(StaleAgentCardError):
            cards.call(peer.url, SKILL, peer.run)
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
    assert told == {"dropped_by_push": True, "refused": "SKILL_NOT_ADVERTISED", "old_answers_afterwards": 0}
    assert peer.fetched == 2


async def test_a_thousand_cold_resolves_are_one_fetch_at_the_agent(target: str, peer: Any) -> None:
    async with grpc.aio.insecure_channel(target) as channel:
        stub: Any = discovery_service_pb2_grpc.DiscoveryServiceStub(channel)
        answers = await asyncio.gather(*(stub.ResolveSkill(resolve(peer.url, SKILL), timeout=30) for _ in range(1000)))
    assert len({answer.resolution.skill_fingerprint for answer in answers}) == 1
    assert peer.fetched == 1


async def test_a_thousand_reports_of_one_failure_are_one_fetch_at_the_agent(target: str, peer: Any) -> None:

    async with grpc.aio.insecure_channel(target) as channel:
        stub: Any = discovery_service_pb2_grpc.DiscoveryServiceStub(channel)
        resolution = (await stub.ResolveSkill(resolve(peer.url, SKILL), timeout=10)).resolution
        peer.become("A")
        failure = report(resolution, answered(peer))
        answers = await asyncio.gather(*(stub.ReportTaskOutcome(failure, timeout=30) for _ in range(1000)))
    assert {answer.judgement.verdict for answer in answers} == {verdict_pb2.VERDICT_CARD_CHANGED}
    assert peer.fetched == 2


def test_neither_questions_nor_good_outcomes_nor_good_artifacts_cause_a_fetch(cards: Cardkeeper, peer: Any) -> None:
    held = cards.resolve(peer.url, SKILL)
    for _ in range(10):
        cards.find("summarize")
        cards.report(held, peer.run(held))
        cards.validate(held, {"artifactId": "a", "parts": [{"text": "x", "mediaType": "text/markdown"}]})
        cards.resolve(peer.url, SKILL, output_modes=["text/markdown"])
        with pytest.raises(SkillRefusedError):
            cards.resolve(peer.url, "nonsense")
    assert peer.fetched == 1
