"""The synchronous client. Safe to share between threads; one in each process."""

import threading
import time
import uuid
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc

from cardkeeper_client import fork
from cardkeeper_client.channel import OPTIONS
from cardkeeper_client.errors import ArtifactSchemaDriftError, ClosedError, ForkedError
from cardkeeper_client.failure import service_error
from cardkeeper_client.guard import Ran, Report, Resolve, Run, Validate, drift_of, guarded, is_stale
from cardkeeper_client.near_cache import NearCache
from cardkeeper_client.need import Need
from cardkeeper_client.observed import Answer
from cardkeeper_client.question import find_request, report_request, validate_request
from cardkeeper_client.resolution import Resolution
from cardkeeper_client.session import SILENCE, Session
from cardkeeper_client.stream import Stream
from cardkeeper_client.v1 import discovery_service_pb2 as pb
from cardkeeper_client.v1 import discovery_service_pb2_grpc, observation_pb2, verdict_pb2

Returned = TypeVar("Returned")

TIMEOUT = 15.0
"""Seconds granted to a call of the service where the caller says nothing."""


class Cardkeeper:
    """A client of one service: `with Cardkeeper("127.0.0.1:50051") as cards`.

    Resolutions are answered from memory while the invalidation stream is in sync, which starts with the first one.
    `credentials` are of gRPC (`grpc.ssl_channel_credentials(root_certificates=pem)`); without, the channel is plain.
    `options` are further options of the channel. `timeout` and `silence` are seconds: for each call, and until a server that
    says nothing is taken for gone; keep it above the ten seconds that the contract grants.
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
            self._channel = grpc.insecure_channel(target, options=(*OPTIONS, *options))
        else:
            self._channel = grpc.secure_channel(target, credentials, options=(*OPTIONS, *options))
        self._stub = discovery_service_pb2_grpc.DiscoveryServiceStub(self._channel)
        self._timeout = timeout
        self._lock = threading.RLock()
        self._stream = Stream(self._channel, self._session, self._lock)
        self._near = near_cache
        self._started = False
        self._ended: type[ClosedError | ForkedError] | None = None
        fork.guard(self, Cardkeeper._disown)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the stream and the channel. Safe to call twice."""
        if self._ended is not None:
            return  # closed, or forked: then the threads and sockets are the parent's
        with self._lock:
            self._ended = ClosedError
            self._cache.lose()
            started = self._started
        if started:
            self._stream.stop()
        self._channel.close()

    @property
    def in_sync(self) -> bool:
        """Whether resolutions are answered from memory now."""
        return self._cache.trusts(time.monotonic())

    def wait_until_in_sync(self, timeout: float = 5.0) -> bool:
        """Start the stream if need be, and wait for it. Return whether it is in sync."""
        self._start()
        return self._stream.wait_until_synced(timeout)

    def resolve(
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
        """Negotiate a skill of an agent, named by URL or by "agents/ID".

        `refetch` has the service fetch the card first. Raises SkillRefusedError, ServiceUnavailableError, ServiceError.
        """
        need = Need(agent, skill_id, tuple(input_modes), tuple(output_modes), streaming, push_notifications)
        if not refetch:
            held = self._cache.find(need, time.monotonic())
            if held is not None:
                return held
        return self._ask(need, refetch=refetch, timeout=timeout)

    def find(
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
        """Search the skills of all agents, best first, at most 100. All but `query` are hard filters. Raises ServiceError."""
        need = Need("", skill_id, tuple(input_modes), tuple(output_modes), streaming, push_notifications)
        found = self._call(self._stub.FindSkills, find_request(query, need, tags, limit))
        return [Resolution.of(match.resolution) for match in found.matches]

    def report(
        self,
        resolution: Resolution,
        outcome: Answer,
        *,
        http_status: int | None = None,
        call: observation_pb2.TaskCall | None = None,
        raise_on_drift: bool = True,
    ) -> verdict_pb2.Judgement:
        """Report what came of a task, and return the judgement.

        `outcome` is what the agent answered: JSON text, bytes or value, an A2A protobuf message, a pydantic model, or a
        TaskOutcomeSummary; `call` says how the task was asked for. Raises StaleAgentCardError, ArtifactSchemaDriftError or
        AgentContradictsCardError where it contradicts the card, unless `raise_on_drift` is false; ServiceError.
        """
        request = report_request(resolution, outcome, http_status=http_status, call=call)
        judgement = self._report(resolution, request)
        drift = drift_of(resolution, judgement, outcome)
        if drift is not None and raise_on_drift:
            raise drift
        return judgement

    def validate(
        self,
        resolution: Resolution,
        artifact: Answer,
        *,
        policy: "pb.ArtifactPolicy.ValueType" = pb.ARTIFACT_POLICY_UNSPECIFIED,
        raise_on_drift: bool = True,
    ) -> pb.ValidateArtifactResponse:
        """Judge an artifact by what was negotiated, before it goes anywhere.

        It comes in any form that `report` takes, or as an ArtifactSummary; `policy` says what becomes of a part that states
        no type. Raises ArtifactSchemaDriftError where it is rejected, unless `raise_on_drift` is false; ServiceError.
        """
        verdict = self._validate(resolution, validate_request(resolution, artifact, policy))
        if raise_on_drift and not verdict.accepted:
            raise ArtifactSchemaDriftError(resolution, verdict.judgement, artifact)
        return verdict

    def call(
        self,
        agent: str,
        skill_id: str,
        run: Callable[[Resolution], Returned],
        *,
        input_modes: Sequence[str] = (),
        output_modes: Sequence[str] = (),
        streaming: bool = False,
        push_notifications: bool = False,
        validate: bool = True,
    ) -> Returned:
        """Resolve, run the caller's function, report, validate; once more with the fresh card if the old one had drifted.

        `run` sends the task to `resolution.endpoint_url` and returns what the agent answered, in any form that `report` takes.
        An exception that carries the agent's answer (of gRPC, an HTTP client or an A2A SDK) is reported too. Raises
        StaleAgentCardError, ArtifactSchemaDriftError, AgentContradictsCardError, NotJudgedError, SkillRefusedError,
        ServiceError, or what `run` raised where that says nothing about the card.
        """
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
                        answered = self._cache.find(need, time.monotonic()) or self._ask(need)
                    case Run(resolution):
                        answered = _ran(run, resolution)
                    case Report(resolution, request):
                        answered = self._report(resolution, request)
                    case Validate(resolution, request):
                        answered = self._validate(resolution, request)
            except Exception as error:  # noqa: BLE001 - handed to the guard, which knows what it means
                failed = error

    def _ask(self, need: Need, *, refetch: bool = False, timeout: float | None = None) -> Resolution:
        self._start()
        ticket = self._cache.ask()
        answer = self._call(self._stub.ResolveSkill, need.request(refetch=refetch), timeout)
        resolution = Resolution.of(answer.resolution)
        until = time.monotonic() + resolution.lifetime_left(time.time())
        with self._lock:
            self._cache.keep(ticket, need, resolution, until)
        return resolution

    def _report(self, resolution: Resolution, request: pb.ReportTaskOutcomeRequest) -> verdict_pb2.Judgement:
        request.request_id = uuid.uuid4().hex  # should the channel have to send it again, it counts once
        judgement: verdict_pb2.Judgement = self._call(self._stub.ReportTaskOutcome, request).judgement
        self._heed(resolution, judgement)
        return judgement

    def _validate(self, resolution: Resolution, request: pb.ValidateArtifactRequest) -> pb.ValidateArtifactResponse:
        verdict: pb.ValidateArtifactResponse = self._call(self._stub.ValidateArtifact, request)
        self._heed(resolution, verdict.judgement)
        return verdict

    def _heed(self, resolution: Resolution, judgement: verdict_pb2.Judgement) -> None:
        """Who reported the drift need not wait for the stream to tell of it."""
        if is_stale(judgement):
            with self._lock:
                self._cache.doubt(resolution.agent, resolution.sequence)

    def _start(self) -> None:
        self._check()
        if self._near and not self._started:
            with self._lock:
                self._check()
                if not self._started:
                    self._stream.start()
                    self._started = True

    def _call(self, method: Any, request: Any, timeout: float | None = None) -> Any:
        self._check()
        try:
            return method(request, timeout=self._timeout if timeout is None else timeout)
        except grpc.RpcError as error:
            raise service_error(error) from error

    def _disown(self) -> None:
        """In a forked child, before anything else runs there."""
        self._ended = ForkedError
        self._cache.lose()

    def _check(self) -> None:
        if self._ended is not None:
            raise self._ended


def _ran(run: Callable[[Resolution], Any], resolution: Resolution) -> Ran:
    try:
        return Ran(answer=run(resolution))
    except Exception as error:  # noqa: BLE001 - the guard reports it, and raises it again where it is no sign of drift
        return Ran(error=error)
