"""The skill fingerprint: SHA-256 over the negotiation surface (design section 4).

The surface is the set of skills with their effective modes, and two capability flags, as JSON with sorted keys, no
spaces and `\\uXXXX` escapes. It is joined from strings here: several times the speed of a JSON encoder, and the form is
small enough to be read off the code. `fingerprint_document` reads a document directly; it agrees with what
`normalise` finds for every JSON object (a property test holds the two together).
"""

import hashlib
from collections.abc import Iterable, Mapping
from json.encoder import encode_basestring_ascii as escape

from cardkeeper.card.members import member
from cardkeeper.card.model import Card, Skill

Entry = tuple[str, list[str], list[str], str]
"""Id, sorted input modes, sorted output modes, and their JSON text. Ordered as the surface orders skills."""


def canonical_surface(card: Card) -> str:
    """The negotiation surface of a card as canonical JSON."""
    entries = sorted(_entry(skill) for skill in card.skills)
    return _surface((entry[3] for entry in entries), card.streaming, card.push_notifications)


def canonical_skill(skill: Skill) -> str:
    """The entry of one skill in the surface, as canonical JSON."""
    return _entry(skill)[3]


def skill_fingerprint(card: Card) -> str:
    """Hex SHA-256 of the negotiation surface of a card."""
    return _sha256(canonical_surface(card))


def fingerprint_of(skill: Skill) -> str:
    """Hex SHA-256 of one skill's entry: does not move when another skill changes."""
    return _sha256(canonical_skill(skill))


def fingerprint_document(document: Mapping[str, object]) -> str:
    """Hex SHA-256 of the negotiation surface of any JSON object, without findings: the fast path."""
    return _sha256(canonical_document(document))


def canonical_document(document: Mapping[str, object]) -> str:
    """The negotiation surface of any JSON object as canonical JSON."""
    skills = document.get("skills")
    entries: list[Entry] = []
    if isinstance(skills, list):
        default_inputs = _modes(member(document, "defaultInputModes"))
        default_outputs = _modes(member(document, "defaultOutputModes"))
        for skill in skills:
            if isinstance(skill, dict):
                skill_id = stated_id(skill.get("id"))
                inputs = _modes(member(skill, "inputModes")) or default_inputs
                outputs = _modes(member(skill, "outputModes")) or default_outputs
            elif isinstance(skill, str):
                skill_id, inputs, outputs = skill, default_inputs, default_outputs
            else:
                continue
            entries.append((skill_id, inputs, outputs, _entry_json(skill_id, inputs, outputs)))
        entries.sort()
    capabilities = document.get("capabilities")
    streaming = push = False
    if isinstance(capabilities, dict):
        streaming = capabilities.get("streaming") is True
        push = member(capabilities, "pushNotifications") is True
    return _surface((entry[3] for entry in entries), streaming, push)


def stated_id(value: object) -> str:
    """A skill's id as text: an integer by its digits, nothing else but a string counts."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else ""


def _entry(skill: Skill) -> Entry:
    inputs, outputs = sorted(skill.input_modes), sorted(skill.output_modes)
    return skill.id, inputs, outputs, _entry_json(skill.id, inputs, outputs)


def _modes(value: object) -> list[str]:
    if isinstance(value, list):
        return sorted([mode for mode in value if isinstance(mode, str)])
    return [value] if isinstance(value, str) else []


def _entry_json(skill_id: str, inputs: list[str], outputs: list[str]) -> str:
    return (
        f'{{"id":{escape(skill_id)},"inputModes":[{",".join(map(escape, inputs))}],'
        f'"outputModes":[{",".join(map(escape, outputs))}]}}'
    )


def _surface(entries: Iterable[str], streaming: bool, push: bool) -> str:
    return (
        f'{{"pushNotifications":{"true" if push else "false"},"skills":[{",".join(entries)}],'
        f'"streaming":{"true" if streaming else "false"}}}'
    )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()
