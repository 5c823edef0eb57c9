"""Any bytes and any JSON value whatever as an outcome or an artifact: a value or a typed refusal, never a crash."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cardkeeper.card.parse import normalise
from cardkeeper.drift.artifact import judge_artifact, read_artifact
from cardkeeper.drift.evidence import find_evidence
from cardkeeper.drift.model import Binding, Call, PartResult
from cardkeeper.drift.outcome import read_outcome
from cardkeeper.drift.pattern import load_patterns
from cardkeeper.errors import DocumentUnreadable

PATTERNS = load_patterns()
CARD = normalise(
    {
        "name": "n",
        "version": "1",
        "url": "https://a.example",
        "capabilities": {"streaming": True, "pushNotifications": True},
        "skills": [
            {"id": "s-1", "tags": [], "inputModes": ["text/plain"], "outputModes": ["text/markdown", "image/*"]},
            {"id": "bare", "tags": []},
        ],
    }
)
# Keys and words that mean something to the readers, so that generated values reach their depths.
KEYS = st.sampled_from(
    [
        "jsonrpc",
        "result",
        "error",
        "code",
        "message",
        "data",
        "details",
        "status",
        "state",
        "parts",
        "kind",
        "type",
        "text",
        "file",
        "url",
        "raw",
        "artifact",
        "artifacts",
        "history",
        "role",
        "task",
        "statusUpdate",
        "artifactUpdate",
        "metadata",
        "mimeType",
        "mediaType",
        "name",
        "field",
        "skillId",
        "fieldViolations",
        "reason",
        "append",
        "lastChunk",
        "content",
        "@type",
        "title",
        "detail",
        "final",
        "bytes",
        "id",
    ]
)
WORDS = st.sampled_from(
    ("failed", "TASK_STATE_FAILED", "completed", "unknown skill", "skill s-1 not found", "text", "file", "data", "2.0")
) | st.sampled_from(
    ("", "text/plain", "text/markdown", "*/*", "agent", "user", "UNKNOWN_SKILL", "\ue000", "技能不存在")
)
LEAVES = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES | WORDS | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=5), inner, max_size=6),
    max_leaves=25,
)
CALLS = st.builds(
    Call,
    skill_id=st.sampled_from(["s-1", "bare", "nobody", ""]),
    method=st.sampled_from(["", "message/send", "message/stream", "SendMessage", "s-1"]),
    input_modes=st.sampled_from([(), ("text/plain",), ("image/png",)]),
    accepted_output_modes=st.sampled_from([(), ("text/markdown",), ("nonsense",)]),
    streaming=st.booleans(),
    protocol_version=st.sampled_from(["", "0.3", "1.0", "x"]),
)


@given(VALUES, CALLS, st.sampled_from([None, 200, 404, 410, 415, 500]), st.sampled_from([None, 0, 5, 12]))
@settings(max_examples=300, deadline=None)
def test_any_json_value_is_read_or_refused(value: Any, call: Call, status: int | None, grpc_code: int | None) -> None:
    document = json.dumps(value).encode()
    try:
        observation = read_outcome(document, binding=Binding.UNKNOWN, http_status=status, grpc_code=grpc_code)
    except DocumentUnreadable as error:
        error.message.encode()
        return
    for item in find_evidence(CARD, call, observation, PATTERNS):
        assert len(item.observed) <= 200
        assert item.pointer == "" or item.pointer.startswith("/")
        item.observed.encode()  # no half surrogate pairs: it goes on the wire


@given(st.binary(max_size=300), st.sampled_from([None, 404]))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_or_refused(document: bytes, status: int | None) -> None:
    try:
        find_evidence(CARD, Call(skill_id="s-1"), read_outcome(document, http_status=status), PATTERNS)
    except DocumentUnreadable as error:
        error.message.encode()


@given(VALUES, st.sampled_from(["s-1", "bare", "nobody"]))
@settings(max_examples=300, deadline=None)
def test_any_json_value_is_an_artifact_or_none(value: Any, skill_id: str) -> None:
    try:
        parts = read_artifact(json.dumps(value).encode())
    except DocumentUnreadable as error:
        error.message.encode()
        return
    judgement = judge_artifact(CARD, skill_id, parts)
    assert len(judgement.parts) == len(parts)
    if skill_id == "bare":
        assert all(part.result is PartResult.UNDECLARED for part in judgement.parts)
