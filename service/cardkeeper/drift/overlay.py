"""An operator's output schemas, for agents whose cards state none. Pure.

A JSON object: agent URL, or "*" for all, to skill id, to a JSON Schema (2020-12).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from cardkeeper.drift.schema import check_schema
from cardkeeper.errors import InvalidInput

EVERY_AGENT = "*"


@dataclass(frozen=True, slots=True)
class Overlay:
    """Schemas by agent URL and skill id."""

    _schemas: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def schema(self, agent_url: str, skill_id: str) -> str:
        """Return the JSON text of the schema for an agent's skill; empty where there is none."""
        return self._schemas.get((agent_url, skill_id)) or self._schemas.get((EVERY_AGENT, skill_id), "")


def load_overlay(text: str | None) -> Overlay:
    """Read an operator's file. Raises InvalidInput that names the entry and says what to fix."""
    if text is None:
        return Overlay()
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the file of output schemas is no JSON: {error}") from error
    schemas: dict[tuple[str, str], str] = {}
    for agent_url, skills in _object(document, "the file").items():
        for skill_id, schema in _object(skills, agent_url).items():
            where = f"the output schema of {skill_id!r} at {agent_url}"
            if not isinstance(schema, dict | bool):
                raise InvalidInput(f"{where} is no JSON Schema: it must be an object or a boolean")
            stated = json.dumps(schema, sort_keys=True)
            try:
                check_schema(stated)
            except ValueError as error:
                raise InvalidInput(f"{where} cannot be used: {error}") from error
            schemas[agent_url.rstrip("/"), skill_id] = stated
    return Overlay(schemas)


def _object(value: object, where: str) -> dict[str, object]:
    if not isinstance(value, dict):
        raise InvalidInput(f"{where} must hold an object: agent URLs (or *) to skill ids to schemas")
    return value
