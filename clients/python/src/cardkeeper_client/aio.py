"""The asyncio client: the same surface, on one event loop."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc

from cardkeeper_client.backoff import Backoff
from cardkeeper_client.channel import OPTIONS
from cardkeeper_client.client import TIMEOUT
from cardkeeper_client.errors import ArtifactSchemaDriftError
from cardkeeper_client.failure import code_of, service_error
from cardkeeper_client.guard import (
    Ran,
    Report,
    Resolve,
    Run,
    Validate,
    drift_of,
    guarded,
    is_stale,
    report_request,
    validate_request,
)
from cardkeeper_client.near_cache import NearCache
from cardkeeper_client.need import Need
from cardkeeper_client.observed import Answer, document_of
from cardkeeper_client.resolution import Resolution
from cardkeeper_client.session import SILENCE, Session
from cardkeeper_client.v1 import discovery_service_pb2 as pb
from cardkeeper_client.v1 import discovery_service_pb2_grpc, observation_pb2, resolution_pb2, verdict_pb2

log = logging.getLogger("cardkeeper_client")

Returned = TypeVar("Returned")


class CardkeeperAsync:
    """A client of one service: `async with CardkeeperAsync("127.0.0.1:50051") as cards`. Methods as in Cardkeeper."""

    def __init__(
        self,
        target: str,
        *,
        credentials: grpc.ChannelCredentials | None = None,
        timeout: float = TIMEOUT,
        near_cache: bool = True,
        max_resolutions: int = 10_000,
        silence: float = SILENCE,
    ) -> None:
        if credentials is None:
            self._channel = grpc.aio.insecure_channel(target, options=OPTIONS)
        else:
            self._channel = grpc.aio.secure_channel(target, credentials, options=OPTIONS)
        self._stub: Any = discovery_service_pb2_grpc.DiscoveryServiceStub(self._channel)
        self._timeout = timeout
        self._silence = silence
        self._cache = NearCache(max_resolutions)
        self._session = Session(self._cache)
        self._near = near_cache
        self._synced = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the stream and the channel. Safe to call twice."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        await self._channel.close()

    @property
    def in_sync(self) -> bool:
        """Whether resolutions are answered from memory now."""
        return self._cache.in_sync

    async def wait_until_in_sync(self, timeout: float = 5.0) -> bool:
        """Start the stream if need be, and wait for it. Return whether it is in sync."""
        self._start()
        try:
            async with asyncio.timeout(timeout):
                await self._synced.wait()
        except TimeoutError:
            return False
        return True

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
            held = self._cache.answers.get(need)
            if held is not None:
                return held
        return await self._ask(need, refetch=refetch, timeout=timeout)

    async def find(self, query: str = "", *, tags: Sequence[str] = (), limit: int = 20) -> list[Resolution]:
        """See Cardkeeper.find."""
        request = pb.FindSkillsRequest(query=query, tags=tags, need=resolution_pb2.SkillNeed(), page_size=limit)
        found = await self._call(self._stub.FindSkills, request)
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
        need = Need(resolution.agent, resolution.skill_id)
        if isinstance(outcome, observation_pb2.TaskOutcomeSummary):
            request = report_request(need, resolution, summary=outcome)
        else:
            request = report_request(need, resolution, document=document_of(outcome, http_status=http_status))
        if call is not None:
            request.call.CopyFrom(call)
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
        request = validate_request(resolution, document_of(artifact), policy)
        verdict = await self._validate(resolution, request)
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
                        answered = self._cache.answers.get(need) or await self._ask(need)
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
        try:
            answer = await self._call(self._stub.ResolveSkill, need.request(refetch=refetch), timeout)
        except BaseException:
            self._cache.give_up(ticket)
            raise
        resolution = Resolution.of(answer.resolution)
        self._cache.keep(ticket, need, resolution)
        return resolution

    async def _call(self, method: Any, request: Any, timeout: float | None = None) -> Any:
        try:
            return await method(request, timeout=timeout or self._timeout)
        except grpc.RpcError as error:
            raise service_error(error) from error

    async def _report(self, resolution: Resolution, request: pb.ReportTaskOutcomeRequest) -> verdict_pb2.Judgement:
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
            self._cache.distrust(resolution.agent, resolution.sequence)

    def _start(self) -> None:
        if self._near and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="cardkeeper stream")

    async def _run(self) -> None:
        backoff = Backoff()
        while True:
            hint = await self._follow(backoff)
            await asyncio.sleep(backoff.wait(hint=hint))

    async def _follow(self, backoff: Backoff) -> float | None:
        """Follow one stream to its end; return the server's hint when to come back."""
        hint = None
        call = self._stub.WatchInvalidations(wait_for_ready=True)
        try:
            await self._within_silence(call.write(self._session.opened()))
            while True:
                frame = await self._within_silence(call.read())
                if frame is grpc.aio.EOF:
                    return hint
                reaction = self._session.apply(frame)
                if frame.WhichOneof("event") == "synced":
                    backoff.succeeded()
                    self._synced.set()
                for step in reaction.steps:
                    await call.write(step)
                if reaction.reconnect_within is not None:
                    hint = reaction.reconnect_within
        except TimeoutError:
            log.info("the invalidation stream fell silent for %.0f s", self._silence)
        except grpc.RpcError as error:
            log.info("the invalidation stream ended: %s", code_of(error))
        except asyncio.InvalidStateError:
            log.info("the invalidation stream ended before a step was sent")
        finally:
            self._synced.clear()
            self._session.lost()
            # A call that is merely forgotten leaks on both sides.
            call.cancel()
        return hint

    async def _within_silence(self, waiting: Awaitable[Any]) -> Any:
        async with asyncio.timeout(self._silence):
            return await waiting


async def _ran(run: Callable[[Resolution], Awaitable[Any]], resolution: Resolution) -> Ran:
    try:
        return Ran(answer=await run(resolution))
    except Exception as error:  # noqa: BLE001 - the guard reports it, and raises it again where it is no sign of drift
        return Ran(error=error)
