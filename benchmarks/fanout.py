"""A change to 1,000 subscribers, against a raw stream server that writes the same bytes to as many streams."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable

import grpc
from processes import CardSource, bare_server, card, cardkeeper_server

from cardkeeper.v1 import agent_ref_pb2, fleet_service_pb2, fleet_service_pb2_grpc, invalidation_pb2
from cardkeeper.v1 import discovery_service_pb2 as pb

SUBSCRIBERS = 1000
CHANNELS = 10
ROUNDS = 20
PATH = "/cardkeeper.v1.DiscoveryService/WatchInvalidations"
OPTIONS = [("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 1 << 24)]


class Subscribers:
    """Streams that note when each next invalidation arrived; frames stay bytes, so that both sides cost the same."""

    def __init__(self, target: str, first_step: bytes) -> None:
        self._channels = [grpc.aio.insecure_channel(target, options=OPTIONS) for _ in range(CHANNELS)]
        self._calls = [self._channels[number % CHANNELS].stream_stream(PATH)() for number in range(SUBSCRIBERS)]
        self._first_step = first_step
        self._readers: list[asyncio.Task[None]] = []
        self.arrivals: list[float] = []
        self._all = asyncio.Event()
        self.frame = b""

    async def open(self) -> None:
        """Subscribe on every stream, and wait until each is in sync."""
        for start in range(0, SUBSCRIBERS, 100):
            calls = self._calls[start : start + 100]
            await asyncio.gather(*(call.write(self._first_step) for call in calls))
            await asyncio.gather(*(call.read() for call in calls))
        self._readers = [asyncio.create_task(self._read(call)) for call in self._calls]

    async def round(self, change: Callable[[], Awaitable[float]]) -> list[float]:
        """Make a change and return how long after it each subscriber was told, in seconds."""
        self.arrivals = []
        self._all.clear()
        started = await change()
        await asyncio.wait_for(self._all.wait(), 60)
        return sorted(arrival - started for arrival in self.arrivals)

    async def close(self) -> None:
        """Cancel every stream."""
        for call in self._calls:
            call.cancel()
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        for channel in self._channels:
            await channel.close()

    async def _read(self, call: grpc.aio.StreamStreamCall) -> None:
        while isinstance(frame := await call.read(), bytes):
            # Bookmarks are a dozen bytes more than their revision; what is measured is the news.
            if len(frame) > 150:
                self.arrivals.append(time.perf_counter())
                self.frame = frame
                if len(self.arrivals) == SUBSCRIBERS:
                    self._all.set()


async def _measure() -> dict[str, float]:
    source = CardSource(card(5))
    step = pb.WatchInvalidationsRequest(subscribe=invalidation_pb2.Subscribe(subscription_id=1)).SerializeToString()
    try:
        with cardkeeper_server() as port, bare_server("stream") as (floor_port, floor_process):
            subscribers = Subscribers(f"127.0.0.1:{port}", step)
            floor = Subscribers(f"127.0.0.1:{floor_port}", step)
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=OPTIONS) as channel:
                fleet = fleet_service_pb2_grpc.FleetServiceStub(channel)
                agent = agent_ref_pb2.AgentRef(agent_url=source.url)
                await fleet.RegisterAgent(fleet_service_pb2.RegisterAgentRequest(agent_url=source.url))
                await subscribers.open()
                await floor.open()

                async def change() -> float:
                    # Unregistering commits and publishes in one step, without a fetch in between: the clock starts where
                    # the service knows of the change.
                    started = time.perf_counter()
                    await fleet.UnregisterAgent(fleet_service_pb2.UnregisterAgentRequest(agent=agent))
                    return started

                async def publish() -> float:
                    assert floor_process.stdin is not None
                    started = time.perf_counter()
                    floor_process.stdin.write(subscribers.frame.hex() + "\n")
                    floor_process.stdin.flush()
                    return started

                ours_p99, floor_p99 = [], []
                for _ in range(ROUNDS):
                    ours_p99.append(_p99(await subscribers.round(change)))
                    floor_p99.append(_p99(await floor.round(publish)))
                    # Back to where it was, outside the measurement.
                    await subscribers.round(lambda: _register(fleet, source.url))
                    await asyncio.sleep(0.5)  # registering takes two revisions: let the second one's frames pass
                await subscribers.close()
                await floor.close()
    finally:
        source.close()
    ratios = [mine / bare for mine, bare in zip(ours_p99, floor_p99, strict=True)]
    return {
        "fanout_p99_milliseconds": statistics.median(ours_p99) * 1e3,
        "fanout_floor_p99_milliseconds": statistics.median(floor_p99) * 1e3,
        "fanout_p99_ratio": statistics.median(ratios),
    }


async def _register(fleet: fleet_service_pb2_grpc.FleetServiceStub, url: str) -> float:
    await fleet.RegisterAgent(fleet_service_pb2.RegisterAgentRequest(agent_url=url))
    return time.perf_counter()


def _p99(times: list[float]) -> float:
    return times[int(len(times) * 0.99)]


def measure() -> dict[str, float]:
    """Return the median over rounds of the 99th percentile in milliseconds, and the ratio."""
    return asyncio.run(_measure())
