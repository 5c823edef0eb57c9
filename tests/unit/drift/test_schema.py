"""Output schemas: what is checked, what is said, and what never happens."""

import socket
import threading

import pytest

from cardkeeper.card.parse import normalise
from cardkeeper.drift.artifact import judge_artifact, read_artifact
from cardkeeper.drift.model import EvidenceKind, PartResult
from cardkeeper.drift.overlay import load_overlay
from cardkeeper.drift.schema import MAX_VIOLATIONS, violations
from cardkeeper.errors import InvalidInput

SCHEMA = '{"type": "object", "required": ["total"], "properties": {"total": {"type": "integer"}}}'
EXTENSION = "https://cardkeeper.dev/a2a/output-schemas/v1"


def card(schema: object = None) -> object:
    extensions = [{"uri": EXTENSION, "params": {"skills": {"sum": schema}}}] if schema is not None else []
    return normalise(
        {
            "name": "n",
            "version": "1",
            "url": "https://a.example",
            "capabilities": {"extensions": extensions},
            "skills": [{"id": "sum", "tags": [], "outputModes": ["application/json"]}],
        }
    )


def judged(data: str, schema: object = None, overlay: str = "") -> object:
    parts = read_artifact(f'{{"artifactId": "a", "parts": [{{"kind": "data", "data": {data}}}]}}'.encode())
    return judge_artifact(card(schema), "sum", parts, schema=overlay)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("data", "pointers"),
    [
        ('{"total": 3}', []),
        ("{}", [""]),
        ('{"total": "x"}', ["/total"]),
        ("[]", [""]),
    ],
)
def test_each_violation_has_its_pointer(data: str, pointers: list[str]) -> None:
    assert [item.pointer for item in violations(SCHEMA, data)] == pointers


def test_a_card_states_schemas_by_an_extension_and_violations_are_evidence_without_the_data() -> None:
    schema = {"type": "object", "required": ["total"]}
    good = judged('{"total": 1}', schema)
    assert (good.parts[0].result, good.parts[0].schema_checked) == (PartResult.ACCEPTED, True)  # type: ignore[attr-defined]
    bad = judged('{"secret": "hunter2"}', schema)
    assert bad.rejected  # type: ignore[attr-defined]
    (evidence,) = bad.evidence  # type: ignore[attr-defined]
    assert (evidence.kind, evidence.rule) == (EvidenceKind.ARTIFACT_TYPE, "artifact.schema")
    assert "hunter2" not in evidence.observed


def test_without_a_schema_nothing_is_said_to_be_checked() -> None:
    assert not judged("{}").parts[0].schema_checked  # type: ignore[attr-defined]


def test_an_operators_schema_goes_before_the_cards() -> None:
    assert judged("{}", schema=True, overlay=SCHEMA).rejected  # type: ignore[attr-defined]
    overlay = load_overlay('{"https://a.example/": {"sum": {"type": "array"}}, "*": {"sum": {"type": "object"}}}')
    assert overlay.schema("https://a.example", "sum") == '{"type": "array"}'
    assert overlay.schema("https://b.example", "sum") == '{"type": "object"}'
    assert overlay.schema("https://b.example", "other") == ""


@pytest.mark.parametrize("text", ["[", "[]", '{"*": []}', '{"*": {"s": 3}}', '{"*": {"s": {"type": 17}}}'])
def test_a_wrong_overlay_says_what_to_fix(text: str) -> None:
    with pytest.raises(InvalidInput):
        load_overlay(text)


@pytest.mark.parametrize(
    "schema",
    ['{"type": 17}', '{"pattern": "("}', '{"$ref": "#/nowhere"}', '{"enum": ' + str(list(range(30_000))) + "}"],
)
def test_a_schema_that_cannot_be_used_is_a_violation_and_not_valid(schema: str) -> None:
    (wrong,) = violations(schema, "{}")
    assert "cannot be used" in wrong.message


def test_a_reference_to_another_document_is_never_followed() -> None:
    asked = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.5)
        port = server.getsockname()[1]
        (wrong,) = violations(f'{{"$ref": "http://127.0.0.1:{port}/s.json"}}', "{}")
        try:
            server.accept()
            asked.set()
        except TimeoutError:
            pass
    assert not asked.is_set()
    assert "not followed" in wrong.message


def test_hostile_patterns_and_data_are_bounded() -> None:
    assert violations('{"pattern": "^(a+)+$"}', '"' + "a" * 50_000 + '!"')
    many = violations('{"items": {"type": "string"}}', str(list(range(10_000))))
    assert len(many) == MAX_VIOLATIONS
    deep = "[" * 500 + "]" * 500
    assert violations("true", deep)
