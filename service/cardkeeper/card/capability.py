"""What an agent can do beside its skills: flags, extensions, and the output schemas that one of them states. Pure."""

import json
from collections.abc import Mapping

from cardkeeper.card.members import Members
from cardkeeper.card.model import Extension

OUTPUT_SCHEMAS = "https://cardkeeper.dev/a2a/output-schemas/v1"
"""Extension whose `params.skills` maps skill ids to the JSON Schema (2020-12) of their data parts: no A2A version has a
field for it (a2a-facts 9, A2A #1219)."""

MAX_EXTENSIONS = 256


def read_extensions(capabilities: Members) -> tuple[Extension, ...]:
    """Return the extensions, in order, each URI once."""
    found: dict[str, Extension] = {}
    for item in capabilities.objects("extensions"):
        uri = item.text("uri").strip()
        if not uri:
            item.remarks.warn("extension.uri.missing", item.at("uri"), "an extension without a URI is ignored")
        elif len(found) < MAX_EXTENSIONS:
            found.setdefault(uri, Extension(uri=uri, required=item.flag("required")))
    return tuple(found.values())


def read_output_schemas(capabilities: Members) -> dict[str, str]:
    """Return the JSON texts of output schemas by skill id."""
    schemas: dict[str, str] = {}
    for item in capabilities.objects("extensions"):
        if item.text("uri").strip() != OUTPUT_SCHEMAS:
            continue
        stated = item.child("params").child("skills")
        for skill_id, schema in stated.mapping.items():
            if isinstance(schema, Mapping | bool):
                schemas.setdefault(skill_id, json.dumps(schema, sort_keys=True))
            else:
                item.remarks.warn("schema.not_a_schema", stated.at(skill_id), "a JSON Schema is an object or a boolean")
    return schemas
