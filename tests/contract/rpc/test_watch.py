"""The promises of the invalidation stream (design section 6), one by one, over a real channel."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from cardkeeper.errors import CardUnavailable
from cardkeeper.fleet.policy import FleetPolicy
from cardkeeper.rpc.stream_policy import StreamPolicy
from cardkeeper.settings import Settings
from cardkeeper.store.base import History
from cardkeeper.v1 import change_pb2, fleet_service_pb2, invalidation_pb2, revision_pb2
from contract_requests import failed_task, ref, report, resolve, subscribe
from rpc_errors import failure
from running_service import Running, running_service
from scripted_fetcher import ScriptedFetcher, card_document
from watcher import Watcher, ack, kinds, sequences, unsubscribe

ONE, TWO, THREE = (f"http://agent-{number}.example" for number in ("one", "two", "three"))
QUICK = StreamPolicy(bookmark_interval=0.5)


@pytest.fixture
def fetcher() -> ScriptedFetcher:
    fetcher = ScriptedFetcher()
    for url in (ONE, TWO, THREE):
        fetcher.answers[url] = card_document("summarize")
    return fetcher


@asynccontextmanager
async def serving(fetcher: ScriptedFetcher, settings: Settings | None = None) -> AsyncIterator[Running]:
    async with running_service(settings or Settings(streams=QUICK), fetcher=fetcher) as service:
        yield service


@pytest.fixture
async def service(fetcher: ScriptedFetcher) -> AsyncIterator[Running]:
    async with serving(fetcher) as running:
        yield running


async def learn(service: Running, *urls: str) -> dict[str, Any]:
    """Let the service know the agents; return their resolutions."""
    return {url: (await service.discovery.ResolveSkill(resolve(url, "summarize"))).resolution for url in urls}


async def change(
    service: Running, fetcher: ScriptedFetcher, url: str, *skills: str | dict[str, Any], **card: Any
) -> None:
    """Give an agent another card, and have it noticed."""
    fetcher.answers[url] = card_document(*skills, **card)
    await service.fleet.RefreshAgent(fleet_service_pb2.RefreshAgentRequest(agent=ref(url)))


async def remove(service: Running, name: str) -> None:
    await service.fleet.UnregisterAgent(fleet_service_pb2.UnregisterAgentRequest(agent=ref(name)))


async def test_changes_arrive_in_the_order_of_revisions_and_none_is_missing(
    service: Running, fetcher: ScriptedFetcher
) -> None:
    await learn(service, ONE, TWO, THREE)
    watcher = Watcher(service)
    await watcher.say(subscribe())
    assert (await watcher.next("synced")).revision.sequence == 3
    for url, skill in ((TWO, "a"), (ONE, "b"), (THREE, "c")):
        await change(service, fetcher, url, skill)
    frames = [frame for frame in await watcher.until("bookmark") if frame.WhichOneof("event") == "invalidation"]
    assert [frame.invalidation.agent_url for frame in frames] == [TWO, ONE, THREE]
    assert sequences(frames) == [4, 5, 6]
    watcher.close()


async def test_a_removal_is_told_and_says_what_was_held(service: Running, fetcher: ScriptedFetcher) -> None:
    held = (await learn(service, ONE))[ONE]
    watcher = Watcher(service)
    await watcher.say(subscribe(ONE))
    await watcher.next("synced")
    await remove(service, held.agent)
    told = (await watcher.until("invalidation"))[-1].invalidation
    assert told.removed
    assert told.changes.previous_skill_fingerprint == held.skill_fingerprint
    assert told.changes.skill_fingerprint == ""
    watcher.close()


async def test_bookmarks_carry_the_head_and_come_only_after_what_precedes_them(
    service: Running, fetcher: ScriptedFetcher
) -> None:
    await learn(service, ONE)
    watcher = Watcher(service)
    await watcher.say(subscribe(TWO))
    await watcher.next("synced")
    await change(service, fetcher, ONE, "other")  # of no concern to this client, but the head moves
    bookmark = (await watcher.until("bookmark"))[-1]
    while bookmark.revision.sequence < 2:
        bookmark = (await watcher.until("bookmark"))[-1]
    assert bookmark.revision.sequence == 2
    watcher.close()


async def test_a_client_that_returns_gets_what_it_missed_once_for_each_agent_and_then_synced(
    service: Running, fetcher: ScriptedFetcher
) -> None:
    held = await learn(service, ONE, TWO, THREE)
    at = revision_pb2.Revision(epoch=held[ONE].revision.epoch, sequence=3)
    await change(service, fetcher, ONE, "a")
    await change(service, fetcher, ONE, "b")
    await change(service, fetcher, TWO, "c")
    await remove(service, held[THREE].agent)
    watcher = Watcher(service)
    await watcher.say(subscribe(resume_from=at))
    frames = await watcher.until("synced")
    assert kinds(frames) == ["invalidation", "invalidation", "invalidation", "synced"]
    assert [frame.invalidation.agent_url for frame in frames[:-1]] == [ONE, TWO, THREE]
    assert sequences(frames) == [5, 6, 7, 7]
    assert frames[0].invalidation.changes.previous_skill_fingerprint == held[ONE].skill_fingerprint
    assert frames[2].invalidation.removed
    watcher.close()


async def test_a_client_that_missed_nothing_is_told_nothing(service: Running) -> None:
    held = await learn(service, ONE)
    watcher = Watcher(service)
    await watcher.say(subscribe(resume_from=held[ONE].revision))
    assert kinds(await watcher.until("synced")) == ["synced"]
    watcher.close()


async def test_where_history_does_not_reach_back_the_gap_is_said_and_the_difference_is_finite(
    fetcher: ScriptedFetcher,
) -> None:
    async with serving(fetcher, Settings(streams=QUICK, history=History(events=2))) as service:
        held = await learn(service, ONE, TWO, THREE)
        at = held[ONE].revision
        await remove(service, held[THREE].agent)
        for skill in ("a", "b", "c"):
            await change(service, fetcher, ONE, skill)
        watcher = Watcher(service)
        listed = [
            invalidation_pb2.Held(agent=item.agent, skill_fingerprint=item.skill_fingerprint) for item in held.values()
        ]
        await watcher.say(subscribe(resume_from=at, held=listed))
        frames = await watcher.until("synced")
        assert kinds(frames) == ["resync", "invalidation", "invalidation", "synced"]
        assert frames[0].resync.reason == invalidation_pb2.Resync.REASON_COMPACTED
        told = {frame.invalidation.agent: frame.invalidation for frame in frames[1:3]}
        assert set(told) == {held[ONE].agent, held[THREE].agent}
        assert told[held[THREE].agent].removed
        assert sequences(frames) == sorted(sequences(frames))
        watcher.close()


async def test_a_new_epoch_is_said(service: Running) -> None:
    held = await learn(service, ONE)
    watcher = Watcher(service)
    await watcher.say(subscribe(resume_from=revision_pb2.Revision(epoch="another", sequence=1)))
    frames = await watcher.until("synced")
    assert kinds(frames) == ["resync", "synced"]
    assert frames[0].resync.reason == invalidation_pb2.Resync.REASON_EPOCH_CHANGED
    assert frames[1].revision == held[ONE].revision
    watcher.close()


async def test_a_restart_on_the_embedded_store_needs_no_resync(fetcher: ScriptedFetcher, tmp_path: Path) -> None:
    settings = Settings(streams=QUICK, data=tmp_path / "state.db")
    async with serving(fetcher, settings) as service:
        held = await learn(service, ONE)
        await change(service, fetcher, ONE, "a")
    async with serving(fetcher, settings) as service:
        watcher = Watcher(service)
        await watcher.say(subscribe(resume_from=held[ONE].revision))
        frames = await watcher.until("synced")
        assert kinds(frames) == ["invalidation", "synced"]
        assert frames[1].revision.epoch == held[ONE].revision.epoch
        assert sequences(frames) == [2, 2]
        watcher.close()


@pytest.fixture
async def eager(fetcher: ScriptedFetcher) -> AsyncIterator[Running]:
    """A service that may be asked to re-fetch as often as one likes."""
    async with serving(fetcher, Settings(streams=QUICK, fleet=FleetPolicy(agent_refetch_burst=10_000))) as running:
        yield running


async def test_a_client_that_does_not_read_gets_the_newest_state_of_each_agent(
    eager: Running, fetcher: ScriptedFetcher
) -> None:
    service = eager
    held = await learn(service, ONE, TWO)
    watcher = Watcher(service)
    await watcher.say(subscribe())
    await watcher.next("synced")
    filler = "x" * 2000  # the transport absorbs some hundred kilobytes before the server notices
    for number in range(400):
        skills = [{"id": f"{filler}-{number}-{index}", "name": "s"} for index in range(5)]
        await change(service, fetcher, ONE, *skills)
        if number == 200:
            await change(service, fetcher, TWO, "b")
    await change(service, fetcher, ONE, "last")
    last: dict[str, Any] = {}
    seen: list[int] = []
    while not seen or seen[-1] < 404:
        frame = await watcher.next()
        seen.append(frame.revision.sequence)
        if frame.WhichOneof("event") == "invalidation":
            last[frame.invalidation.agent_url] = frame.invalidation
    assert seen == sorted(seen)
    current = (await service.discovery.ResolveSkill(resolve(ONE, "last"))).resolution
    assert last[ONE].changes.skill_fingerprint == current.skill_fingerprint
    assert last[TWO].changes.previous_skill_fingerprint == held[TWO].skill_fingerprint
    watcher.close()


async def test_a_client_that_stops_acknowledging_is_closed_with_a_typed_status(fetcher: ScriptedFetcher) -> None:
    policy = StreamPolicy(bookmark_interval=0.5, ack_timeout=0.5)
    async with serving(fetcher, Settings(streams=policy)) as service:
        await learn(service, ONE)
        watcher = Watcher(service)
        await watcher.say(subscribe())
        synced = await watcher.next("synced")
        await watcher.say(ack(synced.revision))
        await change(service, fetcher, ONE, "a")

        async def read_on() -> None:
            while True:
                await watcher.next()

        failed = await failure(read_on())
        assert (failed.code, failed.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "ACK_OVERDUE")


async def test_an_invalidation_says_enough_to_decide(service: Running, fetcher: ScriptedFetcher) -> None:
    held = (await learn(service, ONE))[ONE]
    watcher = Watcher(service)
    await watcher.say(subscribe(ONE, include_resolutions=[resolve(ONE, "summarize").need, resolve(ONE, "new").need]))
    await watcher.next("synced")
    await change(service, fetcher, ONE, {"id": "summarize", "name": "s", "outputModes": ["text/plain"]}, "new")
    frame = (await watcher.until("invalidation"))[-1]
    told = frame.invalidation
    assert (told.agent, told.agent_url) == (held.agent, ONE)
    assert told.cause == change_pb2.CAUSE_REQUESTED
    assert told.changes.previous_skill_fingerprint == held.skill_fingerprint
    assert told.changes.severity == change_pb2.SEVERITY_BREAKING
    assert told.changes.silent
    assert not told.changes.version_changed
    assert set(told.skill_ids) == {"summarize", "new"}
    assert {item.skill_id: list(item.output_modes) for item in told.resolutions} == {
        "summarize": ["text/plain"],
        "new": ["text/markdown"],
    }
    assert told.agent_revision == frame.revision
    watcher.close()


async def test_an_invalidation_lists_what_is_odd_about_the_new_card(service: Running, fetcher: ScriptedFetcher) -> None:
    await learn(service, ONE)
    watcher = Watcher(service)
    await watcher.say(subscribe(ONE))
    await watcher.next("synced")
    await change(service, fetcher, ONE, "summarize", {"name": "nameless", "tags": []}, "bare")
    told = (await watcher.until("invalidation"))[-1].invalidation
    assert ("skill.id.missing", "/skills/1/id") in [(item.id, item.pointer) for item in told.findings]
    watcher.close()


@pytest.mark.parametrize(
    ("filters", "passes"),
    [
        ({"min_severity": change_pb2.SEVERITY_BREAKING}, {"breaking"}),
        ({"min_severity": change_pb2.SEVERITY_COMPATIBLE}, {"breaking", "compatible"}),
        ({"min_severity": change_pb2.SEVERITY_COSMETIC}, {"breaking", "compatible", "cosmetic"}),
        ({}, {"breaking", "compatible", "cosmetic"}),
        ({"skill_ids": ["added"]}, {"compatible"}),
        ({"tags": ["rare"]}, {"compatible"}),
        ({"tags": ["nobody"]}, set()),
    ],
)
async def test_a_subscription_filters_by_severity_skill_and_tag(
    service: Running, fetcher: ScriptedFetcher, filters: dict[str, Any], passes: set[str]
) -> None:
    await learn(service, ONE, TWO, THREE)
    watcher = Watcher(service)
    await watcher.say(subscribe(**filters))
    await watcher.next("synced")
    await change(service, fetcher, ONE, "other")
    await change(service, fetcher, TWO, "summarize", {"id": "added", "name": "s", "tags": ["rare"]})
    reworded = {"id": "summarize", "name": "summarize", "description": "reworded", "tags": ["t"]}
    await change(service, fetcher, THREE, reworded)
    told = set()
    while True:
        frame = await watcher.next()
        if frame.WhichOneof("event") == "bookmark" and frame.revision.sequence == 6:
            break
        if frame.WhichOneof("event") == "invalidation":
            told.add({ONE: "breaking", TWO: "compatible", THREE: "cosmetic"}[frame.invalidation.agent_url])
    assert told == passes
    watcher.close()


async def test_a_removal_passes_every_filter(service: Running) -> None:
    held = (await learn(service, ONE))[ONE]
    watcher = Watcher(service)
    await watcher.say(subscribe(min_severity=change_pb2.SEVERITY_BREAKING, skill_ids=["none"], tags=["none"]))
    await watcher.next("synced")
    await remove(service, held.agent)
    assert (await watcher.until("invalidation"))[-1].invalidation.removed
    watcher.close()


async def test_subscriptions_change_on_the_live_stream(service: Running, fetcher: ScriptedFetcher) -> None:
    await learn(service, ONE, TWO)
    watcher = Watcher(service)
    await watcher.say(subscribe(ONE, id=1))
    await watcher.next("synced")
    await watcher.say(subscribe(TWO, id=2))
    assert (await watcher.until("synced"))[-1].synced.subscription_id == 2
    await watcher.say(unsubscribe(1), subscribe(THREE, id=3))
    await watcher.until("synced")  # answered in order: the first subscription has ended by now
    await change(service, fetcher, ONE, "a")
    await change(service, fetcher, TWO, "b")
    assert (await watcher.until("invalidation"))[-1].invalidation.agent_url == TWO
    watcher.close()


async def test_an_agent_may_be_subscribed_to_before_it_is_known(service: Running, fetcher: ScriptedFetcher) -> None:
    watcher = Watcher(service)
    await watcher.say(subscribe(ONE))
    assert (await watcher.next("synced")).synced.agent_count == 0
    await learn(service, ONE)
    assert (await watcher.until("invalidation"))[-1].invalidation.agent_url == ONE
    watcher.close()


async def test_overlapping_subscriptions_tell_once(service: Running, fetcher: ScriptedFetcher) -> None:
    held = await learn(service, ONE)
    watcher = Watcher(service)
    await watcher.say(subscribe(ONE, id=1), subscribe(held[ONE].agent, id=2), subscribe(id=3))
    for _ in range(3):
        await watcher.until("synced")
    await change(service, fetcher, ONE, "a")
    frames = await watcher.until("bookmark")
    while frames[-1].revision.sequence < 2:
        frames += await watcher.until("bookmark")
    assert kinds(frames).count("invalidation") == 1
    watcher.close()


async def test_loss_of_authority_is_told_and_so_is_its_end(service: Running, fetcher: ScriptedFetcher) -> None:
    held = (await learn(service, ONE))[ONE]
    watcher = Watcher(service)
    await watcher.say(subscribe(ONE))
    await watcher.next("synced")
    fetcher.answers[ONE] = CardUnavailable("gone", metadata={"cause": "connection"})
    await service.discovery.ReportTaskOutcome(report(held, failed_task("unknown skill: summarize")))
    told = (await watcher.until("revalidate"))[-1].revalidate
    assert list(told.agents) == [held.agent]
    assert told.reason == "suspect"
    assert told.agent_revision.sequence == 2
    late = Watcher(service)
    await late.say(subscribe(ONE))
    assert kinds(await late.until("synced")) == ["revalidate", "synced"]
    fetcher.answers[ONE] = card_document("summarize")
    await service.fleet.RefreshAgent(fleet_service_pb2.RefreshAgentRequest(agent=ref(ONE)))
    again = (await service.discovery.ResolveSkill(resolve(ONE, "summarize"))).resolution
    assert again.revision.sequence > told.agent_revision.sequence
    watcher.close()
    late.close()


async def test_a_drain_says_goodbye_with_a_hint_and_ends_the_stream_in_order(fetcher: ScriptedFetcher) -> None:
    async with serving(fetcher) as service:
        watcher = Watcher(service)
        await watcher.say(subscribe())
        await watcher.next("synced")
        draining = asyncio.create_task(service.app.server.drain(2.0))
        goodbye = (await watcher.until("draining"))[-1]
        assert goodbye.draining.reconnect_within.ToTimedelta().total_seconds() >= 1.0
        assert await asyncio.wait_for(watcher.call.read(), 5) is grpc.aio.EOF
        assert await watcher.call.code() is grpc.StatusCode.OK
        await draining


async def test_quotas_on_streams_and_subscriptions_are_typed(fetcher: ScriptedFetcher) -> None:
    policy = replace(QUICK, max_streams_per_peer=2, max_subscriptions=2, max_subscribed_agents=2)
    async with serving(fetcher, Settings(streams=policy)) as service:
        watchers = [Watcher(service), Watcher(service)]
        for watcher in watchers:
            await watcher.say(subscribe(id=1), subscribe(id=2))
            await watcher.until("synced")
            await watcher.until("synced")
        third = Watcher(service)
        failed = await failure(third.next())
        assert (failed.code, failed.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED")
        assert failed.retry_after is not None
        await watchers[0].say(subscribe(id=3))
        failed = await failure(_read_on(watchers[0]))
        assert (failed.code, failed.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED")
        await watchers[1].say(subscribe(ONE, TWO, THREE, id=2))
        failed = await failure(_read_on(watchers[1]))
        assert (failed.code, failed.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "QUOTA_EXCEEDED")
        fresh = Watcher(service)  # those that ended made room
        await fresh.say(subscribe())
        await fresh.until("synced")
        fresh.close()


async def test_an_event_is_encoded_once_for_all_its_subscribers(service: Running, fetcher: ScriptedFetcher) -> None:
    await learn(service, ONE)
    watchers = [Watcher(service) for _ in range(20)]
    for watcher in watchers:
        await watcher.say(subscribe())
        await watcher.until("synced")
    encoded: list[int] = []
    frames = service.app.frames
    original = frames._encode

    def counted(event: Any, *rest: Any) -> bytes:
        encoded.append(event.sequence)
        return original(event, *rest)

    frames._encode = counted  # type: ignore[method-assign]  # a count, not another behaviour
    await change(service, fetcher, ONE, "a")
    for watcher in watchers:
        await watcher.until("invalidation")
        watcher.close()
    assert encoded == [2]


async def test_a_half_closed_client_goes_on_reading(service: Running, fetcher: ScriptedFetcher) -> None:
    await learn(service, ONE)
    watcher = Watcher(service)
    await watcher.say(subscribe())
    await watcher.call.done_writing()
    await watcher.until("synced")
    await change(service, fetcher, ONE, "a")
    await watcher.until("invalidation")
    watcher.close()


async def _read_on(watcher: Watcher) -> None:
    while True:
        await watcher.next()
