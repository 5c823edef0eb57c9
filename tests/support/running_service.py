"""The real service on a free loopback port, for tests over a real channel."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import grpc

from cardkeeper.app import Application
from cardkeeper.clock import Clock
from cardkeeper.fetch.base import Fetcher
from cardkeeper.settings import Settings
from cardkeeper.store.base import Store
from cardkeeper.v1 import discovery_service_pb2_grpc, fleet_service_pb2_grpc


@dataclass(frozen=True)
class Running:
    """A service and stubs that reach it."""

    app: Application
    target: str
    channel: grpc.aio.Channel
    discovery: "discovery_service_pb2_grpc.DiscoveryServiceAsyncStub"
    fleet: "fleet_service_pb2_grpc.FleetServiceAsyncStub"


@asynccontextmanager
async def running_service(
    settings: Settings | None = None,
    *,
    clock: Clock | None = None,
    store: Store | None = None,
    fetcher: Fetcher | None = None,
) -> AsyncIterator[Running]:
    """Start a service, and drain it at the end."""
    settings = replace(settings or Settings(), listen="127.0.0.1:0", drain_timeout=2.0)
    async with Application(settings, clock=clock, store=store, fetcher=fetcher) as app:
        target = f"127.0.0.1:{app.port}"
        # Each test's channel must be its own: gRPC shares subchannels of equal targets in a process.
        options = [("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.insecure_channel(target, options=options) as channel:
            yield Running(
                app=app,
                target=target,
                channel=channel,
                discovery=discovery_service_pb2_grpc.DiscoveryServiceStub(channel),  # type: ignore[arg-type]
                fleet=fleet_service_pb2_grpc.FleetServiceStub(channel),  # type: ignore[arg-type]
            )
