r"""The skill fingerprint: SHA-256 over the negotiation surface (design section 4).

The surface is the set of skills with their effective modes, and two capability flags, as JSON with sorted keys, no
spaces and `\uXXXX` escapes. It is joined from strings here: several times the speed of a JSON encoder, and the form is
small enough to be read off the code. `fingerprint_document` reads a document directly; it agrees with what
`normalise` finds for every JSON object (a property test holds the two together).
"""

import hashlib
from collections.abc import Iterable, Mapping
from json.encoder import encode_basestring_ascii as escape

from cardkeeper.card.members import member
from cardkeeper.card.model import Card, Skill

Modes = tuple[list[str], str]
"""Sorted modes, and their JSON text without brackets."""
Entry = tuple[str, list[str], list[str], str]
"""Id, sorted input modes, sorted output modes, and their JSON text. Ordered as the surface orders skills."""


class _ModeTexts(dict[tuple[object, ...], Modes]):
    """Modes by their list as written: a fleet writes the same few lists again and again.

    Bounded: only short lists are kept, and no more of them than `MOST`.
    """

    MOST = 4096
    LONGEST = 256

    def __missing__(self, written: tuple[object, ...]) -> Modes:
        modes = _read_modes(written)
        if len(modes[1]) <= self.LONGEST and len(written) <= self.LONGEST and len(self) < self.MOST:
            self[written] = modes
        return modes


_texts = _ModeTexts()
_NO_MODES: Modes = ([], "")


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
        default_inputs = _modes(document, "defaultInputModes", "default_input_modes", _NO_MODES)
        default_outputs = _modes(document, "defaultOutputModes", "default_output_modes", _NO_MODES)
        for skill in skills:
            if isinstance(skill, dict):
                inputs = _modes(skill, "inputModes", "input_modes", default_inputs)
                outputs = _modes(skill, "outputModes", "output_modes", default_outputs)
                entries.append(_entry_of(stated_id(skill.get("id")), inputs, outputs))
            elif isinstance(skill, str):
                entries.append(_entry_of(skill, default_inputs, default_outputs))
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
    return _entry_of(skill.id, _texts[skill.input_modes], _texts[skill.output_modes])


def _entry_of(skill_id: str, inputs: Modes, outputs: Modes) -> Entry:
    text = f'{{"id":{escape(skill_id)},"inputModes":[{inputs[1]}],"outputModes":[{outputs[1]}]}}'
    return skill_id, inputs[0], outputs[0], text


def _modes(mapping: Mapping[str, object], key: str, snake: str, default: Modes) -> Modes:
    """Modes under a key in either spelling; the default where none are stated."""
    value = mapping.get(key)
    if value is None:
        value = mapping.get(snake)
        if value is None:
            return default
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        return default
    written = tuple(value)
    try:
        modes = _texts[written]
    except TypeError:  # a list or an object among them cannot be looked up
        modes = _read_modes(written)
    return modes if modes[0] else default


def _read_modes(written: Iterable[object]) -> Modes:
    modes = sorted([mode for mode in written if isinstance(mode, str)])
    return modes, ",".join(map(escape, modes))


def _surface(entries: Iterable[str], streaming: bool, push: bool) -> str:
    return (
        f'{{"pushNotifications":{"true" if push else "false"},"skills":[{",".join(entries)}],'
        f'"streaming":{"true" if streaming else "false"}}}'
    )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()
