"""Output JSON Schemas: data parts against what a skill says that it delivers (JSON Schema 2020-12). Pure, and bounded.

The engine is jsonschema-rs: linear regular expressions, and no network, because its retriever refuses.
"""

import json
from functools import lru_cache
from typing import NoReturn

import jsonschema_rs

from cardkeeper.drift.document import read_json
from cardkeeper.drift.model import Violation
from cardkeeper.errors import DocumentUnreadable

MAX_SCHEMA = 64 * 1024
"""Bytes of a schema."""
MAX_VIOLATIONS = 20
_SHOWN = 200


def violations(schema: str, data: str) -> tuple[Violation, ...]:
    """Return what is wrong with the JSON text `data` by the JSON text `schema`, at most 20.

    A schema that cannot be used (too large, broken, or with a reference to another document) is itself a violation: "not
    checked" must never read as "valid".
    """
    try:
        validator = _compiled(schema)
    except (ValueError, DocumentUnreadable) as error:
        return (Violation(pointer="", message=f"the skill's output schema cannot be used: {_short(str(error))}"),)
    try:
        instance = read_json(data.encode())
    except DocumentUnreadable as error:
        return (Violation(pointer="", message=_short(error.message)),)
    found = []
    for wrong in validator.iter_errors(instance):
        pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in wrong.instance_path)
        found.append(Violation(pointer=pointer, message=_short(wrong.message)))
        if len(found) == MAX_VIOLATIONS:
            break
    return tuple(found)


def check_schema(schema: str) -> None:
    """Raise ValueError that says why a schema cannot be used."""
    _compiled(schema)


@lru_cache(maxsize=256)
def _compiled(schema: str) -> jsonschema_rs.Draft202012Validator:
    if len(schema) > MAX_SCHEMA:
        raise ValueError(f"it has {len(schema)} characters; at most {MAX_SCHEMA} are used")
    return jsonschema_rs.Draft202012Validator(
        json.loads(schema),
        retriever=_refuse,
        pattern_options=jsonschema_rs.RegexOptions(),
        validate_formats=False,
    )


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"references to other documents are not followed: {uri[:100]}")


def _short(text: str) -> str:
    """The first line: the rest repeats the data."""
    line = text.partition("\n")[0]
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
