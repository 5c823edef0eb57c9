"""Four thousand clients come at once, as after a restart of the service."""

import asyncio
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from card_server import card_server
from cardkeeper.v1 import invalidation_pb2, resolution_pb2
from cardkeeper.v1.agent_ref_pb2 import AgentRef
from cardkeeper.v1.discovery_service_pb2 import ResolveSkillRequest, WatchInvalidationsRequest
from cardkeeper.v1.discovery_service_pb2_grpc import DiscoveryServiceStub
from scripted_fetcher import card_document

pytestmark = pytest.mark.xdist_group("processes")

STREAMS = 4_000
CHANNELS = 40
"""Connections that the streams share: as many clients behind a few proxies, and few descriptors for the test."""
ROBUSTNESS = Path(__file__).parent


@pytest.fixture(autouse=True)
def many_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@pytest.fixture
async def service() -> AsyncIterator[tuple[str, int]]:
    """A service in a process of its own: its address and its process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "cardkeeper", "serve", "--listen", "127.0.0.1:0", "--allow-loopback",
        "--log-level", "WARNING", stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), 30)).decode()
        yield line.split()[-1], process.pid
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()


def resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def opened(stub: Any) -> Any:
    """A stream that came in sync."""
    call = stub.WatchInvalidations()
    await call.write(WatchInvalidationsRequest(subscribe=invalidation_pb2.Subscribe(subscription_id=1)))
    frame = await call.read()
    assert frame.WhichOneof("event") == "synced"
    return call


async def invalidated(call: Any) -> None:
    while (await call.read()).WhichOneof("event") != "invalidation":
        pass


@pytest.mark.timeout(240)
async def test_none_of_four_thousand_is_lost_and_other_calls_are_answered(service: tuple[str, int]) -> None:
    target, pid = service
    async with card_server() as site:
        site.serve(card_document("summarize"))
        request = ResolveSkillRequest(
            agent=AgentRef(agent_url=site.url), need=resolution_pb2.SkillNeed(skill_id="summarize")
        )
        options = (("grpc.use_local_subchannel_pool", 1),)
        channels = [grpc.aio.insecure_channel(target, options=options) for _ in range(CHANNELS + 1)]
        calls: list[Any] = []
        try:
            other: Any = DiscoveryServiceStub(channels[-1])
            await other.ResolveSkill(request, timeout=10.0)
            before = resident(pid)
            stubs = [DiscoveryServiceStub(channel) for channel in channels[:-1]]
            storm = asyncio.gather(*(opened(stubs[number % CHANNELS]) for number in range(STREAMS)))
            answered = 0
            while not storm.done():
                await other.ResolveSkill(request, timeout=10.0)  # a deadline missed fails the test
                answered += 1
                await asyncio.wait((storm,), timeout=0.1)
            calls = await storm
            assert len(calls) == STREAMS
            assert answered
            each = (resident(pid) - before) / STREAMS
            assert each < 128 * 1024, f"{each:.0f} bytes a stream"

            site.serve(card_document("translate"))
            refreshed = ResolveSkillRequest(agent=request.agent, need=resolution_pb2.SkillNeed(skill_id="translate"))
            refreshed.consistency.refetch.SetInParent()
            await other.ResolveSkill(refreshed, timeout=10.0)
            async with asyncio.timeout(120):
                await asyncio.gather(*(invalidated(call) for call in calls))
        finally:
            for call in calls:
                call.cancel()
            for channel in channels:
                await channel.close()
