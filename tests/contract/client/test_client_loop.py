"""Both Python clients against the real service over a real channel."""

import asyncio
import json
import pickle
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from cardkeeper.errors import CardUnavailable
from cardkeeper.fleet.policy import FleetPolicy
from cardkeeper.rpc.stream_policy import StreamPolicy
from cardkeeper.settings import Settings
from cardkeeper.v1 import fleet_service_pb2
from cardkeeper_client import (
    AgentContradictsCardError,
    ArtifactSchemaDriftError,
    Cardkeeper,
    CardkeeperAsync,
    NotJudgedError,
    Resolution,
    ServiceError,
    ServiceUnavailableError,
    SkillRefusedError,
    StaleAgentCardError,
)
from cardkeeper_client.v1 import observation_pb2, verdict_pb2
from contract_requests import failed_task, ref, text_artifact
from running_service import Running, running_service
from scripted_fetcher import ScriptedFetcher, card_document

AGENT = "http://agent.example"
GONE = failed_task("unknown skill: summarize")


def completed(media_type: str = "text/markdown") -> dict[str, Any]:
    return {
        "kind": "task",
        "id": "t",
        "contextId": "c",
        "status": {"state": "completed"},
        "artifacts": [text_artifact(media_type)],
    }


@pytest.fixture
def fetcher() -> ScriptedFetcher:
    fetcher = ScriptedFetcher()
    fetcher.answers[AGENT] = card_document("summarize", "translate")
    return fetcher


@pytest.fixture
async def service(fetcher: ScriptedFetcher) -> AsyncIterator[Running]:
    settings = Settings(streams=StreamPolicy(bookmark_interval=1.0), fleet=FleetPolicy(agent_refetch_burst=1000))
    async with running_service(settings, fetcher=fetcher) as running:
        yield running


@pytest.fixture
async def cards(service: Running) -> AsyncIterator[CardkeeperAsync]:
    async with CardkeeperAsync(service.target) as client:
        yield client


async def change(service: Running, fetcher: ScriptedFetcher, *skills: Any, **card: Any) -> None:
    fetcher.answers[AGENT] = card_document(*skills, **card)
    await service.fleet.RefreshAgent(fleet_service_pb2.RefreshAgentRequest(agent=ref(AGENT)))


async def eventually(holds: Callable[[], bool], timeout: float = 5.0) -> None:
    async with asyncio.timeout(timeout):
        while not holds():
            await asyncio.sleep(0.01)


# The near cache


async def test_in_sync_an_answer_comes_from_memory(service: Running, cards: CardkeeperAsync) -> None:
    assert await cards.wait_until_in_sync()
    first = await cards.resolve(AGENT, "summarize")
    assert await cards.resolve(AGENT, "summarize") is first
    assert await cards.resolve(AGENT, "summarize", output_modes=["text/markdown"]) is not first


async def test_an_invalidated_answer_is_never_given_again(
    service: Running, cards: CardkeeperAsync, fetcher: ScriptedFetcher
) -> None:
    await cards.wait_until_in_sync()
    first = await cards.resolve(AGENT, "summarize")
    await change(service, fetcher, {"id": "summarize", "name": "s", "outputModes": ["text/plain"]})
    await eventually(lambda: not cards._cache.answers)
    second = await cards.resolve(AGENT, "summarize")
    assert second.output_modes == ("text/plain",)
    assert second.sequence > first.sequence


async def test_another_client_learns_of_the_drift_that_this_one_reported(
    service: Running, cards: CardkeeperAsync, fetcher: ScriptedFetcher
) -> None:
    async with CardkeeperAsync(service.target) as other:
        await other.wait_until_in_sync()
        await other.resolve(AGENT, "summarize")
        mine = await cards.resolve(AGENT, "summarize")
        fetcher.answers[AGENT] = card_document("translate")
        with pytest.raises(StaleAgentCardError):
            await cards.report(mine, GONE)
        await eventually(lambda: not other._cache.answers)
        with pytest.raises(SkillRefusedError):
            await other.resolve(AGENT, "summarize")
        assert fetcher.count(AGENT) == 2


async def test_a_suspect_agent_is_not_answered_for_from_memory(
    service: Running, cards: CardkeeperAsync, fetcher: ScriptedFetcher
) -> None:
    await cards.wait_until_in_sync()
    held = await cards.resolve(AGENT, "summarize")
    fetcher.answers[AGENT] = CardUnavailable("gone", metadata={"cause": "connection"})
    with pytest.raises(StaleAgentCardError) as caught:
        await cards.report(held, GONE)
    assert caught.value.judgement.verdict == verdict_pb2.VERDICT_UNCONFIRMED
    assert caught.value.retry_after
    await eventually(lambda: not cards._cache.answers)
    with pytest.raises(ServiceError) as refused:
        await cards.resolve(AGENT, "summarize")
    assert refused.value.reason == "CARD_SUSPECT"


async def test_nothing_is_answered_from_memory_while_the_service_is_away(fetcher: ScriptedFetcher) -> None:
    async with running_service(fetcher=fetcher) as service:
        client = CardkeeperAsync(service.target, timeout=1.0)
        await client.wait_until_in_sync()
        await client.resolve(AGENT, "summarize")
    await eventually(lambda: not client.in_sync)
    with pytest.raises(ServiceUnavailableError):
        await client.resolve(AGENT, "summarize")
    await client.close()


# Errors


async def test_a_refusal_says_what_is_offered_instead(cards: CardkeeperAsync) -> None:
    with pytest.raises(SkillRefusedError) as caught:
        await cards.resolve(AGENT, "sumarize")
    assert caught.value.reason == "SKILL_NOT_ADVERTISED"
    assert list(caught.value.near) == ["summarize"]
    assert set(caught.value.advertised) == {"summarize", "translate"}
    with pytest.raises(SkillRefusedError) as caught:
        await cards.resolve(AGENT, "summarize", output_modes=["image/png"])
    assert list(caught.value.offered) == ["text/markdown"]
    with pytest.raises(ServiceError) as wrong:
        await cards.resolve("nonsense", "summarize")
    assert wrong.value.reason == "INVALID_REQUEST"
    assert wrong.value.fields


async def test_a_drift_error_is_one_good_log_line_and_survives_pickling(
    service: Running, cards: CardkeeperAsync, fetcher: ScriptedFetcher
) -> None:
    held = await cards.resolve(AGENT, "summarize")
    fetcher.answers[AGENT] = card_document("summarize-v2", "translate")
    with pytest.raises(StaleAgentCardError) as caught:
        await cards.report(held, GONE)
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):  # noqa: S301 - our own bytes
        line = str(error)
        assert "\n" not in line
        for word in (AGENT, "summarize", "CARD_CHANGED", held.skill_fingerprint[:12], "near=summarize-v2"):
            assert word in line
    refused = ServiceError("m", reason="CARD_SUSPECT", code="FAILED_PRECONDITION", retry_after=1.0)
    assert str(pickle.loads(pickle.dumps(refused))) == str(refused)  # noqa: S301 - our own bytes


# Reports and artifacts


async def test_artifacts_are_judged_by_the_negotiated_card(
    service: Running, cards: CardkeeperAsync, fetcher: ScriptedFetcher
) -> None:
    held = await cards.resolve(AGENT, "summarize")
    await change(service, fetcher, {"id": "summarize", "name": "s", "outputModes": ["text/plain"]})
    assert (await cards.validate(held, text_artifact("text/markdown"))).accepted
    with pytest.raises(ArtifactSchemaDriftError):
        await cards.validate(held, text_artifact("text/plain"))
    assert not (await cards.validate(held, json.dumps(text_artifact("text/plain")), raise_on_drift=False)).accepted


async def test_a_summary_without_content_is_enough(cards: CardkeeperAsync) -> None:
    held = await cards.resolve(AGENT, "summarize")
    summary = observation_pb2.TaskOutcomeSummary(task_state="completed", artifact_media_types=["text/markdown"])
    judgement = await cards.report(held, summary)
    assert judgement.verdict == verdict_pb2.VERDICT_NO_DRIFT


# The guarded call


async def test_a_guarded_call_returns_what_the_agent_answered(cards: CardkeeperAsync) -> None:
    async def run(resolution: Resolution) -> dict[str, Any]:
        assert resolution.endpoint_url
        return completed()

    assert await cards.call(AGENT, "summarize", run) == completed()


async def test_a_guarded_call_heals_by_one_retry_with_the_fresh_card(
    service: Running, cards: CardkeeperAsync, fetcher: ScriptedFetcher
) -> None:
    endpoints: list[str] = []
    moved = card_document("summarize")
    moved["supportedInterfaces"][0]["url"] = "https://new.example.com/a2a"

    async def run(resolution: Resolution) -> dict[str, Any]:
        endpoints.append(resolution.endpoint_url)
        fetcher.answers[AGENT] = moved
        return completed() if resolution.endpoint_url == "https://new.example.com/a2a" else GONE

    assert await cards.call(AGENT, "summarize", run) == completed()
    assert endpoints == ["https://peer.example.com/a2a", "https://new.example.com/a2a"]


async def test_a_guarded_call_ends_with_the_drift_where_no_retry_helps(
    cards: CardkeeperAsync, fetcher: ScriptedFetcher
) -> None:
    runs: list[Resolution] = []

    async def run(resolution: Resolution) -> dict[str, Any]:
        runs.append(resolution)
        fetcher.answers[AGENT] = card_document("translate")
        return GONE

    with pytest.raises(StaleAgentCardError) as caught:
        await cards.call(AGENT, "summarize", run)
    assert len(runs) == 1
    assert caught.value.answer == GONE


async def test_a_guarded_call_stops_an_artifact_of_another_type(
    cards: CardkeeperAsync, fetcher: ScriptedFetcher
) -> None:
    async def run(resolution: Resolution) -> dict[str, Any]:
        fetcher.answers[AGENT] = card_document({"id": "summarize", "name": "s", "outputModes": ["text/plain"]})
        return completed("text/plain")

    with pytest.raises(ArtifactSchemaDriftError):
        await cards.call(AGENT, "summarize", run)


async def test_a_guarded_call_lets_untyped_text_of_an_unchanged_agent_pass(cards: CardkeeperAsync) -> None:
    async def run(resolution: Resolution) -> dict[str, Any]:
        return completed("")

    assert await cards.call(AGENT, "summarize", run) == completed("")


async def test_a_contradiction_is_no_stale_card(cards: CardkeeperAsync) -> None:
    async def run(resolution: Resolution) -> dict[str, Any]:
        return GONE

    with pytest.raises(AgentContradictsCardError):
        await cards.call(AGENT, "summarize", run)


class HttpError(Exception):
    """An HTTP client's error, in the shape that they share."""

    def __init__(self, status: int, content: bytes) -> None:
        super().__init__(f"HTTP {status}")
        self.response = type("Response", (), {"status_code": status, "content": content})()


async def test_an_agents_error_is_reported_and_anything_else_is_raised_again(
    cards: CardkeeperAsync, fetcher: ScriptedFetcher
) -> None:
    async def refused(resolution: Resolution) -> str:
        fetcher.answers[AGENT] = card_document("translate")
        raise HttpError(410, b"Gone")

    with pytest.raises(StaleAgentCardError) as caught:
        await cards.call(AGENT, "summarize", refused)
    assert isinstance(caught.value.__cause__, HttpError)

    async def broken(resolution: Resolution) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await cards.call(AGENT, "translate", broken)

    async def overloaded(resolution: Resolution) -> str:
        raise HttpError(503, b"busy")

    with pytest.raises(HttpError):
        await cards.call(AGENT, "translate", overloaded)


async def test_an_answer_that_nobody_can_judge_is_not_lost(fetcher: ScriptedFetcher) -> None:
    async with running_service(fetcher=fetcher) as service:
        client = CardkeeperAsync(service.target, timeout=1.0)

        async def run(resolution: Resolution) -> dict[str, Any]:
            await service.app.server.drain(0.1)
            return completed()

        with pytest.raises(NotJudgedError) as caught:
            await client.call(AGENT, "summarize", run)
        assert caught.value.answer == completed()
        await client.close()


# The synchronous client: the same steps, in threads


async def test_the_synchronous_client_does_the_same(service: Running, fetcher: ScriptedFetcher) -> None:
    def script() -> None:
        with Cardkeeper(service.target) as cards:
            assert cards.wait_until_in_sync()
            held = cards.resolve(AGENT, "summarize")
            assert cards.resolve(AGENT, "summarize") is held
            assert [found.skill_id for found in cards.find("translate")] == ["translate"]
            assert cards.call(AGENT, "summarize", lambda resolution: completed()) == completed()
            assert cards.validate(held, text_artifact("text/markdown")).accepted
            fetcher.answers[AGENT] = card_document("translate")
            with pytest.raises(StaleAgentCardError):
                cards.call(AGENT, "summarize", lambda resolution: GONE)
            with pytest.raises(SkillRefusedError):
                cards.resolve(AGENT, "summarize")

    await asyncio.to_thread(script)


async def test_many_threads_share_one_stream(service: Running) -> None:
    def script() -> None:
        with Cardkeeper(service.target) as cards:
            threads = [threading.Thread(target=cards.resolve, args=(AGENT, "summarize")) for _ in range(50)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(10)
            assert cards.wait_until_in_sync()
            streams.append(len(service.app.watch))

    streams: list[int] = []
    await asyncio.to_thread(script)
    assert streams == [1]


async def test_a_client_leaves_no_stream_and_no_thread_behind(service: Running) -> None:
    def script() -> None:
        with Cardkeeper(service.target) as cards:
            assert cards.wait_until_in_sync()

    await asyncio.to_thread(script)
    await eventually(lambda: len(service.app.watch) == 0)
    assert not [thread for thread in threading.enumerate() if thread.name == "cardkeeper stream"]
