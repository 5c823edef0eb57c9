"""Skills of a document, with their effective modes (a2a-facts 2.3 and 2.5). Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from cardkeeper.card.canonical import digest
from cardkeeper.card.fingerprint import fingerprint_of, stated_id
from cardkeeper.card.media_type import parse_media_type
from cardkeeper.card.members import Members
from cardkeeper.card.model import Skill
from cardkeeper.card.remarks import shown


def read_skills(card: Members, schemas: Mapping[str, str]) -> tuple[Skill, ...]:
    """Return the skills in the card's order, duplicates kept; `schemas` holds output schemas by skill id."""
    defaults = _modes(card, "defaultInputModes"), _modes(card, "defaultOutputModes")
    skills = tuple(
        replace(skill, fingerprint=fingerprint_of(skill), output_schema=schemas.get(skill.id, ""))
        for skill in _skills(card, defaults)
    )
    if not skills and card.value("skills") is not None:
        card.remarks.warn("skills.empty", card.at("skills"), "the card advertises no skill: nothing can be negotiated")
    for skill_id, count in Counter(skill.id for skill in skills).items():
        if count > 1 and skill_id:
            card.remarks.warn("skill.id.duplicate", card.at("skills"), f"{count} skills have the id {shown(skill_id)}")
    return skills


def _skills(card: Members, defaults: tuple[tuple[str, ...], tuple[str, ...]]) -> Iterator[Skill]:
    for pointer, item in card.items("skills"):
        if isinstance(item, str):
            card.remarks.repair("skill.bare_string", pointer, f"{shown(item)} is read as a skill of that id")
            yield _described(Skill(id=item, name=item, input_modes=defaults[0], output_modes=defaults[1]))
        elif isinstance(item, Mapping):
            yield _skill(Members(item, pointer, card.remarks), defaults)
        else:
            card.remarks.repair("skill.not_an_object", pointer, f"{shown(item)} is dropped, a skill is an object")


def _skill(found: Members, defaults: tuple[tuple[str, ...], tuple[str, ...]]) -> Skill:
    inputs, outputs = _modes(found, "inputModes"), _modes(found, "outputModes")
    skill = Skill(
        id=_id(found),
        name=found.text("name"),
        description=found.text("description"),
        tags=found.texts("tags"),
        examples=found.texts("examples"),
        input_modes=inputs or defaults[0],
        output_modes=outputs or defaults[1],
    )
    if not (skill.input_modes and skill.output_modes):
        found.remarks.note(
            "skill.modes.undeclared",
            found.pointer,
            "neither the skill nor the card states its modes: nothing is promised",
        )
    return _described(skill)


def _id(found: Members) -> str:
    value = found.value("id")
    skill_id = stated_id(value)
    if isinstance(value, int) and skill_id:
        found.remarks.repair("skill.id.number", found.at("id"), f"the id is read as the text {shown(skill_id)}")
    elif not skill_id:
        found.remarks.warn("skill.id.missing", found.at("id"), "a skill without an id cannot be asked for; give it one")
    return skill_id


def _modes(holder: Members, key: str) -> tuple[str, ...]:
    modes = holder.texts(key)
    for mode in modes:
        if not parse_media_type(mode).is_valid:
            holder.remarks.note("mode.not_a_media_type", holder.at(key), f"{shown(mode)} is no media type (RFC 6838)")
    return modes


def _described(skill: Skill) -> Skill:
    words = [skill.name, skill.description, sorted(skill.tags), list(skill.examples)]
    return replace(skill, description_digest=digest(words))
