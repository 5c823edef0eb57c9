"""DiscoveryService: its unary methods. Each decodes, calls the fleet, and encodes."""

import asyncio

from cardkeeper.clock import Clock
from cardkeeper.fleet.consistency import CACHED
from cardkeeper.fleet.judge import Judge
from cardkeeper.fleet.keeper import Keeper
from cardkeeper.fleet.registry import Registry
from cardkeeper.fleet.resolution import resolve
from cardkeeper.fleet.search import Question, find_skills
from cardkeeper.rpc import decode, encode
from cardkeeper.rpc.endpoint import Caller, Context, Endpoint
from cardkeeper.rpc.page import page_size, read_token, write_token
from cardkeeper.rpc.ready_answers import ReadyAnswers
from cardkeeper.store.cache import BoundedCache
from cardkeeper.v1 import discovery_service_pb2 as pb

REPORTS = 10_000
"""Answers to reports that are kept for repetition, at most."""
REPORT_LIFETIME = 24 * 3600.0


class Discovery:
    """Handlers of DiscoveryService."""

    def __init__(self, registry: Registry, keeper: Keeper, judge: Judge, clock: Clock) -> None:
        self._registry = registry
        self._keeper = keeper
        self._judge = judge
        self._clock = clock
        self.ready = ReadyAnswers(registry, clock)
        self._reports: BoundedCache[bytes] = BoundedCache(max_entries=REPORTS, ttl=REPORT_LIFETIME)

    async def resolve_skill(self, request: pb.ResolveSkillRequest, caller: Caller) -> pb.ResolveSkillResponse:
        """Negotiate one skill of one agent."""
        ref = decode.agent_ref(request.agent)
        need = decode.need(request.need)
        consistency = decode.consistency(request.consistency) if request.HasField("consistency") else CACHED
        resolution, state = await self._keeper.resolve(ref, need, consistency, timeout=caller.timeout)
        expected = request.expected_skill_fingerprint
        response = pb.ResolveSkillResponse(
            resolution=encode.resolution(resolution, self._epoch),
            expectation_failed=bool(expected) and expected != resolution.skill_fingerprint,
        )
        if consistency is CACHED and self._clock.monotonic() < state.fresh_until:
            self.ready.put(caller.raw, response.SerializeToString(), state, state.fresh_until)
        return response

    async def find_skills(self, request: pb.FindSkillsRequest, caller: Caller) -> pb.FindSkillsResponse:
        """Search the cards that are held."""
        del caller  # answered from memory
        question = Question(text=request.query, need=decode.need(request.need), tags=tuple(request.tags))
        start = int(read_token(request.page_token, request) or 0)
        size = page_size(request.page_size, default=20, maximum=100)
        # Beside the loop: a large fleet takes a while, and other calls must not wait for it.
        hits = await asyncio.to_thread(find_skills, list(self._registry), question)
        now = self._clock.monotonic()
        page = hits[start : start + size]
        return pb.FindSkillsResponse(
            matches=[encode.match(hit, resolve(hit.state, hit.need, now), self._epoch) for hit in page],
            next_page_token=write_token(str(start + size), request) if start + size < len(hits) else "",
        )

    async def report_task_outcome(
        self, request: pb.ReportTaskOutcomeRequest, caller: Caller
    ) -> pb.ReportTaskOutcomeResponse:
        """Judge what came of a task."""
        key = f"{caller.peer} {request.request_id}"
        if request.request_id and (answered := await self._reports.get(key)) is not None:
            return pb.ReportTaskOutcomeResponse.FromString(answered)
        judgement = await self._judge.outcome(
            decode.negotiated(request.negotiated),
            decode.call(request.call, request.negotiated.skill_id),
            decode.outcome(request),
            reporter=caller.peer,
            timeout=caller.timeout,
        )
        response = pb.ReportTaskOutcomeResponse(judgement=encode.judgement(judgement, self._epoch))
        if request.request_id:
            await self._reports.set(key, response.SerializeToString())
        return response

    async def validate_artifact(
        self, request: pb.ValidateArtifactRequest, caller: Caller
    ) -> pb.ValidateArtifactResponse:
        """Judge an artifact before it goes anywhere."""
        verdict = await self._judge.artifact(
            decode.negotiated(request.negotiated),
            decode.parts(request),
            decode.policy(request),
            reporter=caller.peer,
            timeout=caller.timeout,
        )
        return encode.artifact_verdict(verdict, self._epoch)

    @property
    def _epoch(self) -> str:
        return self._registry.revisions.epoch


class ResolveEndpoint:
    """ResolveSkill with its short way: a ready answer needs no parsing, no rules and no serialising."""

    def __init__(self, ready: ReadyAnswers, full: Endpoint[pb.ResolveSkillRequest]) -> None:
        self._ready = ready
        self._full = full

    async def __call__(self, raw: bytes, context: Context) -> bytes:
        """Answer one call, or abort it with a typed error."""
        answer = self._ready.get(raw)
        return answer if answer is not None else await self._full(raw, context)
