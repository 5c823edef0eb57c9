"""The texts in which an agent says what went wrong: in parts, in metadata, in error details."""

from collections.abc import Iterator, Mapping

from cardkeeper.drift.document import JsonValue, child
from cardkeeper.drift.parts import part_items, part_text, text_member

MAX_TEXT = 4096
"""Characters of one text that are looked at: a refusal comes early."""

MAX_TEXTS = 32
"""Texts of one object that are looked at."""

SKILL_KEYS = ("skill", "skillId", "skill_id", "skillID", "skillName", "skill_name", "requestedSkill", "requested_skill")
"""Members by which agents name a skill (a2a-facts 4.6: no standard one exists)."""

_SPOKEN = frozenset(
    [
        "error",
        "errors",
        "message",
        "msg",
        "detail",
        "details",
        "reason",
        "description",
        "title",
        "code",
        "cause",
        "text",
        "errormessage",
        "error_message",
        "errorcode",
        "error_code",
        "errortype",
        "error_type",
        "hint",
        "type",
        "statusmessage",
        "status_message",
        "explanation",
        "info",
        "summary",
        "exception",
        "data",
        "fieldviolations",
        "field_violations",
        "violations",
        "metadata",
    ]
)
"""Members that hold an agent's words; all others may repeat what the caller sent."""


def spoken(value: JsonValue, pointer: str) -> Iterator[tuple[str, str]]:
    """Yield (text, pointer) of what a JSON value says; a skill named beside a text is put after it ("text: skill")."""
    for count, found in enumerate(_spoken(value, pointer, ""), start=1):
        yield found
        if count == MAX_TEXTS:
            return


def _spoken(value: JsonValue, pointer: str, skill: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        text = value[:MAX_TEXT].strip()
        if text:
            yield (f"{text}: {skill}" if skill and skill not in text else text, pointer)
    elif isinstance(value, list):
        for index, item in enumerate(value[:MAX_TEXTS]):
            yield from _spoken(item, child(pointer, index), skill)
    elif isinstance(value, dict):
        skill = text_member(value, *SKILL_KEYS)[:256] or skill
        for key, item in value.items():
            if key.lower() in _SPOKEN:
                yield from _spoken(item, child(pointer, key), skill)


def said_in_message(message: JsonValue, pointer: str) -> Iterator[tuple[str, str]]:
    """Yield (text, pointer) of what a Message says: text parts, data parts, metadata; a bare string is tolerated."""
    if isinstance(message, str):
        yield message[:MAX_TEXT], pointer
    elif isinstance(message, dict):
        yield from _said_in_parts(message, pointer)
        yield from spoken(message.get("metadata"), child(pointer, "metadata"))


def _said_in_parts(message: Mapping[str, JsonValue], pointer: str) -> Iterator[tuple[str, str]]:
    items = list(part_items(message, pointer))[:MAX_TEXTS]
    if not items and isinstance(text := message.get("text"), str):
        yield text[:MAX_TEXT], child(pointer, "text")
    for raw, where in items:
        if text := part_text(raw):
            yield text[:MAX_TEXT], child(where, "text") if isinstance(raw, dict) else where
        elif isinstance(raw, dict):
            yield from spoken(raw.get("data"), child(where, "data"))
