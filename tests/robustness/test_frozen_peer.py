"""A peer that is frozen, not gone, is noticed on both sides within the time that the design states."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from cardkeeper.v1 import invalidation_pb2
from cardkeeper.v1.discovery_service_pb2 import WatchInvalidationsRequest
from cardkeeper.v1.discovery_service_pb2_grpc import DiscoveryServiceStub
from cardkeeper.v1.fleet_service_pb2 import GetFleetStatsRequest
from cardkeeper.v1.fleet_service_pb2_grpc import FleetServiceStub

NOTICED_WITHIN = 12.0
"""Seconds, with default settings: design section 9."""

pytestmark = pytest.mark.xdist_group("processes")

CLIENT = """
import sys, grpc
from cardkeeper.v1 import invalidation_pb2
from cardkeeper.v1.discovery_service_pb2 import WatchInvalidationsRequest
from cardkeeper.v1.discovery_service_pb2_grpc import DiscoveryServiceStub

step = WatchInvalidationsRequest(subscribe=invalidation_pb2.Subscribe(subscription_id=1))
with grpc.insecure_channel(sys.argv[1]) as channel:
    for frame in DiscoveryServiceStub(channel).WatchInvalidations(iter([step])):
        print(frame.WhichOneof("event"), flush=True)
"""


async def started(*words: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(sys.executable, *words, stdout=asyncio.subprocess.PIPE)


async def line_of(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    return (await asyncio.wait_for(process.stdout.readline(), 30)).decode()


@pytest.fixture
async def service() -> AsyncIterator[tuple[str, int]]:
    """A service in a process of its own: its address and its process."""
    process = await started("-m", "cardkeeper", "serve", "--listen", "127.0.0.1:0", "--log-level", "WARNING")
    try:
        yield (await line_of(process)).split()[-1], process.pid
    finally:
        os.kill(process.pid, signal.SIGKILL)
        await process.wait()


async def test_a_client_notices_a_frozen_service(service: tuple[str, int]) -> None:
    target, pid = service
    options = (
        ("grpc.keepalive_time_ms", 6_000),
        ("grpc.keepalive_timeout_ms", 4_000),
        ("grpc.http2.ping_timeout_ms", 4_000),
        ("grpc.use_local_subchannel_pool", 1),
    )
    async with grpc.aio.insecure_channel(target, options=options) as channel:
        call: Any = DiscoveryServiceStub(channel).WatchInvalidations()
        await call.write(WatchInvalidationsRequest(subscribe=invalidation_pb2.Subscribe(subscription_id=1)))
        assert (await call.read()).WhichOneof("event") == "synced"
        os.kill(pid, signal.SIGSTOP)
        try:
            async with asyncio.timeout(NOTICED_WITHIN):
                assert await call.code() is grpc.StatusCode.UNAVAILABLE
        finally:
            os.kill(pid, signal.SIGCONT)
            call.cancel()


async def test_the_service_notices_a_frozen_client(service: tuple[str, int]) -> None:
    target, _ = service
    client = await started("-c", CLIENT, target)
    async with grpc.aio.insecure_channel(target) as channel:
        fleet: Any = FleetServiceStub(channel)
        try:
            assert (await line_of(client)).strip() == "synced"
            assert (await fleet.GetFleetStats(GetFleetStatsRequest(), timeout=5.0)).streams == 1
            os.kill(client.pid, signal.SIGSTOP)
            async with asyncio.timeout(NOTICED_WITHIN):
                while (await fleet.GetFleetStats(GetFleetStatsRequest(), timeout=5.0)).streams:
                    await asyncio.sleep(0.2)
        finally:
            os.kill(client.pid, signal.SIGKILL)
            await client.wait()


async def test_a_bookmark_comes_within_ten_seconds_with_default_settings(service: tuple[str, int]) -> None:
    target, _ = service
    async with grpc.aio.insecure_channel(target) as channel:
        call: Any = DiscoveryServiceStub(channel).WatchInvalidations()
        await call.write(WatchInvalidationsRequest(subscribe=invalidation_pb2.Subscribe(subscription_id=1)))
        assert (await call.read()).WhichOneof("event") == "synced"
        async with asyncio.timeout(10.0):
            assert (await call.read()).WhichOneof("event") == "bookmark"
        async with asyncio.timeout(10.0):
            assert (await call.read()).WhichOneof("event") == "bookmark"
        call.cancel()
