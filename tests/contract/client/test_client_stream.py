"""What both clients make of the stream, against a service that says exactly what a test wants."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol

import grpc
import pytest
from google.protobuf import any_pb2, duration_pb2

from cardkeeper_client import Cardkeeper, CardkeeperAsync, ClosedError, Resolution, ServiceUnavailableError
from cardkeeper_client.v1 import discovery_service_pb2 as pb
from cardkeeper_client.v1 import invalidation_pb2, resolution_pb2, rpc_status_pb2
from scripted_watch import URL, ScriptedService, at, bookmark, invalidated, resync, scripted_service, synced


class Either(Protocol):
    """The surface that the tests need, asynchronous whatever the client is."""

    async def resolve(self) -> Resolution: ...
    def in_sync(self) -> bool: ...
    async def wait(self) -> bool: ...
    async def close(self) -> None: ...


class Asynchronous:
    def __init__(self, target: str, **options: Any) -> None:
        self.client = CardkeeperAsync(target, **options)

    async def resolve(self) -> Resolution:
        return await self.client.resolve(URL, "s")

    def in_sync(self) -> bool:
        return self.client.in_sync

    async def wait(self) -> bool:
        return await self.client.wait_until_in_sync(0.0)

    async def close(self) -> None:
        await self.client.close()


class Synchronous:
    def __init__(self, target: str, **options: Any) -> None:
        self.client = Cardkeeper(target, **options)

    async def resolve(self) -> Resolution:
        return await asyncio.to_thread(self.client.resolve, URL, "s")

    def in_sync(self) -> bool:
        return self.client.in_sync

    async def wait(self) -> bool:
        return await asyncio.to_thread(self.client.wait_until_in_sync, 0.0)

    async def close(self) -> None:
        await asyncio.to_thread(self.client.close)


Make = Callable[..., Either]


@pytest.fixture(params=[Asynchronous, Synchronous], ids=["asyncio", "threads"])
def make(request: pytest.FixtureRequest) -> Make:
    kind: Make = request.param
    return kind


@pytest.fixture
def service() -> ScriptedService:
    return ScriptedService()


@pytest.fixture
async def target(service: ScriptedService) -> AsyncIterator[str]:
    async with scripted_service(service) as target:
        yield target


@pytest.fixture
async def cards(make: Make, target: str) -> AsyncIterator[Either]:
    client = make(target)
    await client.wait()
    yield client
    await client.close()


async def eventually(holds: Callable[[], bool], timeout: float = 10.0) -> None:
    async with asyncio.timeout(timeout):
        while not holds():
            await asyncio.sleep(0.005)


async def asks(service: ScriptedService, action: Callable[[], Awaitable[Any]]) -> int:
    """How many questions reach the service while something is done."""
    before = service.asked
    await action()
    return service.asked - before


async def test_it_subscribes_to_everything_acknowledges_claims_and_resumes_from_the_last(
    cards: Either, service: ScriptedService
) -> None:
    first = await service.stream()
    begin = (await first.step()).subscribe
    assert not begin.agents
    assert not begin.HasField("resume_from")
    await first.send(synced(3), invalidated(4), bookmark(5), invalidated(6))
    assert (await first.step()).ack.revision == at(3)
    assert (await first.step()).ack.revision == at(5)  # an invalidation alone claims nothing
    first.over.set()
    again = await service.stream()
    assert (await again.step()).subscribe.resume_from == at(5)


async def test_before_its_synced_a_stream_has_no_progress_to_resume_from(
    cards: Either, service: ScriptedService
) -> None:
    first = await service.stream()
    await first.send(synced(3))
    await eventually(cards.in_sync)
    first.over.set()
    second = await service.stream()
    await second.send(bookmark(9))
    second.over.set()
    third = await service.stream()
    assert (await third.step()).subscribe.resume_from == at(3)


async def test_an_answer_asked_for_before_the_stream_was_in_sync_is_not_believed_later(
    cards: Either, service: ScriptedService
) -> None:
    service.may_answer.clear()
    early = asyncio.create_task(cards.resolve())
    await eventually(lambda: service.asked == 1)
    # The agent changes; the client subscribes after that, and has no reason to be told.
    service.resolution.revision.CopyFrom(at(2))
    stream = await service.stream()
    await stream.send(synced(2))
    await eventually(cards.in_sync)
    service.may_answer.set()
    assert (await early).sequence == 1
    assert (await cards.resolve()).sequence == 2


async def test_an_answer_overtaken_by_its_invalidation_is_asked_for_again(
    cards: Either, service: ScriptedService
) -> None:
    stream = await service.stream()
    await stream.send(synced(1))
    await eventually(cards.in_sync)
    service.may_answer.clear()
    slow = asyncio.create_task(cards.resolve())
    await eventually(lambda: service.asked == 1)
    service.resolution.revision.CopyFrom(at(2))
    await stream.send(invalidated(2), bookmark(2))
    while (await stream.step()).ack.revision != at(2):
        pass
    service.may_answer.set()
    assert (await slow).sequence == 1
    assert (await cards.resolve()).sequence == 2
    assert await asks(service, cards.resolve) == 0


async def test_past_its_time_an_answer_is_asked_for_again(cards: Either, service: ScriptedService) -> None:
    await (await service.stream()).send(synced(1))
    await eventually(cards.in_sync)
    service.resolution.expire_time.seconds = 2  # long ago
    await cards.resolve()
    assert await asks(service, cards.resolve) == 1


@pytest.mark.parametrize(
    "freshness",
    [
        resolution_pb2.FRESHNESS_STALE,
        resolution_pb2.FRESHNESS_SUSPECT,
        resolution_pb2.FRESHNESS_DEGRADED,
        99,
    ],
)
async def test_what_is_less_than_fresh_is_asked_for_each_time(
    cards: Either, service: ScriptedService, freshness: "resolution_pb2.Freshness.ValueType"
) -> None:
    await (await service.stream()).send(synced(1))
    await eventually(cards.in_sync)
    service.resolution.freshness = freshness
    assert (await cards.resolve()).stale
    assert await asks(service, cards.resolve) == 1


async def test_frames_of_another_epoch_make_it_begin_again(cards: Either, service: ScriptedService) -> None:
    stream = await service.stream()
    await stream.step()
    await stream.send(synced(5))
    await stream.step()
    await eventually(cards.in_sync)
    await cards.resolve()
    await stream.send(invalidated(1, agent="agents/b", epoch="2"))
    assert (await stream.step()).subscribe.resume_from == at(5)
    assert not cards.in_sync()
    service.resolution.revision.CopyFrom(at(1, "2"))
    await stream.send(resync(1, "2"), synced(1, "2"))
    await eventually(cards.in_sync)
    assert await asks(service, cards.resolve) == 1
    assert await asks(service, cards.resolve) == 0


async def test_a_gap_is_not_bridged(cards: Either, service: ScriptedService) -> None:
    stream = await service.stream()
    await stream.send(synced(5))
    await eventually(cards.in_sync)
    await cards.resolve()
    await stream.send(resync(5))
    await eventually(lambda: not cards.in_sync())
    assert await asks(service, cards.resolve) == 1
    await stream.send(synced(5))
    await eventually(cards.in_sync)
    assert await asks(service, cards.resolve) == 1


async def test_a_frame_of_a_kind_yet_unknown_is_taken_for_a_loss(cards: Either, service: ScriptedService) -> None:
    stream = await service.stream()
    await stream.send(synced(5))
    await eventually(cards.in_sync)
    await cards.resolve()
    await stream.send(pb.WatchInvalidationsResponse(revision=at(6)), bookmark(6))
    while (await stream.step()).ack.revision != at(6):
        pass
    assert await asks(service, cards.resolve) == 1


async def test_an_agent_that_nobody_vouches_for_is_asked_for_until_it_has_a_higher_revision(
    cards: Either, service: ScriptedService
) -> None:
    stream = await service.stream()
    await stream.send(synced(1))
    await eventually(cards.in_sync)
    await cards.resolve()
    doubt = invalidation_pb2.Revalidate(agents=["agents/a"], reason="suspect", agent_revision=at(1))
    await stream.send(pb.WatchInvalidationsResponse(revision=at(1), revalidate=doubt), bookmark(2))
    while (await stream.step()).ack.revision != at(2):
        pass
    assert await asks(service, cards.resolve) == 1
    assert await asks(service, cards.resolve) == 1
    service.resolution.revision.CopyFrom(at(3))
    assert await asks(service, cards.resolve) == 1
    assert await asks(service, cards.resolve) == 0


@pytest.mark.parametrize("code", [grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL])
async def test_however_a_stream_ends_it_comes_back_and_what_is_still_true_is_not_asked_for(
    cards: Either, service: ScriptedService, code: grpc.StatusCode
) -> None:
    async def end(context: Any) -> None:
        service.refuse_streams = None
        await context.abort(code, "scripted")

    first = await service.stream()
    await first.send(synced(1))
    await eventually(cards.in_sync)
    await cards.resolve()
    service.refuse_streams = end
    first.over.set()
    again = await service.stream()
    assert not cards.in_sync()
    await again.send(synced(1))
    await eventually(cards.in_sync)
    assert await asks(service, cards.resolve) == 0


async def test_a_refused_stream_comes_back_no_sooner_than_it_was_asked_to(make: Make, service: ScriptedService) -> None:
    clock = asyncio.get_running_loop().time
    refused: list[float] = []

    async def refuse(context: Any) -> None:
        service.refuse_streams = None
        refused.append(clock())
        detail = any_pb2.Any()
        detail.Pack(rpc_status_pb2.RpcRetryInfo(retry_delay=duration_pb2.Duration(nanos=900_000_000)))
        detail.type_url = "type.googleapis.com/google.rpc.RetryInfo"
        status = rpc_status_pb2.RpcStatus(code=8, message="full", details=[detail])
        trailers = (("grpc-status-details-bin", status.SerializeToString()),)
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", trailers)

    service.refuse_streams = refuse
    async with scripted_service(service) as target:
        client = make(target)
        await client.wait()
        await service.stream()
        assert clock() - refused[0] >= 0.9
        await client.close()


async def test_a_client_that_is_there_before_its_service_finds_it(make: Make, service: ScriptedService) -> None:
    async with scripted_service(service) as target:
        pass
    client = make(target)
    await client.wait()
    with pytest.raises(ServiceUnavailableError):
        await client.resolve()
    async with scripted_service(service, int(target.rpartition(":")[2])):
        await (await service.stream()).send(synced(1))
        await eventually(client.in_sync)
        await client.resolve()
        assert await asks(service, client.resolve) == 0
    await client.close()


async def test_a_draining_server_ends_the_stream_and_the_client_finds_the_next(
    cards: Either, service: ScriptedService
) -> None:
    first = await service.stream()
    goodbye = invalidation_pb2.Draining(reconnect_within=duration_pb2.Duration(nanos=100_000_000))
    await first.send(synced(1), pb.WatchInvalidationsResponse(revision=at(1), draining=goodbye))
    first.over.set()
    again = await service.stream()
    await again.send(synced(1))
    await eventually(cards.in_sync)


async def test_a_server_that_falls_silent_is_not_believed_and_left(make: Make, service: ScriptedService) -> None:
    async with scripted_service(service) as target:
        client = make(target, silence=2.0)
        await client.wait()
        first = await service.stream()
        await first.send(synced(1))
        await eventually(client.in_sync)
        await client.resolve()
        again = await service.stream()  # without a word from the first
        assert not client.in_sync()
        assert await asks(service, client.resolve) == 1
        await again.send(synced(1))
        await client.close()


async def test_a_call_that_this_server_cannot_take_now_is_sent_again(cards: Either, service: ScriptedService) -> None:
    service.refusals = [grpc.StatusCode.UNAVAILABLE]
    assert (await cards.resolve()).sequence == 1
    assert service.asked == 2
    service.refusals = [grpc.StatusCode.UNAVAILABLE] * 9
    with pytest.raises(ServiceUnavailableError):
        await cards.resolve()


async def test_closing_leaves_nothing_to_answer_from(cards: Either, service: ScriptedService) -> None:
    await (await service.stream()).send(synced(1))
    await eventually(cards.in_sync)
    await cards.resolve()
    await cards.close()
    assert not cards.in_sync()
    with pytest.raises(ClosedError):
        await cards.resolve()
    await cards.close()
