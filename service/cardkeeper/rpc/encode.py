"""Values of the fleet to messages of the contract."""

from collections.abc import Iterable

from google.protobuf import duration_pb2, timestamp_pb2

from cardkeeper.card.change import Change, ChangeSet
from cardkeeper.card.finding import Finding
from cardkeeper.drift.model import Evidence, PartJudgement
from cardkeeper.fleet.agent_state import AgentState
from cardkeeper.fleet.judge import ArtifactVerdict, Judgement
from cardkeeper.fleet.resolution import Resolution
from cardkeeper.fleet.revision_log import Revision
from cardkeeper.fleet.search import Hit
from cardkeeper.rpc.status import clip
from cardkeeper.store.base import DriftRecord, StoredCard
from cardkeeper.v1 import (
    agent_pb2,
    change_pb2,
    discovery_service_pb2,
    resolution_pb2,
    revision_pb2,
    verdict_pb2,
)

MAX_LISTED = 256
MAX_TEXT = 500


def revision(value: Revision) -> revision_pb2.Revision:
    """A revision."""
    return revision_pb2.Revision(epoch=value.epoch, sequence=value.sequence)


def timestamp(seconds: float) -> timestamp_pb2.Timestamp | None:
    """Seconds since the Unix epoch, to the millisecond; None for 0, which stands for never."""
    if not seconds:
        return None
    stamp = timestamp_pb2.Timestamp()
    stamp.FromMilliseconds(int(seconds * 1000))
    return stamp


def duration(seconds: float) -> duration_pb2.Duration | None:
    """Seconds, to the millisecond; None for 0."""
    if not seconds:
        return None
    span = duration_pb2.Duration()
    span.FromMilliseconds(int(seconds * 1000))
    return span


def texts(values: Iterable[str], limit: int = MAX_LISTED) -> list[str]:
    """Strings that protobuf takes: valid UTF-8, bounded in length and number."""
    return [clip(value, MAX_TEXT) for value in list(values)[:limit]]


def resolution(value: Resolution, epoch: str) -> resolution_pb2.Resolution:
    """A resolution."""
    return resolution_pb2.Resolution(
        agent=value.agent,
        agent_url=value.agent_url,
        endpoint_url=clip(value.endpoint_url, 2048),
        protocol_binding=clip(value.protocol_binding, MAX_TEXT),
        protocol_version=clip(value.protocol_version, MAX_TEXT),
        tenant=clip(value.tenant, MAX_TEXT),
        skill_id=clip(value.skill_id, MAX_TEXT),
        input_modes=texts(value.input_modes),
        output_modes=texts(value.output_modes),
        streaming=value.streaming,
        push_notifications=value.push_notifications,
        skill_fingerprint=value.skill_fingerprint,
        per_skill_fingerprint=value.per_skill_fingerprint,
        card_digest=value.card_digest,
        card_version=clip(value.card_version, MAX_TEXT),
        revision=revision_pb2.Revision(epoch=epoch, sequence=value.sequence),
        verify_time=timestamp(value.verified_at),
        expire_time=timestamp(value.expires_at),
        freshness=resolution_pb2.Freshness.ValueType(value.freshness.value),
    )


def change(value: Change) -> change_pb2.Change:
    """One change."""
    return change_pb2.Change(
        kind=change_pb2.ChangeKind.Value(f"CHANGE_KIND_{value.kind.name}"),
        severity=change_pb2.Severity.ValueType(value.severity.value),
        skill_id=clip(value.skill_id, MAX_TEXT),
        pointer=clip(value.pointer, MAX_TEXT),
        before=clip(value.before, MAX_TEXT),
        after=clip(value.after, MAX_TEXT),
    )


def change_set(value: ChangeSet) -> change_pb2.ChangeSet:
    """A change set."""
    return change_pb2.ChangeSet(
        previous_skill_fingerprint=value.previous_skill_fingerprint,
        skill_fingerprint=value.skill_fingerprint,
        severity=change_pb2.Severity.ValueType(value.severity.value),
        surface_changed=value.surface_changed,
        version_changed=value.version_changed,
        silent=value.silent,
        changes=[change(item) for item in value.changes[:MAX_LISTED]],
        truncated=len(value.changes) > MAX_LISTED,
    )


def evidence(value: Evidence) -> verdict_pb2.Evidence:
    """One piece of evidence."""
    return verdict_pb2.Evidence(
        kind=verdict_pb2.EvidenceKind.Value(f"EVIDENCE_KIND_{value.kind.name}"),
        rule=clip(value.rule, MAX_TEXT),
        expected=clip(value.expected, MAX_TEXT),
        observed=clip(value.observed, MAX_TEXT),
        pointer=clip(value.pointer, MAX_TEXT),
    )


def judgement(value: Judgement, epoch: str) -> verdict_pb2.Judgement:
    """A judgement."""
    return verdict_pb2.Judgement(
        verdict=verdict_pb2.Verdict.Value(f"VERDICT_{value.verdict.name}"),
        advice=verdict_pb2.Advice.Value(f"ADVICE_{value.advice.name}"),
        evidence=[evidence(item) for item in value.evidence[:MAX_LISTED]],
        resolution=resolution(value.resolution, epoch) if value.resolution else None,
        retry_delay=duration(value.retry_after),
        changes=change_set(value.changes) if value.changes else None,
        near_skill_ids=texts(value.near_skill_ids),
        alternatives=[resolution(item, epoch) for item in value.alternatives],
        message=clip(value.message, MAX_TEXT),
    )


def artifact_verdict(value: ArtifactVerdict, epoch: str) -> discovery_service_pb2.ValidateArtifactResponse:
    """The answer to an artifact."""
    return discovery_service_pb2.ValidateArtifactResponse(
        accepted=value.accepted,
        parts=[_part(item) for item in value.parts[:MAX_LISTED]],
        judgement=judgement(value.judgement, epoch),
    )


def _part(value: PartJudgement) -> discovery_service_pb2.ValidateArtifactResponse.PartResult:
    response = discovery_service_pb2.ValidateArtifactResponse
    return response.PartResult(
        pointer=clip(value.pointer, MAX_TEXT),
        media_type=clip(value.media_type, MAX_TEXT),
        result=response.Result.Value(f"RESULT_{value.result.name}"),
        violations=[
            response.Violation(pointer=clip(item.pointer, MAX_TEXT), message=clip(item.message, MAX_TEXT))
            for item in value.violations[:32]
        ],
        schema_checked=value.schema_checked,
    )


def match(hit: Hit, resolved: Resolution, epoch: str) -> discovery_service_pb2.FindSkillsResponse.Match:
    """One hit of a search."""
    return discovery_service_pb2.FindSkillsResponse.Match(
        resolution=resolution(resolved, epoch),
        skill_name=clip(hit.skill.name, MAX_TEXT),
        reasons=hit.reasons,
        score=hit.score,
    )


def agent(state: AgentState, epoch: str, monotonic: float) -> agent_pb2.Agent:
    """An agent."""
    record, card = state.record, state.card
    return agent_pb2.Agent(
        name=state.name,
        agent_url=record.agent_url,
        display_name=clip(card.name, MAX_TEXT) if card else "",
        registered=record.registered,
        card_state=_card_state(state),
        freshness=resolution_pb2.Freshness.ValueType(state.freshness(monotonic).value if card else 0),
        card_url=clip(record.card_url, 2048),
        skill_fingerprint=record.skill_fingerprint,
        card_digest=record.card_digest,
        card_version=clip(card.version, MAX_TEXT) if card else "",
        dialect=card.dialect if card else "",
        skill_ids=texts(skill.id for skill in card.skills) if card else (),
        revision=revision_pb2.Revision(epoch=epoch, sequence=record.sequence),
        verify_time=timestamp(record.verified_at),
        change_count=record.change_count,
        silent_change_count=record.silent_change_count,
        last_error=clip(record.failure.message, MAX_TEXT) if record.failure else "",
    )


def _card_state(state: AgentState) -> agent_pb2.CardState.ValueType:
    record = state.record
    if record.suspicion is not None:
        return agent_pb2.CARD_STATE_SUSPECT
    if record.failure is not None:
        invalid = record.failure.reason == "CARD_INVALID"
        return agent_pb2.CARD_STATE_INVALID if invalid else agent_pb2.CARD_STATE_UNREACHABLE
    return agent_pb2.CARD_STATE_PENDING if state.card is None else agent_pb2.CARD_STATE_HELD


def card(stored: StoredCard, epoch: str, findings: Iterable[Finding] = ()) -> agent_pb2.Card:
    """A card document; its body is there if the stored one has it."""
    return agent_pb2.Card(
        agent=f"agents/{stored.agent}",
        skill_fingerprint=stored.skill_fingerprint,
        card_digest=stored.card_digest,
        body=stored.body,
        card_url=clip(stored.card_url, 2048),
        dialect=stored.dialect,
        version=clip(stored.version, MAX_TEXT),
        revision=revision_pb2.Revision(epoch=epoch, sequence=stored.sequence),
        fetch_time=timestamp(stored.fetched_at),
        cause=change_pb2.Cause.Value(f"CAUSE_{stored.cause.name}"),
        findings=remarks(findings, MAX_LISTED),
    )


def remarks(findings: Iterable[Finding], most: int) -> list[agent_pb2.Finding]:
    """Remarks on a card, most serious first."""
    gravest = sorted(findings, key=lambda item: -item.level)
    return [
        agent_pb2.Finding(
            id=clip(item.id, MAX_TEXT),
            pointer=clip(item.pointer, MAX_TEXT),
            message=clip(item.message, MAX_TEXT),
            level=agent_pb2.Finding.Level.ValueType(item.level.value),
        )
        for item in gravest[:most]
    ]


def drift_event(record: DriftRecord, epoch: str) -> agent_pb2.DriftEvent:
    """A drift event."""
    return agent_pb2.DriftEvent(
        name=f"agents/{record.agent}/driftEvents/{record.number}",
        agent=f"agents/{record.agent}",
        event_time=timestamp(record.occurred_at),
        cause=change_pb2.Cause.Value(f"CAUSE_{record.cause.name}"),
        verdict=verdict_pb2.Verdict.Value(f"VERDICT_{record.verdict.name}"),
        skill_id=clip(record.skill_id, MAX_TEXT),
        evidence=[evidence(item) for item in record.evidence],
        changes=change_set(record.changes) if record.changes else None,
        revision=revision_pb2.Revision(epoch=epoch, sequence=record.sequence) if record.sequence else None,
    )
