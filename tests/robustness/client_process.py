"""A process of watchers. Started by the run; ends by SIGTERM, after each watcher came in sync once more."""

import argparse
import asyncio
import json
import random
import signal
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import grpc

from cardkeeper_client.v1.discovery_service_pb2_grpc import DiscoveryServiceStub
from robustness.near_cache_user import NearCacheUser
from robustness.notebook import Notebook
from robustness.watcher import Watcher

if TYPE_CHECKING:
    from cardkeeper_client.v1.discovery_service_pb2_grpc import DiscoveryServiceAsyncStub

CHANNEL = (
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.keepalive_time_ms", 6_000),
    ("grpc.keepalive_timeout_ms", 4_000),
    ("grpc.http2.ping_timeout_ms", 4_000),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)

NEAR_CACHES = 2
"""Users of the Python client in each process, beside the watchers."""


async def watch(target: str, folder: Path, name: str, watchers: int, agents: list[str], seed: str) -> None:
    """Run the watchers of one process, each on a channel of its own."""
    finishing = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, finishing.set)
    complaints = folder / f"{name}.complaints"

    def complain(text: str) -> None:
        with complaints.open("a") as file:
            file.write(text + "\n")

    with ExitStack() as stack:
        async with asyncio.TaskGroup() as group:
            for number in range(watchers):
                notebook = stack.enter_context(Notebook(folder / f"{name}-{number}.trace"))
                chance = random.Random(f"{seed} {name} {number}")  # noqa: S311 - no secret
                group.create_task(_watch_one(target, agents, chance, notebook, complain, finishing))
            for number in range(NEAR_CACHES):
                notebook = stack.enter_context(Notebook(folder / f"{name}-near-{number}.trace"))
                chance = random.Random(f"{seed} {name} near {number}")  # noqa: S311 - no secret
                group.create_task(NearCacheUser(target, agents, chance, notebook.note, complain).run(finishing))


async def _watch_one(
    target: str,
    agents: list[str],
    chance: random.Random,
    notebook: Notebook,
    complain: Callable[[str], None],
    finishing: asyncio.Event,
) -> None:
    async with grpc.aio.insecure_channel(target, options=CHANNEL) as channel:
        stub: DiscoveryServiceAsyncStub = DiscoveryServiceStub(channel)
        await Watcher(stub, agents, chance, notebook.note, complain).run(finishing)


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser()
    for name in ("target", "folder", "name", "watchers", "agents", "seed"):
        parser.add_argument(f"--{name}", required=True)
    args = parser.parse_args()
    asyncio.run(
        watch(args.target, Path(args.folder), args.name, int(args.watchers), json.loads(args.agents), args.seed)
    )


if __name__ == "__main__":
    main()
