"""The asyncio client: the same surface, on one event loop."""

import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc

from cardkeeper_client import fork
from cardkeeper_client.aio_stream import AsyncStream
from cardkeeper_client.channel import OPTIONS
from cardkeeper_client.client import TIMEOUT
from cardkeeper_client.errors import ArtifactSchemaDriftError, ClosedError, ForkedError
from cardkeeper_client.failure import service_error
from cardkeeper_client.guard import Ran, Report, Resolve, Run, Validate, drift_of, guarded, is_stale
from cardkeeper_client.near_cache import NearCache
from cardkeeper_client.need import Need
from cardkeeper_client.observed import Answer
from cardkeeper_client.question import find_request, report_request, validate_request
from cardkeeper_client.resolution import Resolution
from cardkeeper_client.session import SILENCE, Session
from cardkeeper_client.v1 import discovery_service_pb2 as pb
from cardkeeper_client.v1 import discovery_service_pb2_grpc, observation_pb2, verdict_pb2

Returned = TypeVar("Returned")


class CardkeeperAsync:
    """A client of one service: `async with CardkeeperAsync("127.0.0.1:50051") as cards`.

    Arguments and methods as in Cardkeeper. It belongs to the event loop that it is made on.
    """

    def __init__(
        self,
        target: str,
        *,
        credentials: grpc.ChannelCredentials | None = None,
        options: Sequence[tuple[str, Any]] = (),
        timeout: float = TIMEOUT,
        near_cache: bool = True,
        max_resolutions: int = 10_000,
        silence: float = SILENCE,
    ) -> None:
        self._cache = NearCache(max_resolutions)
        self._session = Session(self._cache, silence=silence)
        if credentials is None:
            self._channel = grpc.aio.insecure_channel(target, options=(*OPTIONS, *options))
        else:
            self._channel = grpc.aio.secure_channel(target, credentials, options=(*OPTIONS, *options))
        self._stub: Any = discovery_service_pb2_grpc.DiscoveryServiceStub(self._channel)
        self._timeout = timeout
        self._stream = AsyncStream(self._channel, self._session)
        self._near = near_cache
        self._ended: type[ClosedError | ForkedError] | None = None
        fork.guard(self, CardkeeperAsync._disown)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the stream and the channel. Safe to call twice."""
        if self._ended is not None:
            return  # closed, or forked: then the sockets are the parent's
        self._ended = ClosedError
        self._cache.lose()
        await self._stream.stop()
        await self._channel.close()

    @property
    def in_sync(self) -> bool:
        """Whether resolutions are answered from memory now."""
        return self._cache.trusts(time.monotonic())

    async def wait_until_in_sync(self, timeout: float = 5.0) -> bool:
        """Start the stream if need be, and wait for it. Return whether it is in sync."""
        self._start()
        return await self._stream.wait_until_synced(timeout)

    async def resolve(
        self,
        agent: str,
        skill_id: str,
        *,
        input_modes: Sequence[str] = (),
        output_modes: Sequence[str] = (),
        streaming: bool = False,
        push_notifications: bool = False,
        refetch: bool = False,
        timeout: float | None = None,
    ) -> Resolution:
        """See Cardkeeper.resolve."""
        need = Need(agent, skill_id, tuple(input_modes), tuple(output_modes), streaming, push_notifications)
        if not refetch:
            held = self._cache.find(need, time.monotonic())
            if held is not None:
                return held
        return await self._ask(need, refetch=refetch, timeout=timeout)

    async def find(
        self,
        query: str = "",
        *,
        skill_id: str = "",
        input_modes: Sequence[str] = (),
        output_modes: Sequence[str] = (),
        streaming: bool = False,
        push_notifications: bool = False,
        tags: Sequence[str] = (),
        limit: int = 20,
    ) -> list[Resolution]:
        """See Cardkeeper.find."""
        need = Need("", skill_id, tuple(input_modes), tuple(output_modes), streaming, push_notifications)
        found = await self._call(self._stub.FindSkills, find_request(query, need, tags, limit))
        return [Resolution.of(match.resolution) for match in found.matches]

    async def report(
        self,
        resolution: Resolution,
        outcome: Answer,
        *,
        http_status: int | None = None,
        call: observation_pb2.TaskCall | None = None,
        raise_on_drift: bool = True,
    ) -> verdict_pb2.Judgement:
        """See Cardkeeper.report."""
        request = report_request(resolution, outcome, http_status=http_status, call=call)
        judgement = await self._report(resolution, request)
        drift = drift_of(resolution, judgement, outcome)
        if drift is not None and raise_on_drift:
            raise drift
        return judgement

    async def validate(
        self,
        resolution: Resolution,
        artifact: Answer,
        *,
        policy: "pb.ArtifactPolicy.ValueType" = pb.ARTIFACT_POLICY_UNSPECIFIED,
        raise_on_drift: bool = True,
    ) -> pb.ValidateArtifactResponse:
        """See Cardkeeper.validate."""
        verdict = await self._validate(resolution, validate_request(resolution, artifact, policy))
        if raise_on_drift and not verdict.accepted:
            raise ArtifactSchemaDriftError(resolution, verdict.judgement, artifact)
        return verdict

    async def call(
        self,
        agent: str,
        skill_id: str,
        run: Callable[[Resolution], Awaitable[Returned]],
        *,
        input_modes: Sequence[str] = (),
        output_modes: Sequence[str] = (),
        streaming: bool = False,
        push_notifications: bool = False,
        validate: bool = True,
    ) -> Returned:
        """See Cardkeeper.call; `run` is a coroutine function."""
        need = Need(agent, skill_id, tuple(input_modes), tuple(output_modes), streaming, push_notifications)
        steps = guarded(need, validate=validate)
        answered: Any = None
        failed: Exception | None = None
        while True:
            try:
                step = steps.send(answered) if failed is None else steps.throw(failed)
            except StopIteration as done:
                returned: Returned = done.value
                return returned
            answered, failed = None, None
            try:
                match step:
                    case Resolve(need):
                        answered = self._cache.find(need, time.monotonic()) or await self._ask(need)
                    case Run(resolution):
                        answered = await _ran(run, resolution)
                    case Report(resolution, request):
                        answered = await self._report(resolution, request)
                    case Validate(resolution, request):
                        answered = await self._validate(resolution, request)
            except Exception as error:  # noqa: BLE001 - handed to the guard, which knows what it means
                failed = error

    async def _ask(self, need: Need, *, refetch: bool = False, timeout: float | None = None) -> Resolution:
        self._start()
        ticket = self._cache.ask()
        answer = await self._call(self._stub.ResolveSkill, need.request(refetch=refetch), timeout)
        resolution = Resolution.of(answer.resolution)
        until = time.monotonic() + resolution.lifetime_left(time.time())
        self._cache.keep(ticket, need, resolution, until)
        return resolution

    async def _report(self, resolution: Resolution, request: pb.ReportTaskOutcomeRequest) -> verdict_pb2.Judgement:
        request.request_id = uuid.uuid4().hex  # should the channel have to send it again, it counts once
        judgement: verdict_pb2.Judgement = (await self._call(self._stub.ReportTaskOutcome, request)).judgement
        self._heed(resolution, judgement)
        return judgement

    async def _validate(
        self, resolution: Resolution, request: pb.ValidateArtifactRequest
    ) -> pb.ValidateArtifactResponse:
        verdict: pb.ValidateArtifactResponse = await self._call(self._stub.ValidateArtifact, request)
        self._heed(resolution, verdict.judgement)
        return verdict

    def _heed(self, resolution: Resolution, judgement: verdict_pb2.Judgement) -> None:
        """Who reported the drift need not wait for the stream to tell of it."""
        if is_stale(judgement):
            self._cache.doubt(resolution.agent, resolution.sequence)

    def _start(self) -> None:
        self._check()
        if self._near:
            self._stream.start()

    async def _call(self, method: Any, request: Any, timeout: float | None = None) -> Any:
        self._check()
        try:
            return await method(request, timeout=self._timeout if timeout is None else timeout)
        except grpc.RpcError as error:
            raise service_error(error) from error

    def _disown(self) -> None:
        """In a forked child, before anything else runs there."""
        self._ended = ForkedError
        self._cache.lose()

    def _check(self) -> None:
        if self._ended is not None:
            raise self._ended


async def _ran(run: Callable[[Resolution], Awaitable[Any]], resolution: Resolution) -> Ran:
    try:
        return Ran(answer=await run(resolution))
    except Exception as error:  # noqa: BLE001 - the guard reports it, and raises it again where it is no sign of drift
        return Ran(error=error)
