"""Artifacts in every dialect, and what becomes of each kind of part."""

import json
from typing import Any

import pytest

from cardkeeper.card.parse import normalise
from cardkeeper.drift.artifact import MAX_EVIDENCE, judge_artifact, read_artifact
from cardkeeper.drift.model import Advice, ArtifactPolicy, EvidenceKind, PartResult, Verdict
from cardkeeper.drift.near import near_ids
from cardkeeper.drift.verdict import artifact_accepted, decide, softened
from cardkeeper.errors import DocumentUnreadable


def card(*modes: str, defaults: tuple[str, ...] = ()) -> Any:
    return normalise(
        {
            "name": "n",
            "version": "1",
            "url": "https://a.example",
            "defaultOutputModes": list(defaults),
            "skills": [{"id": "s", "tags": [], "outputModes": list(modes)}],
        }
    )


def results(part: Any, *modes: str) -> str:
    parts = read_artifact(json.dumps({"artifactId": "a", "parts": [part]}).encode())
    return judge_artifact(card(*modes), "s", parts).parts[0].result.value


@pytest.mark.parametrize(
    ("part", "mode", "result"),
    [
        # 1.0
        ({"text": "x", "mediaType": "text/markdown"}, "text/markdown", "ACCEPTED"),
        ({"text": "x", "mediaType": "text/plain"}, "text/markdown", "REJECTED"),
        ({"text": "x"}, "text/markdown", "UNTYPED"),
        ({"text": "x"}, "text/plain", "ACCEPTED"),
        ({"raw": "eA==", "mediaType": "image/png", "filename": "x.png"}, "image/*", "ACCEPTED"),
        ({"url": "https://x.example/a.csv"}, "text/csv", "ACCEPTED"),
        ({"url": "https://x.example/a.csv?sig=1#x"}, "text/csv", "ACCEPTED"),
        ({"data": {"a": 1}}, "application/json", "ACCEPTED"),
        ({"data": [1]}, "text/plain", "UNTYPED"),
        ({"data": {"a": 1}, "mediaType": "application/geo+json"}, "application/json", "ACCEPTED"),
        ({"data": {"a": 1}, "mediaType": "application/json"}, "application/geo+json", "REJECTED"),
        # 0.3 JSON
        ({"kind": "text", "text": "x"}, "text", "ACCEPTED"),
        ({"kind": "text", "text": "x", "metadata": {"mimeType": "text/markdown"}}, "text/markdown", "ACCEPTED"),
        ({"kind": "file", "file": {"bytes": "eA==", "mimeType": "image/png"}}, "image/png", "ACCEPTED"),
        ({"kind": "file", "file": {"bytes": "eA==", "mimeType": "image/png"}}, "file", "ACCEPTED"),
        ({"kind": "file", "file": {"uri": "https://x.example/a.pdf"}}, "application/pdf", "ACCEPTED"),
        ({"kind": "file", "file": {"bytes": "eA==", "name": "a.md"}}, "text/markdown", "ACCEPTED"),
        ({"kind": "file", "file": {"bytes": "eA=="}}, "image/png", "UNTYPED"),
        ({"kind": "file", "file": {"bytes": "eA=="}}, "application/octet-stream", "ACCEPTED"),
        ({"kind": "data", "data": {"a": 1}}, "data", "ACCEPTED"),
        # 0.3 proto JSON
        ({"file": {"fileWithBytes": "eA==", "mimeType": "image/png"}}, "image/png", "ACCEPTED"),
        ({"data": {"data": {"a": 1}}}, "application/json", "ACCEPTED"),
        # 0.1, where the type may be a media type
        ({"type": "text", "text": "x"}, "text/plain", "ACCEPTED"),
        ({"type": "text/markdown", "text": "x"}, "text/markdown", "ACCEPTED"),
        ({"type": "text/markdown", "text": "x"}, "text/plain", "REJECTED"),
        # RFC 9110
        ({"text": "x", "mediaType": "Text/Markdown; charset=utf-8"}, "text/markdown", "ACCEPTED"),
        ({"text": "x", "mediaType": "text/markdown"}, "text/markdown; charset=utf-8", "ACCEPTED"),
        ({"text": "x", "mediaType": "text/markdown;variant=GFM"}, "text/markdown;variant=CommonMark", "REJECTED"),
        ({"text": "x", "mediaType": "text/markdown"}, "*/*", "ACCEPTED"),
        ({"text": "x", "mediaType": "image/png"}, "text/*", "REJECTED"),
        ({"text": "x", "mediaType": "nonsense"}, "text/plain", "REJECTED"),
    ],
)
def test_a_part_is_judged_by_what_it_states_or_implies(part: Any, mode: str, result: str) -> None:
    assert results(part, mode) == result


def test_a_skill_without_modes_anywhere_promised_nothing() -> None:
    assert results({"text": "x", "mediaType": "image/png"}) == "UNDECLARED"
    parts = read_artifact(b'{"parts": [{"text": "x", "mediaType": "image/png"}]}')
    assert judge_artifact(card(defaults=("text/plain",)), "s", parts).rejected


@pytest.mark.parametrize(
    ("document", "count"),
    [
        ({"artifactId": "a", "parts": []}, 0),
        ({"artifactId": "a", "parts": [{"text": "x"}, {"text": "y"}]}, 2),
        (
            {
                "kind": "artifact-update",
                "taskId": "t",
                "append": True,
                "artifact": {"parts": [{"kind": "text", "text": "x"}]},
            },
            1,
        ),
        ({"artifactUpdate": {"taskId": "t", "artifact": {"parts": [{"text": "x"}]}, "lastChunk": True}}, 1),
        ({"id": "t", "artifact": {"index": 0, "append": True, "parts": [{"type": "text", "text": "x"}]}}, 1),
        ({"kind": "message", "role": "agent", "parts": [{"kind": "text", "text": "x"}]}, 1),
        ({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x"}]}}, 1),
        ({"id": "t", "status": {"state": "completed"}, "artifacts": [{"parts": [{"text": "x"}]}] * 2}, 2),
        ({"jsonrpc": "2.0", "id": 1, "result": {"task": {"id": "t", "artifacts": [{"parts": [{"text": "x"}]}]}}}, 1),
        ({"kind": "text", "text": "x"}, 1),
        ([{"text": "x"}, {"text": "y"}], 2),
    ],
)
def test_an_artifact_is_read_in_any_form_in_which_agents_deliver_one(document: Any, count: int) -> None:
    assert len(read_artifact(json.dumps(document).encode())) == count


@pytest.mark.parametrize(
    "document", [{}, [], 3, "x", None, {"a": 1}, [1], {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}}]
)
def test_what_is_no_artifact_is_refused_and_says_what_would_be(document: Any) -> None:
    if document == []:
        assert read_artifact(b"[]") == ()
        return
    with pytest.raises(DocumentUnreadable):
        read_artifact(json.dumps(document).encode())


def test_evidence_points_at_the_part_and_quotes_no_content() -> None:
    parts = read_artifact(b'{"parts": [{"text": "hunter2", "mediaType": "text/plain"}, {"text": "hunter2"}]}')
    found = judge_artifact(card("text/markdown"), "s", parts).evidence
    assert [(item.kind, item.pointer, item.untyped) for item in found] == [
        (EvidenceKind.ARTIFACT_TYPE, "/parts/0", False),
        (EvidenceKind.ARTIFACT_TYPE, "/parts/1", True),
    ]
    assert "hunter2" not in repr(found)


def test_many_wrong_parts_are_all_judged_and_evidence_is_bounded() -> None:
    parts = read_artifact(json.dumps({"parts": [{"text": "x", "mediaType": "image/png"}] * 1000}).encode())
    judgement = judge_artifact(card("text/plain"), "s", parts)
    assert len(judgement.parts) == 1000
    assert len(judgement.evidence) == MAX_EVIDENCE


def test_what_any_skill_of_the_same_id_offers_is_offered() -> None:
    both = normalise(
        {
            "name": "n",
            "version": "1",
            "url": "https://a.example",
            "skills": [
                {"id": "s", "tags": [], "outputModes": ["text/plain"]},
                {"id": "s", "tags": [], "outputModes": ["image/png"]},
            ],
        }
    )
    parts = read_artifact(
        b'{"parts": [{"text": "x", "mediaType": "text/plain"}, {"raw": "", "mediaType": "image/png"}]}'
    )
    assert [part.result for part in judge_artifact(both, "s", parts).parts] == [PartResult.ACCEPTED] * 2


def test_a_skill_that_the_snapshot_lacks_is_evidence() -> None:
    judgement = judge_artifact(card("text/plain"), "other", read_artifact(b'{"parts": [{"text": "x"}]}'))
    assert [item.kind for item in judgement.evidence] == [EvidenceKind.SKILL_NOT_ADVERTISED]


@pytest.mark.parametrize(
    ("policy", "verdict", "accepted"),
    [
        (ArtifactPolicy.STRICT, Verdict.AGENT_CONTRADICTS_CARD, False),
        (ArtifactPolicy.STRICT, Verdict.CARD_CHANGED, False),
        (ArtifactPolicy.CONFIRM, Verdict.AGENT_CONTRADICTS_CARD, True),
        (ArtifactPolicy.CONFIRM, Verdict.CARD_CHANGED, False),
        (ArtifactPolicy.CONFIRM, Verdict.UNCONFIRMED, False),
        (ArtifactPolicy.LENIENT, Verdict.NO_DRIFT, True),
        (ArtifactPolicy.LENIENT, Verdict.CARD_CHANGED, True),
    ],
)
def test_what_becomes_of_untyped_parts_is_the_policies_business(
    policy: ArtifactPolicy, verdict: Verdict, accepted: bool
) -> None:
    untyped = judge_artifact(card("text/markdown"), "s", read_artifact(b'{"parts": [{"text": "x"}]}'))
    assert artifact_accepted(untyped, policy, verdict) is accepted
    stated = judge_artifact(
        card("text/markdown"), "s", read_artifact(b'{"parts": [{"text": "x", "mediaType": "a/b"}]}')
    )
    assert not artifact_accepted(stated, policy, verdict)


def test_a_habit_is_no_contradiction_unless_the_policy_is_strict() -> None:
    habit = judge_artifact(card("text/markdown"), "s", read_artifact(b'{"parts": [{"text": "x"}]}')).evidence
    contradicted = Verdict.AGENT_CONTRADICTS_CARD
    assert softened(contradicted, habit, ArtifactPolicy.CONFIRM) is Verdict.NO_DRIFT
    assert softened(contradicted, habit, ArtifactPolicy.STRICT) is contradicted
    assert softened(Verdict.CARD_CHANGED, habit, ArtifactPolicy.CONFIRM) is Verdict.CARD_CHANGED
    assert softened(contradicted, (), ArtifactPolicy.CONFIRM) is contradicted


@pytest.mark.parametrize(
    ("verdict", "serving", "advice"),
    [
        (Verdict.NO_DRIFT, True, Advice.PROCEED),
        (Verdict.NO_DRIFT, False, Advice.PROCEED),
        (Verdict.CARD_CHANGED, True, Advice.RETRY_WITH_RESOLUTION),
        (Verdict.CARD_CHANGED, False, Advice.DO_NOT_RETRY),
        (Verdict.AGENT_CONTRADICTS_CARD, True, Advice.DO_NOT_RETRY),
        (Verdict.UNCONFIRMED, True, Advice.WAIT),
    ],
)
def test_advice_follows_the_table(verdict: Verdict, serving: bool, advice: Advice) -> None:
    assert decide(verdict, serving=serving) is advice


def test_near_ids_are_spellings_then_versions_then_what_reads_alike() -> None:
    ids = ["translate", "summary", "summarize-v3", "Summarize_V2", "summarize-v2", ""]
    assert near_ids("summarize-v2", ids) == ("Summarize_V2", "summarize-v3", "summary")
    assert near_ids("x", ids) == ()
    assert len(near_ids("skill-1", [f"skill-{number}" for number in range(100_000)])) == 5
    assert near_ids("y" * 100_000, ["z" * 100_000]) == ()
