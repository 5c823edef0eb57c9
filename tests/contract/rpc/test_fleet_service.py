"""FleetService over a real channel: what operators, agents and deploy hooks see."""

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from cardkeeper.errors import CardUnavailable
from cardkeeper.settings import Settings
from cardkeeper.v1 import change_pb2, resolution_pb2, verdict_pb2
from cardkeeper.v1 import discovery_service_pb2 as discovery
from cardkeeper.v1 import fleet_service_pb2 as pb
from contract_requests import failed_task, ref, report, resolve
from rpc_errors import failure
from running_service import Running, running_service
from scripted_fetcher import ScriptedFetcher, card_document

Code = grpc.StatusCode
ONE, TWO = "http://agent-one.example", "http://agent-two.example"


@pytest.fixture
def fetcher() -> ScriptedFetcher:
    fetcher = ScriptedFetcher()
    fetcher.answers[ONE] = card_document("summarize")
    fetcher.answers[TWO] = card_document("translate")
    return fetcher


@pytest.fixture
async def service(fetcher: ScriptedFetcher) -> AsyncIterator[Running]:
    async with running_service(fetcher=fetcher) as running:
        yield running


async def register(service: Running, url: str, agent_id: str = "") -> Any:
    return (await service.fleet.RegisterAgent(pb.RegisterAgentRequest(agent_url=url, agent_id=agent_id))).agent


async def test_a_registered_agent_has_its_card_and_its_name(service: Running, fetcher: ScriptedFetcher) -> None:
    agent = await register(service, ONE + "/", "summarizer")
    assert (agent.name, agent.agent_url, agent.registered) == ("agents/summarizer", ONE, True)
    assert len(agent.skill_fingerprint) == 64
    assert fetcher.count(ONE) == 1
    again = await register(service, ONE, "summarizer")
    assert again.name == agent.name
    assert fetcher.count(ONE) == 1


async def test_a_name_belongs_to_one_url_and_a_url_to_one_name(service: Running) -> None:
    await register(service, ONE, "summarizer")
    for url, name in ((TWO, "summarizer"), (ONE, "other")):
        failed = await failure(register(service, url, name))
        assert (failed.code, failed.reason) == (Code.ALREADY_EXISTS, "AGENT_EXISTS")


async def test_an_agent_may_be_registered_before_it_runs(service: Running, fetcher: ScriptedFetcher) -> None:
    fetcher.answers[ONE] = CardUnavailable("no connection", metadata={"cause": "connection"})
    agent = await register(service, ONE)
    assert agent.skill_fingerprint == ""
    failed = await failure(service.discovery.ResolveSkill(resolve(agent.name, "summarize")))
    assert (failed.code, failed.reason) == (Code.FAILED_PRECONDITION, "CARD_UNREACHABLE")
    assert failed.retry_after is not None


async def test_agents_are_listed_by_name_in_pages(service: Running) -> None:
    for number in range(5):
        await register(service, f"http://a{number}.example", f"agent-{number}")
    names: list[str] = []
    token = ""
    while True:
        page = await service.fleet.ListAgents(pb.ListAgentsRequest(page_size=2, page_token=token))
        names += [agent.name for agent in page.agents]
        token = page.next_page_token
        if not token:
            break
    assert names == [f"agents/agent-{number}" for number in range(5)]
    assert page.revision.sequence == 5


async def test_a_page_token_that_is_none_is_refused(service: Running) -> None:
    failed = await failure(service.fleet.ListAgents(pb.ListAgentsRequest(page_token="nonsense")))
    assert (failed.code, failed.reason) == (Code.INVALID_ARGUMENT, "INVALID_REQUEST")


async def test_a_card_is_kept_byte_for_byte_past_its_replacement(service: Running, fetcher: ScriptedFetcher) -> None:
    agent = await register(service, ONE)
    first = (await service.fleet.GetCard(pb.GetCardRequest(agent=ref(ONE)))).card
    fetcher.answers[ONE] = card_document("other", version="2.0")
    refreshed = await service.fleet.RefreshAgent(pb.RefreshAgentRequest(agent=ref(agent.name)))
    assert refreshed.changes.version_changed
    assert not refreshed.changes.silent
    second = (await service.fleet.GetCard(pb.GetCardRequest(agent=ref(ONE)))).card
    assert b"other" in second.body
    for digest in (agent.skill_fingerprint, first.card_digest):
        kept = (await service.fleet.GetCard(pb.GetCardRequest(agent=ref(ONE), digest=digest))).card
        assert kept.body == first.body
    failed = await failure(service.fleet.GetCard(pb.GetCardRequest(agent=ref(ONE), digest="0" * 64)))
    assert (failed.code, failed.reason) == (Code.NOT_FOUND, "SNAPSHOT_UNKNOWN")


async def test_history_and_differences(service: Running, fetcher: ScriptedFetcher) -> None:
    await register(service, ONE)
    for skills in (("summarize", "more"), ("more",)):
        fetcher.answers[ONE] = card_document(*skills)
        await service.fleet.RefreshAgent(pb.RefreshAgentRequest(agent=ref(ONE)))
    page = await service.fleet.ListCards(pb.ListCardsRequest(agent=ref(ONE), page_size=2))
    rest = await service.fleet.ListCards(
        pb.ListCardsRequest(agent=ref(ONE), page_size=2, page_token=page.next_page_token)
    )
    cards = [*page.cards, *rest.cards]
    assert [card.revision.sequence for card in cards] == [4, 3, 2]
    assert not any(card.body for card in cards)
    latest = (await service.fleet.DiffCards(pb.DiffCardsRequest(agent=ref(ONE)))).changes
    assert latest.severity == change_pb2.SEVERITY_BREAKING
    assert [(item.skill_id, item.kind) for item in latest.changes] == [
        ("summarize", change_pb2.CHANGE_KIND_SKILL_REMOVED)
    ]
    all_of_it = await service.fleet.DiffCards(
        pb.DiffCardsRequest(agent=ref(ONE), old_digest=cards[2].card_digest, new_digest=cards[0].card_digest)
    )
    assert {(item.skill_id, item.kind) for item in all_of_it.changes.changes} == {
        ("summarize", change_pb2.CHANGE_KIND_SKILL_REMOVED),
        ("more", change_pb2.CHANGE_KIND_SKILL_ADDED),
    }


async def test_drift_is_logged_with_its_evidence_and_survives_the_agent(
    service: Running, fetcher: ScriptedFetcher
) -> None:
    agent = await register(service, ONE)
    held = (await service.discovery.ResolveSkill(resolve(ONE, "summarize"))).resolution
    fetcher.answers[ONE] = card_document("other")
    await service.discovery.ReportTaskOutcome(report(held, failed_task("unknown skill: summarize")))
    await service.fleet.UnregisterAgent(pb.UnregisterAgentRequest(agent=ref(ONE)))
    events = (await service.fleet.ListDriftEvents(pb.ListDriftEventsRequest(agent=ref(agent.name)))).drift_events
    assert [event.verdict for event in events] == [verdict_pb2.VERDICT_CARD_CHANGED]
    assert events[0].skill_id == "summarize"
    assert events[0].evidence[0].kind == verdict_pb2.EVIDENCE_KIND_UNKNOWN_SKILL
    assert events[0].changes.silent


async def test_silent_mutations_are_counted(service: Running, fetcher: ScriptedFetcher) -> None:
    await register(service, ONE)
    for skill, version in (("a", "1.0"), ("b", "2.0"), ("c", "2.0")):
        fetcher.answers[ONE] = card_document(skill, version=version)
        await service.fleet.RefreshAgent(pb.RefreshAgentRequest(agent=ref(ONE)))
    stats = await service.fleet.GetFleetStats(pb.GetFleetStatsRequest())
    assert (stats.agents, stats.changes, stats.silent_changes, stats.fetches) == (1, 3, 2, 4)


async def test_an_unregistered_agent_is_gone_until_it_is_met_again(service: Running) -> None:
    agent = await register(service, ONE)
    removed = await service.fleet.UnregisterAgent(pb.UnregisterAgentRequest(agent=ref(agent.name)))
    assert removed.revision.sequence == 3
    for call in (
        service.fleet.GetAgent(pb.GetAgentRequest(agent=ref(ONE))),
        service.fleet.UnregisterAgent(pb.UnregisterAgentRequest(agent=ref(ONE))),
        service.fleet.RefreshAgent(pb.RefreshAgentRequest(agent=ref(ONE))),
    ):
        failed = await failure(call)
        assert (failed.code, failed.reason) == (Code.NOT_FOUND, "AGENT_UNKNOWN")
    again = (await service.discovery.ResolveSkill(resolve(ONE, "summarize"))).resolution
    assert again.revision.sequence == 4


async def test_refreshes_on_request_are_bounded_for_each_agent(service: Running) -> None:
    await register(service, ONE)
    for _ in range(service.app.settings.fleet.agent_refetch_burst):
        await service.fleet.RefreshAgent(pb.RefreshAgentRequest(agent=ref(ONE)))
    failed = await failure(service.fleet.RefreshAgent(pb.RefreshAgentRequest(agent=ref(ONE))))
    assert (failed.code, failed.reason) == (Code.RESOURCE_EXHAUSTED, "RATE_LIMITED")
    assert failed.retry_after


async def test_with_a_token_only_its_holder_changes_the_fleet(fetcher: ScriptedFetcher) -> None:
    async with running_service(Settings(admin_token="s3cret"), fetcher=fetcher) as service:
        await service.discovery.ResolveSkill(resolve(ONE, "summarize"))
        changing: list[tuple[Any, Any]] = [
            (service.fleet.RegisterAgent, pb.RegisterAgentRequest(agent_url=TWO)),
            (service.fleet.RefreshAgent, pb.RefreshAgentRequest(agent=ref(ONE))),
            (service.fleet.UnregisterAgent, pb.UnregisterAgentRequest(agent=ref(ONE))),
        ]
        for metadata in (None, (("authorization", "Bearer wrong"),), (("authorization", "s3cret"),)):
            for method, request in changing:
                failed = await failure(method(request, metadata=metadata))
                assert (failed.code, failed.reason) == (Code.UNAUTHENTICATED, "UNAUTHENTICATED")
                assert "s3cret" not in failed.message
        for method, request in changing:
            await method(request, metadata=(("authorization", "Bearer s3cret"),))
        await service.fleet.ListAgents(pb.ListAgentsRequest())  # reading is open


async def test_skills_are_found_across_the_fleet_with_reasons_in_pages(
    service: Running, fetcher: ScriptedFetcher
) -> None:

    await register(service, ONE)
    await register(service, TWO)
    found = await service.discovery.FindSkills(discovery.FindSkillsRequest(query="translate"))
    assert [item.resolution.agent_url for item in found.matches] == [TWO]
    assert found.matches[0].reasons
    everything = await service.discovery.FindSkills(discovery.FindSkillsRequest(page_size=1))
    rest = await service.discovery.FindSkills(
        discovery.FindSkillsRequest(page_size=1, page_token=everything.next_page_token)
    )
    assert {everything.matches[0].resolution.skill_id, rest.matches[0].resolution.skill_id} == {
        "summarize",
        "translate",
    }
    assert rest.next_page_token == ""
    png = discovery.FindSkillsRequest(need=resolution_pb2.SkillNeed(output_modes=["image/png"]))
    assert not (await service.discovery.FindSkills(png)).matches
