"""Whether a card serves a need. Pure: a resolution, or the typed refusal that says what is offered instead."""

from collections.abc import Sequence
from dataclasses import dataclass

from cardkeeper.card.media_type import Modes
from cardkeeper.card.model import Card, Interface, Skill
from cardkeeper.drift.near import near_ids
from cardkeeper.errors import NotOffered, SkillNotAdvertised

NOWHERE = Interface(url="", binding="", protocol_version="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What a caller needs of a skill. Every field narrows; an empty one does not."""

    skill_id: str
    input_modes: tuple[str, ...] = ()
    """The skill must take each of them."""
    output_modes: tuple[str, ...] = ()
    """The skill must offer at least one of them."""
    streaming: bool = False
    push_notifications: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a card offers for a need."""

    skill: Skill
    interface: Interface


def negotiate(card: Card, need: Need, agent: str) -> Offer:
    """Return what the card offers for the need; `agent` is the resource name for messages.

    Where several skills share the id, the first that serves the need is taken. A skill without modes promised nothing, and so
    refuses nothing. Raises SkillNotAdvertised or NotOffered.
    """
    named = [skill for skill in card.skills if skill.id == need.skill_id]
    if not named:
        ids = list(dict.fromkeys(skill.id for skill in card.skills))
        raise SkillNotAdvertised(
            f"{agent} does not advertise skill {need.skill_id!r}; it advertises {_listed(ids)}",
            near=near_ids(need.skill_id, ids),
            advertised=ids,
            agent=agent,
            skill_id=need.skill_id,
        )
    _check_capabilities(card, need, agent)
    interface = card.interfaces[0] if card.interfaces else NOWHERE
    refusal: NotOffered | None = None
    for skill in named:
        refusal = _mode_refusal(skill, need, agent)
        if refusal is None:
            return Offer(skill=skill, interface=interface)
    assert refusal is not None  # noqa: S101 - named is not empty
    raise refusal


def serves(card: Card, need: Need) -> bool:
    """Whether the card offers what is needed."""
    return any(admits(card, skill, need) for skill in card.skills if skill.id == need.skill_id)


def admits(card: Card, skill: Skill, need: Need) -> bool:
    """Whether one skill of the card offers what is needed of a skill."""
    capable = (card.streaming or not need.streaming) and (card.push_notifications or not need.push_notifications)
    return capable and _refused_mode(skill, need) is None


def _check_capabilities(card: Card, need: Need, agent: str) -> None:
    for wanted, offered, name in (
        (need.streaming, card.streaming, "streaming"),
        (need.push_notifications, card.push_notifications, "push_notifications"),
    ):
        if wanted and not offered:
            raise NotOffered(f"{agent} does not offer {name}", reason="CAPABILITY_ABSENT", agent=agent, capability=name)


def _mode_refusal(skill: Skill, need: Need, agent: str) -> NotOffered | None:
    refused = _refused_mode(skill, need)
    if refused is None:
        return None
    direction, mode = refused
    offered = skill.input_modes if direction == "input" else skill.output_modes
    return _not_offered(agent, skill.id, direction, mode, offered)


def _refused_mode(skill: Skill, need: Need) -> tuple[str, str] | None:
    """The direction and the mode that the skill does not offer; None: it serves the need."""
    if skill.input_modes and need.input_modes:
        taken = Modes(skill.input_modes)
        for mode in need.input_modes:
            if not taken.cover(mode):
                return "input", mode
    if skill.output_modes and need.output_modes and not _overlap(skill.output_modes, need.output_modes):
        return "output", ", ".join(need.output_modes)
    return None


def _overlap(offered: Sequence[str], wanted: Sequence[str]) -> bool:
    """Either side may use a wildcard: a caller may accept `image/*`."""
    given, accepted = Modes(offered), Modes(wanted)
    return any(given.cover(want) for want in wanted) or any(accepted.cover(offer) for offer in offered)


def _not_offered(agent: str, skill_id: str, direction: str, mode: str, offered: Sequence[str]) -> NotOffered:
    verb = "take" if direction == "input" else "give"
    return NotOffered(
        f"skill {skill_id!r} of {agent} does not {verb} {mode}; it offers {_listed(offered)}",
        offered=offered,
        agent=agent,
        skill_id=skill_id,
        direction=direction,
        mode=mode,
    )


def _listed(items: Sequence[str]) -> str:
    shown = ", ".join(items[:8]) or "none"
    return f"{shown} and {len(items) - 8} more" if len(items) > 8 else shown
