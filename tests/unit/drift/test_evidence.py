"""The evidence rules over labelled outcomes, and the operator's patterns."""

import json
from pathlib import Path
from typing import Any

import pytest

from cardkeeper.card.parse import normalise
from cardkeeper.cli.judge import Judged, _judge
from cardkeeper.drift.evidence import MAX_SENTENCES, find_evidence
from cardkeeper.drift.model import Call, EvidenceKind
from cardkeeper.drift.outcome import observe
from cardkeeper.drift.pattern import Patterns, load_patterns
from cardkeeper.drift.summary import observation_from_summary
from cardkeeper.errors import InvalidInput

ROOT = Path(__file__).resolve().parents[3]
OWN = ROOT / "tests" / "data" / "outcomes.jsonl"
SHARED = ROOT.parent / "shared" / "corpus" / "outcomes.jsonl"
TASKS = ROOT.parent / "shared" / "corpus" / "tasks"

CARD = normalise(
    {
        "name": "Peer",
        "version": "1.0",
        "url": "https://peer.example.com/a2a",
        "protocolVersion": "0.3.0",
        "capabilities": {"streaming": True},
        "skills": [{"id": "summarize-v2", "tags": [], "inputModes": ["text/plain"], "outputModes": ["text/markdown"]}],
    }
)
CALL = Call(skill_id="summarize-v2", method="message/send")
PATTERNS = load_patterns()


def cases(path: Path) -> list[Judged]:
    return [_judge(number, line, PATTERNS) for number, line in enumerate(path.read_text().splitlines(), start=1)]


def failed(text: str) -> Any:
    return {"kind": "task", "id": "t", "status": {"state": "failed", "message": {"parts": [{"text": text}]}}}


@pytest.mark.parametrize("path", [OWN, SHARED], ids=["own", "shared"])
def test_every_labelled_outcome_is_judged_as_a_careful_reader_does(path: Path) -> None:
    if not path.exists():
        pytest.skip("the shared corpus is not here")
    wrong = {case.id: (set(case.missed), set(case.false_alarms)) for case in cases(path) if case.expected != case.found}
    assert not wrong


def test_real_tasks_are_read_without_a_crash_and_without_a_refusal_that_they_do_not_hold() -> None:
    if not TASKS.exists():
        pytest.skip("the shared corpus is not here")
    read = 0
    for path in sorted(TASKS.rglob("*.json")):
        if "recorded" in path.parts:
            continue
        found = find_evidence(CARD, CALL, observe(json.loads(path.read_text())), PATTERNS)
        assert not [item for item in found if item.kind is EvidenceKind.UNKNOWN_SKILL], path
        read += 1
    assert read


def test_evidence_quotes_its_rule_its_place_and_no_more_than_it_needs() -> None:
    text = "Unknown skill: summarize-v2. " + "x" * 5000
    (found,) = find_evidence(CARD, CALL, observe(failed(text)), PATTERNS)
    assert (found.kind, found.rule) == (EvidenceKind.UNKNOWN_SKILL, "en.skill.before")
    assert found.pointer == "/status/message/parts/0/text"
    assert found.expected == "skill 'summarize-v2' is advertised"
    assert len(found.observed) <= 200


def test_an_operator_adds_patterns_and_look_alikes() -> None:
    extra = """
        [[refusal]]
        id = "acme.e4711"
        kind = "UNKNOWN_SKILL"
        pattern = '\\bacme error e4711\\b'

        [[look_alike]]
        id = "acme.sandbox"
        pattern = '\\bsandbox\\b'
    """
    patterns = load_patterns(extra)
    (found,) = find_evidence(CARD, CALL, observe(failed("ACME error E4711")), patterns)
    assert found.rule == "acme.e4711"
    assert not find_evidence(CARD, CALL, observe(failed("unknown skill in the sandbox")), patterns)
    assert find_evidence(CARD, CALL, observe(failed("unknown skill")), patterns)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nonsense", "TOML"),
        ("[[language]]\ncode='x'", "language"),
        ("refusal = 3", "refusal"),
        ("[[refusal]]\nkind='UNKNOWN_SKILL'\npattern='x'", "id"),
        ("[[refusal]]\nid='UPPER'\nkind='UNKNOWN_SKILL'\npattern='x'", "UPPER"),
        ("[[refusal]]\nid='a.b'\nkind='NONSENSE'\npattern='x'", "UNKNOWN_SKILL"),
        ("[[refusal]]\nid='a.b'\nkind='UNKNOWN_SKILL'", "no pattern"),
        ("[[refusal]]\nid='a.b'\nkind='UNKNOWN_SKILL'\npattern='('", "regular expression"),
        ("[[refusal]]\nid='a.b'\nkind='UNKNOWN_SKILL'\npattern='(a+)+$'", "repeats a group"),
        ("[[refusal]]\nid='a.b'\nkind='UNKNOWN_SKILL'\npattern='a*b*c*d*e*f*'", "unbounded"),
        ("[[refusal]]\nid='a.b'\nkind='CAPABILITY_REFUSED'\ncapability='flying'\npattern='x'", "flying|streaming"),
        ("[[refusal]]\nid='en.skill.before'\nkind='UNKNOWN_SKILL'\npattern='x'", "already"),
        ("[[look_alike]]\nid='a'\npattern='" + "x" * 600 + "'", "characters"),
    ],
)
def test_a_wrong_pattern_file_says_which_entry_and_what_to_fix(text: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        load_patterns(text)


def test_a_hostile_text_costs_a_bounded_number_of_sentences() -> None:
    asked: list[str] = []

    class Counting(Patterns):
        def find(self, sentence: str) -> Any:
            asked.append(sentence)
            return super().find(sentence)

    counting = Counting(PATTERNS.refusals, PATTERNS.look_alikes)
    task = failed("unknown skill.\n" * 50_000)
    task["status"]["message"]["parts"] *= 1000
    find_evidence(CARD, CALL, observe(task), counting)
    assert len(asked) <= MAX_SENTENCES
    assert max(map(len, asked)) <= 400


def test_patterns_that_matched_at_a_client_without_content_are_evidence() -> None:
    observation = observation_from_summary(task_state="failed", matched_patterns=["en.skill.before", "nobody.knows"])
    assert [item.kind for item in find_evidence(CARD, CALL, observation, PATTERNS)] == [EvidenceKind.UNKNOWN_SKILL]


@pytest.mark.parametrize("state", ["input-required", "auth-required", "working", "submitted", "canceled"])
def test_only_an_agent_that_did_not_do_the_task_refuses(state: str) -> None:
    task = failed("unknown skill: summarize-v2")
    task["status"]["state"] = state
    assert not find_evidence(CARD, CALL, observe(task), PATTERNS)
