"""Records for tests of the stores."""

from dataclasses import replace

from cardkeeper.card.change import Change, ChangeKind, ChangeSet, Severity
from cardkeeper.drift.model import Evidence, EvidenceKind, Verdict
from cardkeeper.store.base import AgentRecord, Cause, Commit, DriftRecord, Event, EventKind, Store, StoredCard

EVIDENCE = Evidence(
    kind=EvidenceKind.UNKNOWN_SKILL,
    rule="text.unknown-skill",
    expected="skill summarize is advertised",
    observed="unknown skill 'summarize'",
    pointer="/status/message",
)


def changes(before: str, after: str) -> ChangeSet:
    change = Change(kind=ChangeKind.SKILL_REMOVED, severity=Severity.BREAKING, skill_id="summarize", before=before)
    return ChangeSet(
        previous_skill_fingerprint=before, skill_fingerprint=after, changes=(change,), version_changed=False
    )


def stored_card(agent: str, digest: str, *, surface: str = "", body: bytes = b"") -> StoredCard:
    return StoredCard(
        agent=agent,
        skill_fingerprint=surface or f"surface of {digest}",
        card_digest=digest,
        body=body or f'{{"digest": "{digest}"}}'.encode(),
        card_url=f"https://{agent}.test/.well-known/agent-card.json",
        fetched_at=1_700_000_000.5,
        cause=Cause.REFRESH,
        dialect="1.0",
        version="1.0.0",
    )


def change_to(
    agent: str, digest: str, *, expected: int, surface: str = "", body: bytes = b"", kind: EventKind = EventKind.CHANGED
) -> Commit:
    """A commit that gives the agent another card."""
    card = stored_card(agent, digest, surface=surface, body=body)
    url = f"https://{agent}.test"
    return Commit(
        expected=expected,
        event=Event(
            kind=kind,
            agent=agent,
            agent_url=url,
            cause=Cause.REFRESH,
            changes=changes("", card.skill_fingerprint),
            tags=("text",),
            occurred_at=1_700_000_001.25,
        ),
        record=AgentRecord(id=agent, agent_url=url, card_digest=digest, skill_fingerprint=card.skill_fingerprint),
        card=card,
    )


def without_card(commit: Commit) -> Commit:
    """The same change, as one that brings no new document."""
    return replace(commit, card=None)


def removal(agent: str, *, expected: int) -> Commit:
    event = Event(
        kind=EventKind.REMOVED,
        agent=agent,
        agent_url=f"https://{agent}.test",
        cause=Cause.OPERATOR,
        changes=changes("surface", ""),
    )
    return Commit(expected=expected, event=event, record=None)


def drift_of(agent: str, skill_id: str = "summarize") -> DriftRecord:
    return DriftRecord(
        agent=agent,
        occurred_at=1_700_000_002.0,
        cause=Cause.EVIDENCE,
        verdict=Verdict.CARD_CHANGED,
        skill_id=skill_id,
        evidence=(EVIDENCE,),
        changes=changes("a", "b"),
        sequence=7,
    )


async def held_sequence(store: Store, agent: str) -> int:
    """The sequence that a committer must expect; 0: not kept."""
    record = await store.agent(agent)
    return record.sequence if record else 0
