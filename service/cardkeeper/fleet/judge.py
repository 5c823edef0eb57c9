"""Judging what clients observed: the pure rules, the snapshot they are applied to, and the settlement of what they find."""

from collections.abc import Sequence
from dataclasses import dataclass

from cardkeeper.card.change import ChangeSet
from cardkeeper.card.compare import compare
from cardkeeper.card.model import Card
from cardkeeper.card.parse import parse_card
from cardkeeper.clock import Clock
from cardkeeper.drift.artifact import judge_artifact
from cardkeeper.drift.evidence import find_evidence
from cardkeeper.drift.model import (
    Advice,
    ArtifactPolicy,
    Call,
    Evidence,
    Part,
    PartJudgement,
    Verdict,
)
from cardkeeper.drift.near import near_ids
from cardkeeper.drift.outcome import Observation
from cardkeeper.drift.overlay import Overlay
from cardkeeper.drift.pattern import Patterns
from cardkeeper.drift.verdict import artifact_accepted, decide, softened
from cardkeeper.errors import NotFound
from cardkeeper.fleet.agent_state import AgentState
from cardkeeper.fleet.investigation import Investigator
from cardkeeper.fleet.negotiation import Need, serves
from cardkeeper.fleet.registry import Registry
from cardkeeper.fleet.resolution import Resolution, resolve
from cardkeeper.fleet.search import Question, find_skills
from cardkeeper.fleet.statistics import Statistics
from cardkeeper.store.cache import BoundedCache

MAX_ALTERNATIVES = 5
SNAPSHOTS = 1_000
"""Parsed snapshots that are kept at hand, at most; all others are read from the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Negotiated:
    """What an observation is tied to."""

    agent_id: str
    skill_id: str
    skill_fingerprint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The answer to an observation."""

    verdict: Verdict
    advice: Advice
    evidence: tuple[Evidence, ...] = ()
    resolution: Resolution | None = None
    """The fresh one, with RETRY_WITH_RESOLUTION."""
    retry_after: float = 0.0
    changes: ChangeSet | None = None
    """With CARD_CHANGED: from the negotiated snapshot to the card of now."""
    near_skill_ids: tuple[str, ...] = ()
    alternatives: tuple[Resolution, ...] = ()
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactVerdict:
    """The answer to an artifact."""

    accepted: bool
    parts: tuple[PartJudgement, ...]
    judgement: Judgement


class Judge:
    """Applies the rules of `drift` to the snapshot that was negotiated, and settles what they find."""

    def __init__(
        self,
        registry: Registry,
        investigator: Investigator,
        clock: Clock,
        patterns: Patterns,
        policy: ArtifactPolicy,
        overlay: Overlay,
        statistics: Statistics,
    ) -> None:
        self._registry = registry
        self._investigator = investigator
        self._clock = clock
        self._patterns = patterns
        self._policy = policy
        self._overlay = overlay
        self._statistics = statistics
        self._snapshots: BoundedCache[Card] = BoundedCache(max_entries=SNAPSHOTS, ttl=3600.0)

    async def outcome(
        self, negotiated: Negotiated, call: Call, observation: Observation, *, reporter: str, timeout: float
    ) -> Judgement:
        """Judge a task's outcome. Raises NotFound where the snapshot is not known."""
        snapshot = await self.snapshot(negotiated)
        self._statistics.judgements += 1
        found = find_evidence(snapshot, call, observation, self._patterns, schema=self._schema(negotiated))
        return await self._settle(negotiated, snapshot, call, found, self._policy, reporter=reporter, timeout=timeout)

    async def artifact(
        self,
        negotiated: Negotiated,
        parts: Sequence[Part],
        policy: ArtifactPolicy | None,
        *,
        reporter: str,
        timeout: float,
    ) -> ArtifactVerdict:
        """Judge an artifact before it goes anywhere. Raises NotFound where the snapshot is not known."""
        snapshot = await self.snapshot(negotiated)
        self._statistics.judgements += 1
        policy = policy or self._policy
        found = judge_artifact(snapshot, negotiated.skill_id, parts, schema=self._schema(negotiated))
        call = Call(skill_id=negotiated.skill_id)
        judgement = await self._settle(
            negotiated, snapshot, call, found.evidence, policy, reporter=reporter, timeout=timeout
        )
        accepted = artifact_accepted(found, policy, judgement.verdict)
        return ArtifactVerdict(accepted=accepted, parts=found.parts, judgement=judgement)

    async def snapshot(self, negotiated: Negotiated) -> Card:
        """Return the card that was negotiated with, however long ago. Raises NotFound."""
        state = self._registry.by_id(negotiated.agent_id)
        if (
            state is not None
            and state.card is not None
            and state.card.skill_fingerprint == negotiated.skill_fingerprint
        ):
            return state.card
        key = f"{negotiated.agent_id} {negotiated.skill_fingerprint}"
        card = await self._snapshots.get(key)
        if card is not None:
            return card
        stored = await self._registry.store.card(negotiated.agent_id, negotiated.skill_fingerprint)
        if stored is None:
            name = f"agents/{negotiated.agent_id}"
            raise NotFound(
                f"no card of {name} with skill fingerprint {negotiated.skill_fingerprint} is known: "
                "send Resolution.agent and Resolution.skill_fingerprint as they were resolved",
                reason="SNAPSHOT_UNKNOWN",
                resource=f"{name}/cards/{negotiated.skill_fingerprint}",
                agent=name,
                skill_fingerprint=negotiated.skill_fingerprint,
            )
        card = parse_card(stored.body, stored.card_url)
        await self._snapshots.set(key, card)
        return card

    def _schema(self, negotiated: Negotiated) -> str:
        """The operator's output schema; empty: there is none."""
        state = self._registry.by_id(negotiated.agent_id)
        return self._overlay.schema(state.record.agent_url if state else "", negotiated.skill_id)

    async def _settle(
        self,
        negotiated: Negotiated,
        snapshot: Card,
        call: Call,
        found: tuple[Evidence, ...],
        policy: ArtifactPolicy,
        *,
        reporter: str,
        timeout: float,
    ) -> Judgement:
        evidence = tuple(item for item in found if not item.untyped or policy is not ArtifactPolicy.LENIENT)
        if not evidence:
            return Judgement(verdict=Verdict.NO_DRIFT, advice=Advice.PROCEED, message="nothing contradicts the card")
        settlement = await self._investigator.settle(
            negotiated.agent_id,
            negotiated.skill_fingerprint,
            negotiated.skill_id,
            evidence,
            reporter=reporter,
            timeout=timeout,
        )
        state = settlement.state
        need = _need(snapshot, call)
        serving = state is not None and state.card is not None and serves(state.card, need)
        verdict = softened(settlement.verdict, evidence, policy)
        advice = decide(verdict, serving=serving)
        gone = verdict is Verdict.CARD_CHANGED and not serving
        return Judgement(
            verdict=verdict,
            advice=advice,
            evidence=evidence,
            resolution=(
                resolve(state, need, self._clock.monotonic())
                if state is not None and advice is Advice.RETRY_WITH_RESOLUTION
                else None
            ),
            retry_after=settlement.retry_after,
            changes=compare(snapshot, state.card if state else None) if verdict is Verdict.CARD_CHANGED else None,
            near_skill_ids=near_ids(call.skill_id, _ids(state)) if gone else (),
            alternatives=self._alternatives(need, negotiated.agent_id) if gone else (),
            message=_message(verdict, negotiated, evidence, state, serving=serving),
        )

    def _alternatives(self, need: Need, agent_id: str) -> tuple[Resolution, ...]:
        """Other agents that serve the need under the same skill id."""
        now = self._clock.monotonic()
        others = (state for state in self._registry if state.record.id != agent_id)
        hits = find_skills(others, Question(need=need))
        return tuple(resolve(hit.state, need, now) for hit in hits[:MAX_ALTERNATIVES])


def _need(snapshot: Card, call: Call) -> Need:
    """What the caller needs: what it said, else what the snapshot let it rely on."""
    skill = snapshot.skill(call.skill_id)
    return Need(
        skill_id=call.skill_id,
        input_modes=call.input_modes,
        output_modes=call.accepted_output_modes or (skill.output_modes if skill else ()),
        streaming=call.streaming,
        push_notifications=call.push_notifications,
    )


def _ids(state: AgentState | None) -> tuple[str, ...]:
    return () if state is None or state.card is None else tuple(skill.id for skill in state.card.skills)


def _message(
    verdict: Verdict, negotiated: Negotiated, evidence: Sequence[Evidence], state: AgentState | None, *, serving: bool
) -> str:
    agent, skill = f"agents/{negotiated.agent_id}", negotiated.skill_id
    seen = ", ".join(dict.fromkeys(item.kind.value for item in evidence))
    if verdict is Verdict.CARD_CHANGED:
        if state is None:
            return f"{seen}: {agent} is not kept any more"
        offer = "still offers" if serving else "no longer offers"
        return f"{seen}: the card of {agent} changed; it {offer} what was negotiated of {skill!r}"
    if verdict is Verdict.NO_DRIFT:
        return f"{seen}, by a type that is merely implied: {agent} is as it was negotiated, and has always sent it so"
    if verdict is Verdict.AGENT_CONTRADICTS_CARD:
        return f"{seen}: {agent} still advertises {skill!r} as it was negotiated, but does not do as its card says"
    return f"{seen}: the card of {agent} could not be fetched to settle this"
