"""FindSkills: which skills of the fleet answer a question, best first. Pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from cardkeeper.card.model import Skill
from cardkeeper.fleet.agent_state import AgentState
from cardkeeper.fleet.negotiation import Need, serves

WORD = re.compile(r"\w+")

WEIGHTS = (
    ("id.exact", 100.0),
    ("id.prefix", 40.0),
    ("id.word", 20.0),
    ("name", 12.0),
    ("tag", 8.0),
    ("description", 3.0),
    ("example", 2.0),
)
"""Reason and weight, strongest first."""


ANY = Need(skill_id="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Free text ranks; everything else filters."""

    text: str = ""
    need: Need = ANY
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One skill that answers the question."""

    state: AgentState
    skill: Skill
    need: Need
    """The question's need, of this skill."""
    score: float
    reasons: tuple[str, ...]


def find_skills(agents: Iterable[AgentState], question: Question) -> list[Hit]:
    """Return all hits, best first; ties by agent id and skill id, so that pages are stable."""
    words = tuple(dict.fromkeys(word.casefold() for word in WORD.findall(question.text)))
    hits = [
        hit
        for state in agents
        if state.card is not None and state.record.suspicion is None
        for skill in {skill.id: skill for skill in reversed(state.card.skills)}.values()
        if (hit := _hit(state, skill, question, words)) is not None
    ]
    hits.sort(key=lambda hit: (-hit.score, hit.state.record.id, hit.skill.id))
    return hits


def _hit(state: AgentState, skill: Skill, question: Question, words: tuple[str, ...]) -> Hit | None:
    need = question.need
    if need.skill_id and need.skill_id != skill.id:
        return None
    if not set(question.tags) <= set(skill.tags):
        return None
    wanted = Need(
        skill_id=skill.id,
        input_modes=need.input_modes,
        output_modes=need.output_modes,
        streaming=need.streaming,
        push_notifications=need.push_notifications,
    )
    if state.card is None or not serves(state.card, wanted):
        return None
    reasons = _reasons(skill, question.text.strip().casefold(), words)
    if need.skill_id:
        reasons.setdefault("id.exact", 1.0)
    if words and not reasons:
        return None
    weights = dict(WEIGHTS)
    score = sum(weights[reason] * share for reason, share in reasons.items())
    return Hit(
        state=state,
        skill=skill,
        need=wanted,
        score=score,
        reasons=tuple(name for name, _ in WEIGHTS if name in reasons),
    )


def _reasons(skill: Skill, text: str, words: tuple[str, ...]) -> dict[str, float]:
    """Each reason with the share of the words that it explains."""
    if not words:
        return {}
    reasons: dict[str, float] = {}
    skill_id = skill.id.casefold()
    if text == skill_id:
        reasons["id.exact"] = 1.0
    elif skill_id.startswith(text):
        reasons["id.prefix"] = 1.0
    for reason, content in (
        ("id.word", skill_id.replace("_", " ")),
        ("name", skill.name),
        ("tag", " ".join(skill.tags)),
        ("description", skill.description),
        ("example", " ".join(skill.examples)),
    ):
        found = {word.casefold() for word in WORD.findall(content)}
        share = len(found.intersection(words)) / len(words)
        if share:
            reasons[reason] = share
    return reasons
