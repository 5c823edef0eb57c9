"""A service that does as a test says: the stream's frames one by one, and resolutions as they are set.

For what the real service does only by accident: another epoch on a live stream, a refusal with a delay, silence.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from google.protobuf import timestamp_pb2

from cardkeeper_client.v1 import discovery_service_pb2 as pb
from cardkeeper_client.v1 import discovery_service_pb2_grpc, invalidation_pb2, resolution_pb2, revision_pb2

AGENT, URL = "agents/a", "http://a.example"
FAR = 4_000_000_000


def at(sequence: int, epoch: str = "1") -> revision_pb2.Revision:
    return revision_pb2.Revision(epoch=epoch, sequence=sequence)


def synced(sequence: int, epoch: str = "1") -> pb.WatchInvalidationsResponse:
    return pb.WatchInvalidationsResponse(
        revision=at(sequence, epoch), synced=invalidation_pb2.Synced(subscription_id=1)
    )


def bookmark(sequence: int, epoch: str = "1") -> pb.WatchInvalidationsResponse:
    return pb.WatchInvalidationsResponse(revision=at(sequence, epoch), bookmark=invalidation_pb2.Bookmark())


def invalidated(sequence: int, agent: str = AGENT, epoch: str = "1") -> pb.WatchInvalidationsResponse:
    told = invalidation_pb2.Invalidation(agent=agent, agent_revision=at(sequence, epoch))
    return pb.WatchInvalidationsResponse(revision=at(sequence, epoch), invalidation=told)


def resync(sequence: int, epoch: str = "1") -> pb.WatchInvalidationsResponse:
    reason = invalidation_pb2.Resync.REASON_COMPACTED
    return pb.WatchInvalidationsResponse(
        revision=at(sequence, epoch), resync=invalidation_pb2.Resync(subscription_id=1, reason=reason)
    )


class ScriptedStream:
    """One stream that a client opened: what it sent, and a mouth to answer with."""

    def __init__(self, context: Any) -> None:
        self.context = context
        self.steps: asyncio.Queue[pb.WatchInvalidationsRequest] = asyncio.Queue()
        self.over = asyncio.Event()

    async def send(self, *frames: pb.WatchInvalidationsResponse) -> None:
        for frame in frames:
            await self.context.write(frame)

    async def step(self) -> pb.WatchInvalidationsRequest:
        async with asyncio.timeout(10):
            return await self.steps.get()


class ScriptedService(discovery_service_pb2_grpc.DiscoveryServiceServicer):
    """Resolves everything to `resolution`; hands each stream to the test."""

    def __init__(self) -> None:
        self.streams: asyncio.Queue[ScriptedStream] = asyncio.Queue()
        self.resolution = resolution_pb2.Resolution(
            agent=AGENT,
            agent_url=URL,
            skill_id="s",
            skill_fingerprint="a" * 64,
            revision=at(1),
            verify_time=timestamp_pb2.Timestamp(seconds=1),
            expire_time=timestamp_pb2.Timestamp(seconds=FAR),
            freshness=resolution_pb2.FRESHNESS_FRESH,
        )
        self.asked = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.refusals: list[grpc.StatusCode] = []
        """Codes that the next calls end with."""
        self.refuse_streams: Any = None
        """Called with the context of each new stream, to end it."""

    async def stream(self) -> ScriptedStream:
        """The next stream that a client opens."""
        async with asyncio.timeout(20):
            return await self.streams.get()

    async def ResolveSkill(  # type: ignore[override] # noqa: N802 - gRPC's name; the generated base is synchronous
        self, request: pb.ResolveSkillRequest, context: Any
    ) -> pb.ResolveSkillResponse:
        self.asked += 1
        if self.refusals:
            await context.abort(self.refusals.pop(0), "scripted")
        answer = pb.ResolveSkillResponse(resolution=self.resolution)
        await self.may_answer.wait()
        return answer

    async def WatchInvalidations(  # type: ignore[override] # noqa: N802 - likewise
        self, requests: AsyncIterator[pb.WatchInvalidationsRequest], context: Any
    ) -> None:
        if self.refuse_streams is not None:
            await self.refuse_streams(context)
        stream = ScriptedStream(context)

        async def read() -> None:
            async for request in requests:
                stream.steps.put_nowait(request)

        reader = asyncio.create_task(read())
        self.streams.put_nowait(stream)
        try:
            await stream.over.wait()
        finally:
            reader.cancel()


@asynccontextmanager
async def scripted_service(service: ScriptedService, port: int = 0) -> AsyncIterator[str]:
    """Serve it on a free loopback port; yield the target."""
    server = grpc.aio.server(options=(("grpc.so_reuseport", 0),))
    discovery_service_pb2_grpc.add_DiscoveryServiceServicer_to_server(service, server)
    port = server.add_insecure_port(f"127.0.0.1:{port}")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(0)
