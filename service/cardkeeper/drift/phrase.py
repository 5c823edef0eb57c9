"""From an agent's text to the plain sentences that patterns are matched against.

A plain sentence is lower-case, NFKC, with single spaces and ' for every quote; "isn't" is "is not", `SKILL_NOT_FOUND`
and `SkillNotFound` are "skill not found". The negotiated skill, wherever the text names it, is one private character:
SKILL. So a pattern says "the negotiated id stands here" without knowing it, and any other name in its place shows.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cardkeeper.drift.speech import MAX_TEXT

SKILL = "\ue000"
"""Stands for the negotiated skill id, or its name in quotes or beside the word "skill"."""

WEAK_SKILL = "\ue001"
"""Stands for an id that is also an everyday word ("chart"), where nothing shows that it is meant as an id."""

MAX_SENTENCES = 64
MAX_SENTENCE = 400
"""Characters of a sentence that are matched: with MAX_SENTENCES, the bound on what a text can cost."""

MIN_ECHO = 12
"""Characters from which a repeated text of the caller is taken out: shorter ones are words that anyone uses."""

_PRIVATE = re.compile("[\ue000\ue001]")
_QUOTES = str.maketrans(dict.fromkeys('"“”„‟‘’‚‛«»‹›「」『』`´', "'"))
_MARKUP = re.compile(r"\*\*|__|~~|[\u200b\u200c\u200d\ufeff]")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
_SNAKE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|\b[a-z]+(?:_[a-z]+){1,5}\b")
_NOT = re.compile(r"\b(?:(ca)n't|(\w+)n't|(can)not)\b")
_SPACE = re.compile(r"[ \t\r\f\v ]+")
_SENTENCE_END = re.compile(r"[.!?;]+(?=\s|$)|[。！？；｡\n]+")
_QUOTED_SKILL = re.compile(rf"(?:'|\(|\[|<) ?({SKILL}|{WEAK_SKILL}) ?(?:'|\)|\]|>)")


@dataclass(frozen=True, slots=True)
class Named:
    """How an agent may name the negotiated skill."""

    id: str
    name: str = ""

    @property
    def distinct(self) -> bool:
        """Whether the id cannot be mistaken for an everyday word."""
        return bool(re.search(r"[^A-Za-z]|[a-z][A-Z]", self.id))


def sentences(text: str, named: Named, echoes: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the plain sentences of a text, at most 64, each at most 400 characters; the caller's own words are out."""
    text = _PRIVATE.sub(" ", text[:MAX_TEXT])
    for echo in echoes:
        if len(echo) >= MIN_ECHO:
            text = text.replace(echo, " … ")
    text = _put_skill(text, named)
    text = _MARKUP.sub("", unicodedata.normalize("NFKC", text)[:MAX_TEXT])
    text = _SNAKE.sub(lambda word: word[0].replace("_", " "), _CAMEL.sub(" ", text)).lower().translate(_QUOTES)
    text = _NOT.sub(lambda word: f"{'can' if word[1] or word[3] else word[2]} not", text)
    text = _QUOTED_SKILL.sub(SKILL, text)
    return tuple(_split(text))


def _put_skill(text: str, named: Named) -> str:
    if not named.id:
        return text
    text = _as_word(named.id).sub(SKILL if named.distinct else WEAK_SKILL, text)
    if named.name and named.name.casefold() != named.id.casefold():
        text = _as_name(named.name).sub(SKILL, text)
    return text


@lru_cache(maxsize=1024)
def _as_word(skill_id: str) -> re.Pattern[str]:
    """The id where it stands alone. Scripts without spaces have no word bounds, so only ASCII neighbours count."""
    before = r"(?<![A-Za-z0-9_-])" if skill_id[0].isascii() else ""
    after = r"(?![A-Za-z0-9_-]|\.[A-Za-z0-9])" if skill_id[-1].isascii() else ""
    return re.compile(before + re.escape(skill_id[:256]) + after, re.IGNORECASE)


@lru_cache(maxsize=1024)
def _as_name(name: str) -> re.Pattern[str]:
    """The skill's name where it is quoted or stands beside the word: an agent may say 'Summarize' for summarize-v2."""
    escaped = re.escape(name[:256])
    quoted = rf"(?<=[\"'“‘«「『`]){escaped}(?=[\"'”’»」』`])"
    beside = rf"(?i:(?<=skill )|(?<=skill: ))\b{escaped}\b|\b{escaped}\b(?i:(?= skill\b))"
    return re.compile(f"{quoted}|{beside}", re.IGNORECASE)


def _split(text: str) -> Iterable[str]:
    for sentence in _SENTENCE_END.split(text, maxsplit=MAX_SENTENCES)[:MAX_SENTENCES]:
        plain = _SPACE.sub(" ", sentence).strip()[:MAX_SENTENCE]
        if plain:
            yield plain
