"""The gRPC server: handlers, standard services, limits, and an orderly end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import grpc
from google.protobuf.message import Message
from grpc_channelz.v1 import channelz, channelz_pb2
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from cardkeeper.errors import CardkeeperError, Unavailable
from cardkeeper.fleet.statistics import Statistics
from cardkeeper.rpc.authorization import Authorization
from cardkeeper.rpc.discovery import Discovery, ResolveEndpoint
from cardkeeper.rpc.endpoint import Caller, Context, Endpoint, incident
from cardkeeper.rpc.fleet import Fleet
from cardkeeper.rpc.rules import Rules
from cardkeeper.rpc.status import abort
from cardkeeper.rpc.watch import WatchEndpoint
from cardkeeper.store.base import StoreUnavailable
from cardkeeper.v1 import discovery_service_pb2, fleet_service_pb2

log = logging.getLogger(__name__)

DISCOVERY = discovery_service_pb2.DESCRIPTOR.services_by_name["DiscoveryService"]
FLEET = fleet_service_pb2.DESCRIPTOR.services_by_name["FleetService"]

OPTIONS = (
    # A burst of more than about 1,000 new calls gets CANCELLED by the C core unless these are raised (measured).
    ("grpc.server.max_pending_requests", 16_384),
    ("grpc.server.max_pending_requests_hard_limit", 32_768),
    ("grpc.max_concurrent_streams", 16_384),
    # All three are needed: without ping_timeout_ms a frozen peer is noticed after 64 s, with it after 7 s (measured).
    ("grpc.keepalive_time_ms", 6_000),
    ("grpc.keepalive_timeout_ms", 4_000),
    ("grpc.http2.ping_timeout_ms", 4_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # Clients keep their own keepalive; do not answer it with GOAWAY.
    ("grpc.http2.min_ping_interval_without_data_ms", 4_000),
    ("grpc.max_receive_message_length", 4 * 1024 * 1024),
    ("grpc.so_reuseport", 0),
)

PRIVILEGED = frozenset({"RegisterAgent", "UnregisterAgent", "RefreshAgent"})
"""Methods that change the fleet."""


class Server:
    """One listening server over the handlers."""

    def __init__(
        self,
        discovery: Discovery,
        fleet: Fleet,
        watch: WatchEndpoint,
        rules: Rules,
        authorization: Authorization,
        statistics: Statistics,
        options: Mapping[str, int] | None = None,
    ) -> None:
        self._watch = watch
        self._statistics = statistics
        self._server = grpc.aio.server(options=[*OPTIONS, *(options or {}).items()])
        self._health = health.aio.HealthServicer()

        def endpoint(method: Callable[[Any, Caller], Awaitable[Message]], service: Any, name: str) -> Endpoint[Any]:
            request_class = message_class(service.methods_by_name[name].input_type)
            return Endpoint(request_class, method, rules, authorization, privileged=name in PRIVILEGED)

        resolve = endpoint(discovery.resolve_skill, DISCOVERY, "ResolveSkill")
        handlers: dict[Any, dict[str, Any]] = {
            DISCOVERY: {
                "ResolveSkill": _unary(ResolveEndpoint(discovery.ready, resolve)),
                "FindSkills": _unary(endpoint(discovery.find_skills, DISCOVERY, "FindSkills")),
                "ReportTaskOutcome": _unary(endpoint(discovery.report_task_outcome, DISCOVERY, "ReportTaskOutcome")),
                "ValidateArtifact": _unary(endpoint(discovery.validate_artifact, DISCOVERY, "ValidateArtifact")),
                "WatchInvalidations": grpc.stream_stream_rpc_method_handler(self._serve_stream),
            },
            FLEET: {
                name: _unary(endpoint(method, FLEET, name))
                for name, method in (
                    ("RegisterAgent", fleet.register_agent),
                    ("UnregisterAgent", fleet.unregister_agent),
                    ("ListAgents", fleet.list_agents),
                    ("GetAgent", fleet.get_agent),
                    ("GetCard", fleet.get_card),
                    ("RefreshAgent", fleet.refresh_agent),
                    ("ListCards", fleet.list_cards),
                    ("DiffCards", fleet.diff_cards),
                    ("ListDriftEvents", fleet.list_drift_events),
                    ("GetFleetStats", fleet.get_fleet_stats),
                )
            },
        }
        for service, methods in handlers.items():
            missing = set(service.methods_by_name) - set(methods)
            if missing:
                raise AssertionError(f"{service.full_name} lacks handlers for {sorted(missing)}")
            generic = grpc.method_handlers_generic_handler(service.full_name, methods)
            self._server.add_generic_rpc_handlers((generic,))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        channelz.add_channelz_servicer(self._server)
        names = (
            DISCOVERY.full_name,
            FLEET.full_name,
            health.SERVICE_NAME,
            channelz_pb2.DESCRIPTOR.services_by_name["Channelz"].full_name,
            reflection.SERVICE_NAME,
        )
        reflection.enable_server_reflection(names, self._server)

    async def start(self, address: str, credentials: grpc.ServerCredentials | None = None) -> int:
        """Listen on "host:port" (port 0: any free one) and return the port. Raises OSError where that is impossible."""
        try:
            if credentials is None:
                port = self._server.add_insecure_port(address)
            else:
                port = self._server.add_secure_port(address, credentials)
        except RuntimeError as error:
            raise OSError(f"cannot listen on {address}: {error}") from error
        await self._server.start()
        for name in ("", DISCOVERY.full_name, FLEET.full_name):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)
        return port

    async def drain(self, timeout: float) -> None:
        """End in order: unhealthy, goodbye on streams, no new calls, a bounded wait, then cancel."""
        try:
            # The packaged servicer notifies its watchers under the lock that this needs: a stuck one must not hold us up.
            async with asyncio.timeout(1.0):
                await self._health.enter_graceful_shutdown()
        except TimeoutError:
            log.warning("a health watcher holds up the drain")
        await self._watch.drain(timeout / 2)
        await self._server.stop(timeout / 2)

    async def _serve_stream(self, requests: object, context: Context) -> None:
        del requests  # read through the context
        self._statistics.streams += 1
        try:
            await self._watch.serve(context)
        except CardkeeperError as error:
            await abort(context, error)
        except StoreUnavailable as error:
            await abort(context, Unavailable(str(error), reason="STORE_UNAVAILABLE", retry_after=1.0))
        except grpc.aio.AbortError:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary, as in Endpoint
            await abort(context, incident(error))
        finally:
            self._statistics.streams -= 1


def message_class(descriptor: Any) -> Any:
    """The generated class of a message descriptor."""
    return descriptor._concrete_class  # noqa: SLF001 - protobuf's only way from a descriptor of the default pool


def _unary(handler: ResolveEndpoint | Endpoint[Any]) -> Any:
    """A handler that takes and gives raw bytes; gRPC tells coroutines by looking at the function itself."""
    return grpc.unary_unary_rpc_method_handler(handler.__call__)
