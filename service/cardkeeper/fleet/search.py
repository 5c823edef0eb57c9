"""FindSkills: which skills of the fleet answer a question, best first. Pure."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from cardkeeper.card.model import Card, Skill
from cardkeeper.fleet.agent_state import AgentState
from cardkeeper.fleet.negotiation import Need, admits

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
_WEIGHT = dict(WEIGHTS)


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


@dataclass(frozen=True, slots=True)
class _Entry:
    """A skill with the words that it is found by."""

    skill: Skill
    words: tuple[tuple[str, frozenset[str]], ...]
    """By reason, in the order of WEIGHTS."""


_entries: "WeakKeyDictionary[AgentState, tuple[_Entry, ...]]" = WeakKeyDictionary()
"""Made once for each state of an agent, and forgotten with it."""


def find_skills(agents: Iterable[AgentState], question: Question) -> list[Hit]:
    """Return all hits, best first; ties by agent id and skill id, so that pages are stable.

    Reads immutable states only, so that it may run beside the event loop.
    """
    text = question.text.strip().casefold()
    words = frozenset(_words(question.text))
    found: dict[tuple[str, str], Hit] = {}
    for state in agents:
        card = state.card
        if card is None or state.record.suspicion is not None:
            continue
        for entry in _indexed(state, card):
            key = (state.record.id, entry.skill.id)
            if key not in found and (hit := _hit(state, card, entry, question, text, words)) is not None:
                found[key] = hit
    return sorted(found.values(), key=lambda hit: (-hit.score, hit.state.record.id, hit.skill.id))


def _indexed(state: AgentState, card: Card) -> tuple[_Entry, ...]:
    entries = _entries.get(state)
    if entries is None:
        entries = _entries[state] = tuple(_entry(skill) for skill in card.skills)
    return entries


def _entry(skill: Skill) -> _Entry:
    said = (
        ("id.word", skill.id.replace("_", " ")),
        ("name", skill.name),
        ("tag", " ".join(skill.tags)),
        ("description", skill.description),
        ("example", " ".join(skill.examples)),
    )
    return _Entry(skill, tuple((reason, frozenset(_words(text))) for reason, text in said))


def _words(text: str) -> Iterator[str]:
    return (word.casefold() for word in WORD.findall(text))


def _hit(
    state: AgentState, card: Card, entry: _Entry, question: Question, text: str, words: frozenset[str]
) -> Hit | None:
    need, skill = question.need, entry.skill
    if need.skill_id and need.skill_id != skill.id:
        return None
    if question.tags and not set(question.tags) <= set(skill.tags):
        return None
    reasons = _reasons(entry, text, words) if words else {}
    if need.skill_id:
        reasons.setdefault("id.exact", 1.0)
    if words and not reasons:
        return None
    if not admits(card, skill, need):
        return None
    return Hit(
        state=state,
        skill=skill,
        need=replace(need, skill_id=skill.id),
        score=sum(_WEIGHT[reason] * share for reason, share in reasons.items()),
        reasons=tuple(name for name, _ in WEIGHTS if name in reasons),
    )


def _reasons(entry: _Entry, text: str, words: frozenset[str]) -> dict[str, float]:
    """Each reason with the share of the words that it explains."""
    reasons: dict[str, float] = {}
    skill_id = entry.skill.id.casefold()
    if text == skill_id:
        reasons["id.exact"] = 1.0
    elif skill_id.startswith(text):
        reasons["id.prefix"] = 1.0
    for reason, content in entry.words:
        share = len(content & words) / len(words)
        if share:
            reasons[reason] = share
    return reasons
