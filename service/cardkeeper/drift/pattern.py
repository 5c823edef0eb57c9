"""Text patterns, as data: what ships with the service, and what an operator adds. Pure.

Matching costs a bounded time: sentences are short (`phrase.py`), and an operator's pattern may not repeat a group, which is
what makes backtracking explode.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files

from cardkeeper.drift.grammar import Words, refusal_forms
from cardkeeper.drift.model import EvidenceKind
from cardkeeper.errors import InvalidInput

MAX_FILE = 256 * 1024
"""Characters of an operator's file."""
MAX_PATTERN = 500
"""Characters of an operator's pattern."""
MAX_REPEATS = 4
"""Unbounded repeats in an operator's pattern."""

CAPABILITIES = ("", "streaming", "push_notifications", "extended_card")

_ID = re.compile(r"[a-z0-9][a-z0-9_.-]{0,99}")
_REPEATED_GROUP = re.compile(r"(?<!\\)\)[*+{]")
_UNBOUNDED = re.compile(r"(?<!\\)[*+]|\{\d+,\}")

_SUBJECTS = {
    "skill": (EvidenceKind.UNKNOWN_SKILL, ""),
    "mode": (EvidenceKind.UNSUPPORTED_MODE, ""),
    "streaming": (EvidenceKind.CAPABILITY_REFUSED, "streaming"),
    "push": (EvidenceKind.CAPABILITY_REFUSED, "push_notifications"),
    "card": (EvidenceKind.CAPABILITY_REFUSED, "extended_card"),
}


@dataclass(frozen=True, slots=True)
class Pattern:
    """One way to say a refusal."""

    id: str
    kind: EvidenceKind
    capability: str
    """Of CAPABILITY_REFUSED: "streaming", "push_notifications" or "extended_card"."""
    expression: re.Pattern[str]
    names_offered: bool = False
    """Media types in the sentence are those that are offered, not the refused ones."""


@dataclass(frozen=True, slots=True)
class Found:
    """A pattern that matched, and the words that it matched."""

    pattern: Pattern
    words: str


@dataclass(frozen=True, slots=True)
class Patterns:
    """All patterns, in the order in which they are tried."""

    refusals: tuple[Pattern, ...]
    look_alikes: tuple[tuple[str, re.Pattern[str]], ...]

    def find(self, sentence: str) -> Iterator[Found]:
        """Yield what a plain sentence refuses, one match for each kind and capability; nothing where it only looks so."""
        if any(expression.search(sentence) for _, expression in self.look_alikes):
            return
        told = set()
        for pattern in self.refusals:
            subject = (pattern.kind, pattern.capability)
            if subject not in told and (match := pattern.expression.search(sentence)):
                told.add(subject)
                yield Found(pattern, match[0])

    def by_id(self, pattern_id: str) -> Pattern | None:
        """Return the pattern of that id."""
        return next((pattern for pattern in self.refusals if pattern.id == pattern_id), None)


def load_patterns(extra: str | None = None) -> Patterns:
    """Return the built-in patterns, and those of an operator's TOML text (docs/evidence.md).

    Raises InvalidInput that names the entry and says what to fix.
    """
    built_in = _built_in()
    if extra is None:
        return built_in
    if len(extra) > MAX_FILE:
        raise InvalidInput(f"the file of patterns has {len(extra)} characters; at most {MAX_FILE} are read")
    try:
        document = tomllib.loads(extra)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"the file of patterns is no TOML: {error}") from error
    if unknown := sorted(document.keys() - {"refusal", "look_alike"}):
        raise InvalidInput(f"the file of patterns has {unknown[0]!r}; it may have [[refusal]] and [[look_alike]]")
    added = _read(document, bounded=True)
    known = {pattern.id for pattern in built_in.refusals} | {name for name, _ in built_in.look_alikes}
    for name in (*(pattern.id for pattern in added.refusals), *(name for name, _ in added.look_alikes)):
        if name in known:
            raise InvalidInput(f"pattern {name!r} is there already; give it another id")
        known.add(name)
    return Patterns(built_in.refusals + added.refusals, built_in.look_alikes + added.look_alikes)


@cache
def _built_in() -> Patterns:
    text = files("cardkeeper.drift").joinpath("patterns.toml").read_text("utf-8")
    return _read(tomllib.loads(text), bounded=False)


def _read(document: Mapping[str, object], *, bounded: bool) -> Patterns:
    refusals = [pattern for table in _tables(document, "language") for pattern in _language(table)]
    for table in _tables(document, "refusal"):
        name = _id(table)
        kind = table.get("kind")
        if not isinstance(kind, str) or kind not in EvidenceKind.__members__:
            kinds = ", ".join(EvidenceKind.__members__)
            raise InvalidInput(f"pattern {name!r} has kind {kind!r}; it must be one of {kinds}")
        capability = table.get("capability", "")
        if not isinstance(capability, str) or capability not in CAPABILITIES:
            raise InvalidInput(f"pattern {name!r}: capability must be one of {', '.join(CAPABILITIES)}")
        expression = _expression(name, table, bounded=bounded)
        refusals.append(Pattern(name, EvidenceKind(kind), capability, expression, table.get("names_offered") is True))
    look_alikes = tuple(
        (_id(table), _expression(_id(table), table, bounded=bounded)) for table in _tables(document, "look_alike")
    )
    return Patterns(tuple(refusals), look_alikes)


def _tables(document: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    found = document.get(key, [])
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise InvalidInput(f"{key} must be written as [[{key}]] tables")
    return found


def _language(table: Mapping[str, object]) -> Iterator[Pattern]:
    words = Words(**{field.name: table[field.name] for field in fields(Words) if field.name in table})  # type: ignore[arg-type]  # our own data
    for name, source in refusal_forms(words).items():
        kind, capability = _SUBJECTS[name.partition(".")[0]]
        yield Pattern(f"{words.code}.{name}", kind, capability, re.compile(source))


def _id(table: Mapping[str, object]) -> str:
    name = table.get("id")
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise InvalidInput(f"a pattern has the id {name!r}; it must be lower-case words joined by dots")
    return name


def _expression(name: str, table: Mapping[str, object], *, bounded: bool) -> re.Pattern[str]:
    source = table.get("pattern")
    if not isinstance(source, str) or not source:
        raise InvalidInput(f"pattern {name!r} has no pattern")
    if bounded:
        if len(source) > MAX_PATTERN:
            raise InvalidInput(f"pattern {name!r} has {len(source)} characters; at most {MAX_PATTERN} are allowed")
        if _REPEATED_GROUP.search(source):
            raise InvalidInput(f"pattern {name!r} repeats a group; repeat single characters or classes only")
        if len(_UNBOUNDED.findall(source)) > MAX_REPEATS:
            raise InvalidInput(f"pattern {name!r} has more than {MAX_REPEATS} unbounded repeats")
    try:
        return re.compile(source)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidInput(f"pattern {name!r} is no regular expression: {error}") from error
