"""The synchronous client. Safe to share between threads; one in each process."""

import os
import threading
import weakref
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc

from cardkeeper_client.channel import OPTIONS
from cardkeeper_client.errors import ArtifactSchemaDriftError, ForkedError
from cardkeeper_client.failure import service_error
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
from cardkeeper_client.session import Session
from cardkeeper_client.stream import Stream
from cardkeeper_client.v1 import discovery_service_pb2 as pb
from cardkeeper_client.v1 import discovery_service_pb2_grpc, observation_pb2, resolution_pb2, verdict_pb2

Returned = TypeVar("Returned")

TIMEOUT = 15.0
"""Seconds granted to a call of the service where the caller says nothing."""


class Cardkeeper:
    """A client of one service: `with Cardkeeper("127.0.0.1:50051") as cards`.

    Resolutions are answered from memory while the invalidation stream is in sync, which starts with the first one.
    """

    def __init__(
        self,
        target: str,
        *,
        credentials: grpc.ChannelCredentials | None = None,
        timeout: float = TIMEOUT,
        near_cache: bool = True,
        max_resolutions: int = 10_000,
    ) -> None:
        if credentials is None:
            self._channel = grpc.insecure_channel(target, options=OPTIONS)
        else:
            self._channel = grpc.secure_channel(target, credentials, options=OPTIONS)
        self._stub = discovery_service_pb2_grpc.DiscoveryServiceStub(self._channel)
        self._timeout = timeout
        self._cache = NearCache(max_resolutions)
        self._lock = threading.RLock()
        self._stream = Stream(self._channel, Session(self._cache), self._lock)
        self._started = not near_cache
        self._near = near_cache
        self._forked = False
        _clients.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the stream and the channel. Safe to call twice."""
        if self._forked:
            return  # the threads and sockets are the parent's
        if self._near and self._started:
            self._stream.stop()
        self._channel.close()

    @property
    def in_sync(self) -> bool:
        """Whether resolutions are answered from memory now."""
        return self._cache.in_sync

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
            held = self._cache.answers.get(need)
            if held is not None:
                return held
        return self._ask(need, refetch=refetch, timeout=timeout)

    def find(self, query: str = "", *, tags: Sequence[str] = (), limit: int = 20) -> list[Resolution]:
        """Search the skills of all agents, best first. Raises ServiceError."""
        request = pb.FindSkillsRequest(query=query, tags=tags, need=resolution_pb2.SkillNeed(), page_size=limit)
        found = self._call(self._stub.FindSkills, request)
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
        TaskOutcomeSummary. Raises StaleAgentCardError, ArtifactSchemaDriftError or AgentContradictsCardError where it
        contradicts the card, unless `raise_on_drift` is false; ServiceError.
        """
        need = Need(resolution.agent, resolution.skill_id)
        if isinstance(outcome, observation_pb2.TaskOutcomeSummary):
            request = report_request(need, resolution, summary=outcome)
        else:
            request = report_request(need, resolution, document=document_of(outcome, http_status=http_status))
        if call is not None:
            request.call.CopyFrom(call)
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

        Raises ArtifactSchemaDriftError where it is rejected, unless `raise_on_drift` is false; ServiceError.
        """
        request = validate_request(resolution, document_of(artifact), policy)
        verdict = self._validate(resolution, request)
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
                        answered = self._cache.answers.get(need) or self._ask(need)
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
        with self._lock:
            ticket = self._cache.ask()
        try:
            answer = self._call(self._stub.ResolveSkill, need.request(refetch=refetch), timeout)
        except BaseException:
            with self._lock:
                self._cache.give_up(ticket)
            raise
        resolution = Resolution.of(answer.resolution)
        with self._lock:
            self._cache.keep(ticket, need, resolution)
        return resolution

    def _report(self, resolution: Resolution, request: pb.ReportTaskOutcomeRequest) -> verdict_pb2.Judgement:
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
                self._cache.distrust(resolution.agent, resolution.sequence)

    def _start(self) -> None:
        if self._forked:
            raise ForkedError("this client was made before a fork: make one in each process")
        if not self._started:
            with self._lock:
                if not self._started:
                    self._stream.start()
                    self._started = True

    def _call(self, method: Any, request: Any, timeout: float | None = None) -> Any:
        if self._forked:
            raise ForkedError("this client was made before a fork: make one in each process")
        try:
            return method(request, timeout=timeout or self._timeout)
        except grpc.RpcError as error:
            raise service_error(error) from error

    def _after_fork(self) -> None:
        self._forked = True
        self._cache.answers = {}


def _ran(run: Callable[[Resolution], Any], resolution: Resolution) -> Ran:
    try:
        return Ran(answer=run(resolution))
    except Exception as error:  # noqa: BLE001 - the guard reports it, and raises it again where it is no sign of drift
        return Ran(error=error)


_clients: "weakref.WeakSet[Cardkeeper]" = weakref.WeakSet()


def _disown() -> None:
    for client in list(_clients):
        client._after_fork()  # noqa: SLF001 - this module's own class


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown)
