"""What a client that was away too long is told: nothing that it holds stays wrong, whatever its filter."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from cardkeeper.fleet.policy import FleetPolicy
from cardkeeper.settings import Settings
from cardkeeper.store.base import History
from cardkeeper.v1 import change_pb2, fleet_service_pb2, invalidation_pb2
from contract_requests import ref, resolve, subscribe
from running_service import Running, running_service
from scripted_fetcher import ScriptedFetcher, card_document
from watcher import Frame, Watcher, kinds

ONE, OTHER = "http://agent-one.example", "http://agent-other.example"
BLUE = {"id": "summarize", "name": "summarize", "description": "d", "tags": ["blue"]}


@pytest.fixture
def fetcher() -> ScriptedFetcher:
    fetcher = ScriptedFetcher()
    for url in (ONE, OTHER):
        fetcher.answers[url] = card_document(BLUE)
    return fetcher


@pytest.fixture
async def service(fetcher: ScriptedFetcher) -> AsyncIterator[Running]:
    """A service that forgets its log after two revisions."""
    settings = Settings(history=History(events=2), fleet=FleetPolicy(agent_refetch_burst=100))
    async with running_service(settings, fetcher=fetcher) as running:
        yield running


async def learn(service: Running, url: str) -> Any:
    return (await service.discovery.ResolveSkill(resolve(url, "summarize"))).resolution


async def change(service: Running, fetcher: ScriptedFetcher, url: str, *skills: Any, **card: Any) -> None:
    fetcher.answers[url] = card_document(*skills, **card)
    await service.fleet.RefreshAgent(fleet_service_pb2.RefreshAgentRequest(agent=ref(url)))


async def forget_the_log(service: Running, fetcher: ScriptedFetcher) -> None:
    for number in range(4):
        await change(service, fetcher, OTHER, f"skill-{number}")


async def told(service: Running, held: Any, *agents: str, **terms: Any) -> list[Frame]:
    watcher = Watcher(service)
    listed = [invalidation_pb2.Held(agent=held.agent, skill_fingerprint=held.skill_fingerprint)]
    await watcher.say(subscribe(*agents, resume_from=held.revision, held=listed, **terms))
    frames = await watcher.until("synced")
    watcher.close()
    assert frames[0].resync.reason == invalidation_pb2.Resync.REASON_COMPACTED
    return [frame for frame in frames if frame.invalidation.agent == held.agent]


async def test_a_filter_by_tag_lets_a_change_of_what_is_held_pass(service: Running, fetcher: ScriptedFetcher) -> None:
    await learn(service, OTHER)
    held = await learn(service, ONE)
    await change(service, fetcher, ONE, "translate")
    await forget_the_log(service, fetcher)
    assert kinds(await told(service, held, tags=["blue"])) == ["invalidation"]


async def test_a_change_beneath_the_fingerprint_is_told(service: Running, fetcher: ScriptedFetcher) -> None:
    await learn(service, OTHER)
    held = await learn(service, ONE)
    moved = [{"url": "https://moved.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]
    await change(service, fetcher, ONE, BLUE, supportedInterfaces=moved)
    await forget_the_log(service, fetcher)
    (frame,) = await told(service, held, min_severity=change_pb2.SEVERITY_BREAKING)
    assert frame.invalidation.changes.skill_fingerprint == held.skill_fingerprint
    assert (await learn(service, ONE)).endpoint_url == "https://moved.example/a2a"


async def test_what_did_not_change_is_not_told(service: Running, fetcher: ScriptedFetcher) -> None:
    await learn(service, OTHER)
    held = await learn(service, ONE)
    await forget_the_log(service, fetcher)
    assert await told(service, held) == []


async def test_a_snapshot_that_is_forgotten_is_taken_for_the_worst(service: Running, fetcher: ScriptedFetcher) -> None:
    await learn(service, OTHER)
    held = await learn(service, ONE)
    held.skill_fingerprint = "0" * 64
    await forget_the_log(service, fetcher)
    (frame,) = await told(service, held, min_severity=change_pb2.SEVERITY_BREAKING, tags=["red"], skill_ids=["none"])
    assert frame.invalidation.changes.severity == change_pb2.SEVERITY_BREAKING
    assert frame.invalidation.changes.previous_skill_fingerprint == "0" * 64


async def test_a_removal_is_told_to_who_subscribed_by_url(service: Running, fetcher: ScriptedFetcher) -> None:
    await learn(service, OTHER)
    held = await learn(service, ONE)
    await service.fleet.UnregisterAgent(fleet_service_pb2.UnregisterAgentRequest(agent=ref(held.agent)))
    await forget_the_log(service, fetcher)
    (frame,) = await told(service, held, ONE)
    assert frame.invalidation.removed
