"""`python -m robustness.soak [--resolves 1000000 --streams 10000 --changes 5000]`: does anything grow?

One service process, one client process (this one). Load comes in equal rounds; after each, both processes are measured at
rest. Exit 1 if resident memory grew by 5 % or more since warm-up, or if any task, descriptor or stream was left behind.
"""

import argparse
import asyncio
import gc
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import grpc

from card_server import CARD, CardServer, card_server
from cardkeeper_client.v1 import agent_ref_pb2, resolution_pb2
from cardkeeper_client.v1.discovery_service_pb2 import ResolveSkillRequest
from cardkeeper_client.v1.discovery_service_pb2_grpc import DiscoveryServiceStub
from cardkeeper_client.v1.fleet_service_pb2 import GetFleetStatsRequest
from cardkeeper_client.v1.fleet_service_pb2_grpc import FleetServiceStub
from robustness.frame_steps import subscribe_request
from robustness.resident import open_files, resident_bytes
from trace_record import Filter, Subscribed

ROUNDS = 10
WARM_UP = 4
"""Rounds that fill caches; growth counts from here on."""
MOST_GROWTH = 0.05
AGENTS = 20
WORKERS = 32
SUBSCRIBE = subscribe_request(Subscribed(filter=Filter(id=1)))


@dataclass(frozen=True, slots=True)
class Measure:
    """Both processes at rest."""

    server_bytes: int
    server_files: int
    client_bytes: int
    client_files: int
    client_tasks: int
    streams: int

    def __str__(self) -> str:
        return (
            f"server {self.server_bytes / 2**20:7.1f} MiB {self.server_files:4d} files {self.streams} streams"
            f" | client {self.client_bytes / 2**20:7.1f} MiB {self.client_files:4d} files {self.client_tasks} tasks"
        )


class Load:
    """Resolves, streams opened and closed, and changes, in rounds."""

    def __init__(self, site: CardServer, channel: grpc.aio.Channel, pid: int) -> None:
        self._site = site
        self._discovery: Any = DiscoveryServiceStub(channel)
        self._fleet: Any = FleetServiceStub(channel)
        self._pid = pid
        self._version = 0

    async def round(self, resolves: int, streams: int, changes: int) -> Measure:
        """One share of the load, then rest."""
        work = [self._resolve] * resolves + [self._watch] * streams
        # Spread the streams among the resolves.
        order = sorted(range(len(work)), key=lambda number: number * 2_654_435_761 % 2**32)
        queue = iter([work[number] for number in order])
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(self._worker(queue))
            group.create_task(self._change_all(changes))
        return await self._at_rest()

    async def _worker(self, queue: Any) -> None:
        for number, act in enumerate(queue):
            await act(number)

    async def _resolve(self, number: int) -> None:
        request = self._request(number % AGENTS)
        await self._discovery.ResolveSkill(request, timeout=20.0)

    async def _watch(self, number: int) -> None:
        del number
        call = self._discovery.WatchInvalidations()
        try:
            await call.write(SUBSCRIBE)
            await asyncio.wait_for(call.read(), 20.0)
        finally:
            call.cancel()

    async def _change_all(self, changes: int) -> None:
        """Every change is fetched anew: registered agents are asked for in turn, past their short lifetime."""
        for _ in range(changes):
            self._version += 1
            agent = self._version % AGENTS
            self.serve(agent)
            await asyncio.sleep(0.005)

    def serve(self, agent: int) -> None:
        """Give an agent its next card."""
        body = {
            "name": "Agent",
            "description": f"state {self._version}",
            "version": "1.0",
            "supportedInterfaces": [{"url": "http://a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
            "capabilities": {},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": [f"text/x-{self._version % 7}"],
            "skills": [{"id": "base", "name": "base", "description": "d", "tags": []}],
        }
        self._site.serve(body, f"/agent/{agent}{CARD}")
        self._site.seen.clear()

    def _request(self, agent: int) -> ResolveSkillRequest:
        return ResolveSkillRequest(
            agent=agent_ref_pb2.AgentRef(agent_url=f"{self._site.url}/agent/{agent}"),
            need=resolution_pb2.SkillNeed(skill_id="base"),
        )

    async def _at_rest(self) -> Measure:
        async with asyncio.timeout(30.0):
            while (stats := await self._fleet.GetFleetStats(GetFleetStatsRequest(), timeout=20.0)).streams:
                await asyncio.sleep(0.2)
        gc.collect()
        return Measure(
            resident_bytes(self._pid),
            open_files(self._pid),
            resident_bytes(),
            open_files(),
            len(asyncio.all_tasks()),
            stats.streams,
        )


@asynccontextmanager
async def _service() -> AsyncIterator[tuple[str, int]]:
    words = ("--listen", "127.0.0.1:0", "--allow-loopback", "--soft-ttl", "1", "--min-ttl", "1", "--log-level", "ERROR")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "cardkeeper", "serve", *words, "--history", "500", stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        line = (await asyncio.wait_for(process.stdout.readline(), 30)).decode()
        yield line.split()[-1], process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        await process.wait()


async def soak(resolves: int, streams: int, changes: int) -> list[str]:
    """Run all rounds and return what grew."""
    async with (
        card_server() as site,
        _service() as (target, pid),
        grpc.aio.insecure_channel(target, options=(("grpc.use_local_subchannel_pool", 1),)) as channel,
    ):
        load = Load(site, channel, pid)
        for agent in range(AGENTS):
            load.serve(agent)
        measures: list[Measure] = []
        for number in range(ROUNDS):
            measures.append(await load.round(resolves // ROUNDS, streams // ROUNDS, changes // ROUNDS))
            _say(f"{number + 1:3d}/{ROUNDS}  {measures[-1]}")
    return _growth(measures[WARM_UP - 1], measures[-1])


def _growth(warm: Measure, last: Measure) -> list[str]:
    grown = [
        f"{name} grew from {before} to {after}"
        for name, before, after in (
            ("server memory", warm.server_bytes, last.server_bytes),
            ("client memory", warm.client_bytes, last.client_bytes),
        )
        if after > before * (1 + MOST_GROWTH)
    ]
    grown += [
        f"{name} grew from {before} to {after}"
        for name, before, after in (
            ("server descriptors", warm.server_files, last.server_files),
            ("client descriptors", warm.client_files, last.client_files),
            ("client tasks", warm.client_tasks, last.client_tasks),
            ("streams", 0, last.streams),
        )
        if after > before
    ]
    return grown


def _say(text: str) -> None:
    print(text, flush=True)


def main() -> int:
    """Read the arguments, soak, and tell."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resolves", type=int, default=1_000_000)
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--changes", type=int, default=5_000)
    args = parser.parse_args()
    grown = asyncio.run(soak(args.resolves, args.streams, args.changes))
    for line in grown:
        _say(line)
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
