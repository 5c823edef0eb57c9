"""Judging what an agent delivered by what its card promised (design section 5). Pure.

A part's type is the one it states; a part that states none is *untyped* and is taken for what its kind implies. Whether an
untyped part may pass is the policies' business (`verdict.py`), not decided here.
"""

import mimetypes
from collections.abc import Sequence
from dataclasses import replace

from cardkeeper.card.media_type import Modes, normalise_media_type
from cardkeeper.card.model import Card
from cardkeeper.drift.document import JsonValue, child, read_json
from cardkeeper.drift.model import (
    ArtifactJudgement,
    Evidence,
    EvidenceKind,
    Part,
    PartJudgement,
    PartKind,
    PartResult,
)
from cardkeeper.drift.outcome import observe
from cardkeeper.drift.parts import MAX_PARTS, read_part
from cardkeeper.drift.schema import violations
from cardkeeper.errors import DocumentUnreadable

MAX_EVIDENCE = 32
"""Pieces of evidence of one artifact: a thousand parts of one wrong type say no more."""
_SHOWN = 200

_IMPLIED = {PartKind.TEXT: "text/plain", PartKind.DATA: "application/json"}
# One table for every machine: the system's own may know more, or other, types.
_BY_NAME = mimetypes.MimeTypes(filenames=())
_BY_NAME.add_type("text/markdown", ".md")
_BY_NAME.add_type("application/yaml", ".yaml")
_BY_NAME.add_type("application/yaml", ".yml")


def read_artifact(document: bytes) -> tuple[Part, ...]:
    """Return the parts of an artifact, in any form in which agents deliver one.

    An Artifact, an artifact event or chunk, a Message in its place, a Task or a response that holds artifacts, one part, or a
    list of any of them; none where it is empty. Raises DocumentUnreadable for anything else.
    """
    value = read_json(document)
    parts = _bare_parts(value)
    if parts is not None:
        return parts
    try:
        observation = observe(value)
    except DocumentUnreadable as error:
        raise DocumentUnreadable(
            "the document is no artifact that A2A knows: an Artifact, an artifact event, a Message, a Task, a JSON-RPC "
            f"response, or parts ({error})"
        ) from error
    if observation.faults:
        raise DocumentUnreadable("the document is an error, no artifact; report it as an outcome")
    return (*observation.parts, *observation.message_parts)


def _bare_parts(value: JsonValue) -> tuple[Part, ...] | None:
    """One part, or a list of parts; None where it is neither."""
    if isinstance(value, list):
        if len(value) > MAX_PARTS:
            raise DocumentUnreadable(f"{len(value)} parts; at most {MAX_PARTS} are read")
        found = [_bare_part(item, child("", index)) for index, item in enumerate(value)]
        parts = tuple(part for part in found if part is not None)
        return parts if len(parts) == len(value) else None
    part = _bare_part(value, "")
    return None if part is None else (part,)


def _bare_part(value: JsonValue, pointer: str) -> Part | None:
    if not isinstance(value, dict) or any(
        key in value for key in ("parts", "artifact", "artifacts", "status", "jsonrpc")
    ):
        return None
    return read_part(value, pointer)


def judge_artifact(card: Card, skill_id: str, parts: Sequence[Part], *, schema: str = "") -> ArtifactJudgement:
    """Judge parts against the skill of a snapshot. Where several skills share the id, what any of them offers is offered.

    `schema` is an operator's output schema for the skill, which goes before the card's own.
    """
    skills = [skill for skill in card.skills if skill.id == skill_id]
    if not skills:
        missing = Evidence(
            kind=EvidenceKind.SKILL_NOT_ADVERTISED,
            rule="artifact.skill_not_advertised",
            expected="a skill of the card",
            observed=f"an artifact of {skill_id!r}, which the card does not advertise"[:_SHOWN],
        )
        undeclared = tuple(_judgement(part, PartResult.UNDECLARED) for part in parts)
        return ArtifactJudgement(parts=undeclared, evidence=(missing,) if parts else (), skill=None)
    offered = tuple(mode for skill in skills for mode in skill.output_modes)
    declared = all(skill.output_modes for skill in skills)
    schema = schema or skills[0].output_schema
    modes = Modes(offered if declared else ())
    judged = tuple(_judge(part, modes, schema) for part in parts)
    evidence = [
        found for part, judgement in zip(parts, judged, strict=True) if (found := _evidence(part, judgement, offered))
    ]
    return ArtifactJudgement(parts=judged, evidence=tuple(evidence[:MAX_EVIDENCE]), skill=skills[0])


def implied_type(part: Part) -> str:
    """The media type of a part: stated, or what its kind and file name imply."""
    if part.media_type:
        return part.media_type
    if part.kind is PartKind.FILE:
        return _BY_NAME.guess_type(part.file_name[-255:], strict=False)[0] or "application/octet-stream"
    return _IMPLIED[part.kind]


def _judge(part: Part, offered: Modes, schema: str) -> PartJudgement:
    checked = bool(schema and part.data)
    wrong = violations(schema, part.data) if checked else ()
    if wrong:
        result = PartResult.REJECTED
    elif not offered:
        result = PartResult.UNDECLARED
    elif offered.cover(implied_type(part)):
        result = PartResult.ACCEPTED
    else:
        result = PartResult.REJECTED if part.media_type else PartResult.UNTYPED
    return replace(_judgement(part, result), violations=wrong, schema_checked=checked)


def _judgement(part: Part, result: PartResult) -> PartJudgement:
    shown = normalise_media_type(implied_type(part))[:_SHOWN]
    return PartJudgement(pointer=part.pointer, media_type=shown, result=result)


def _evidence(part: Part, judgement: PartJudgement, offered: Sequence[str]) -> Evidence | None:
    if judgement.result not in (PartResult.REJECTED, PartResult.UNTYPED):
        return None
    if judgement.violations:
        # Where, not what: messages of violations quote the data, and evidence is kept.
        places = ", ".join(dict.fromkeys(violation.pointer or "/" for violation in judgement.violations))
        return Evidence(
            kind=EvidenceKind.ARTIFACT_TYPE,
            rule="artifact.schema",
            expected="data that satisfies the skill's output schema",
            observed=f"data that violates it at {places}"[:_SHOWN],
            pointer=part.pointer,
        )
    untyped = judgement.result is PartResult.UNTYPED
    said = "states no type and is taken for" if untyped else "states"
    return Evidence(
        kind=EvidenceKind.ARTIFACT_TYPE,
        rule="artifact.untyped" if untyped else "artifact.type",
        expected=", ".join(dict.fromkeys(offered[:_SHOWN]))[:_SHOWN],
        observed=f"a {part.kind.value} part that {said} {judgement.media_type}"[:_SHOWN],
        pointer=part.pointer,
        untyped=untyped,
    )
