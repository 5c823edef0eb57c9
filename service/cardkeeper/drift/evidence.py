"""What an observation contradicts in the snapshot that was negotiated (design section 5, docs/evidence.md). Pure.

Evidence is a contradiction, not a keyword: a refusal counts only where the snapshot promised what is refused. What an error
says in its structure (`refusal.py`) goes before what it says in words, and words go by `patterns.toml`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cardkeeper.card.model import Card
from cardkeeper.drift.artifact import judge_artifact
from cardkeeper.drift.model import Call, Evidence, EvidenceKind
from cardkeeper.drift.observation import Fault, Observation, Place, Statement
from cardkeeper.drift.pattern import Found, Patterns
from cardkeeper.drift.phrase import SKILL, WEAK_SKILL, Named, sentences
from cardkeeper.drift.promise import Promise
from cardkeeper.drift.refusal import SHOWN, evidence, refused_by, refused_by_status, unknown_skill, unsupported_mode
from cardkeeper.drift.state import REFUSING, TaskState

MAX_SENTENCES = 64
"""Plain sentences of one observation that are matched against patterns."""
MAX_ANSWER = 400
"""Characters of a Message, or of a completed task's text, that may still be a refusal: longer ones are answers."""


def find_evidence(
    card: Card, call: Call, observation: Observation, patterns: Patterns, *, schema: str = ""
) -> tuple[Evidence, ...]:
    """Return what the observation contradicts in the card that was negotiated, each kind of refusal once.

    `schema` is an operator's output schema for the skill, as in `judge_artifact`.
    """
    if observation.state in (TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED):
        return ()  # the agent asks for something: it took the task
    promise = Promise(card, call)
    words = _Words(promise, observation, patterns)
    refused = [item for fault in observation.faults for item in _refused(fault, promise, words)]
    refused += words.say(observation.statements)
    refused += words.matched_elsewhere()
    return tuple(dict.fromkeys((*_each_kind_once(refused), *_delivered(promise, observation, schema))))


def _refused(fault: Fault, promise: Promise, words: "_Words") -> list[Evidence]:
    """Structure first; words where it says nothing; the bare status last."""
    found, ask_words = refused_by(fault, promise)
    if ask_words:
        found = words.say(fault.statements)
    return found or list(refused_by_status(fault, promise))


def _delivered(promise: Promise, observation: Observation, schema: str) -> Iterator[Evidence]:
    """What was delivered, against what may be."""
    skill_id = promise.call.skill_id
    if not promise.skills:
        if observation.state is TaskState.COMPLETED:
            said = f"a completed task of {skill_id!r}, which the card does not advertise"
            yield evidence(
                EvidenceKind.SKILL_NOT_ADVERTISED,
                "task.completed_for_unadvertised_skill",
                "a skill of the card",
                said,
                "/status/state",
            )
    elif observation.state not in REFUSING and observation.parts:
        yield from judge_artifact(promise.card, skill_id, observation.parts, schema=schema).evidence


def _each_kind_once(found: Sequence[Evidence]) -> Iterator[Evidence]:
    """An error's message and its data say the same in other words."""
    told: set[EvidenceKind] = set()
    for item in found:
        if item.kind not in told:
            told.add(item.kind)
            yield item


@dataclass(frozen=True, slots=True)
class _Words:
    """What an agent's sentences refuse."""

    promise: Promise
    observation: Observation
    patterns: Patterns

    def say(self, statements: Sequence[Statement]) -> list[Evidence]:
        """Return what the statements refuse."""
        found: list[Evidence] = []
        budget = MAX_SENTENCES
        skills = self.promise.skills
        named = Named(self.promise.call.skill_id, skills[0].name if skills else "")
        for statement in statements:
            if not _may_refuse(statement):
                continue
            plain = sentences(statement.text, named, self.observation.echoes)[:budget]
            budget -= len(plain)
            for sentence in plain:
                found += self._sentence(sentence, statement)
        return found

    def matched_elsewhere(self) -> Iterator[Evidence]:
        """Yield what patterns refuse that matched at a client which sends no content."""
        for pattern_id in self.observation.matched_patterns:
            pattern = self.patterns.by_id(pattern_id)
            if pattern is not None:
                statement = Statement(text=pattern_id, pointer="/matched_patterns", place=Place.ERROR)
                yield from self._contradiction(Found(pattern, ""), "", statement)

    def _sentence(self, sentence: str, statement: Statement) -> Iterator[Evidence]:
        for found in self.patterns.find(sentence):
            if _refuses(statement) or SKILL in found.words or WEAK_SKILL in found.words:
                yield from self._contradiction(found, sentence, statement)

    def _contradiction(self, found: Found, sentence: str, statement: Statement) -> Iterator[Evidence]:
        pattern, where, promise = found.pattern, statement.pointer, self.promise
        said = " ".join(statement.text.split())[:SHOWN]
        match pattern.kind:
            case EvidenceKind.UNKNOWN_SKILL:
                if promise.skills:
                    yield unknown_skill(promise, pattern.id, said, where)
            case EvidenceKind.UNSUPPORTED_MODE:
                if promise.modes("" if pattern.names_offered else sentence):
                    yield unsupported_mode(promise, pattern.id, said, where)
            case EvidenceKind.CAPABILITY_REFUSED:
                if promise.capability(pattern.capability):
                    yield evidence(pattern.kind, pattern.id, f"{pattern.capability} is offered", said, where)
            case _:
                yield evidence(pattern.kind, pattern.id, "what the card says", said, where)


def _may_refuse(statement: Statement) -> bool:
    """Only an agent that did not do the task explains why; a short answer may be a refusal too."""
    if statement.place is Place.ERROR or statement.state in REFUSING:
        return True
    answers = statement.place is Place.MESSAGE or statement.state is TaskState.COMPLETED
    return answers and len(statement.text) <= MAX_ANSWER


def _refuses(statement: Statement) -> bool:
    """Whether a refusal counts here that does not name the skill."""
    return statement.place is Place.ERROR or (statement.state in REFUSING and statement.place is not Place.ARTIFACT)
