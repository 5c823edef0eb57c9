"""Media types as cards and parts state them (RFC 9110 section 8.3.1), and whether one covers another.

A *mode* is what a card or a client names: a media type, a range (`image/*`), or a shorthand that is common in cards
(`text`, `json`, `file`). Nothing here raises: text that is no media type equals only itself.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

MAX_LENGTH = 512
"""Characters of a mode that are read; RFC 6838 bounds type and subtype to 127 each."""

SHORTHANDS: Mapping[str, str] = MappingProxyType(
    {
        # Part kinds of A2A 0.x. A file may be of any type.
        "text": "text/plain",
        "data": "application/json",
        "file": "*/*",
        "*": "*/*",
        # Top-level types of RFC 6838 section 4.2.
        "audio": "audio/*",
        "image": "image/*",
        "video": "video/*",
        # Formats by their everyday name.
        "json": "application/json",
        "csv": "text/csv",
        "html": "text/html",
        "markdown": "text/markdown",
        "md": "text/markdown",
        "pdf": "application/pdf",
        "plain": "text/plain",
        "plaintext": "text/plain",
        "png": "image/png",
        "jpeg": "image/jpeg",
        "jpg": "image/jpeg",
        "svg": "image/svg+xml",
        "txt": "text/plain",
        "xml": "application/xml",
        "yaml": "application/yaml",
    }
)

# Other names of one format: RFC 7303 section 9.2, RFC 9512 section 2.1, and registrations that came late.
_SYNONYMS = {
    "application/x-json": "application/json",
    "application/x-yaml": "application/yaml",
    "audio/mp3": "audio/mpeg",
    "image/jpg": "image/jpeg",
    "text/json": "application/json",
    "text/x-markdown": "text/markdown",
    "text/x-yaml": "application/yaml",
    "text/xml": "application/xml",
    "text/yaml": "application/yaml",
}

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 - the grammar's word, no secret
_ESSENCE = re.compile(rf"{_TOKEN}/{_TOKEN}")
_PARAMETER = re.compile(rf'[ \t]*;[ \t]*(?:({_TOKEN})[ \t]*=[ \t]*(?:({_TOKEN})|"((?:[^"\\]|\\.)*)"))?')


@dataclass(frozen=True, slots=True)
class MediaType:
    """A media type or range: its essence, lower-case, and its parameters, names lower-case."""

    essence: str
    """`type/subtype`, or the text itself where it is no media type."""
    parameters: frozenset[tuple[str, str]]

    @property
    def is_valid(self) -> bool:
        """Whether this is a media type or range at all."""
        return _ESSENCE.fullmatch(self.essence) is not None


@lru_cache(maxsize=4096)
def parse_media_type(text: str) -> MediaType:
    """Read a mode; shorthands and synonyms are mapped. Never raises."""
    text = text[:MAX_LENGTH].strip()
    head, separator, _ = text.partition(";")
    essence = head.strip().lower()
    essence = SHORTHANDS.get(essence, essence)
    essence = _SYNONYMS.get(essence, essence)
    return MediaType(essence, _parameters(text[len(head) :]) if separator else frozenset())


def normalise_media_type(text: str) -> str:
    """Return "type/subtype" in lower case without parameters; shorthands mapped, so "file" is "*/*"."""
    return parse_media_type(text).essence


def matches(mode: str, media_type: str) -> bool:
    """Whether what is advertised as `mode` covers `media_type`.

    Case is ignored. Ranges cover their types, and a format covers what is built on it: `application/json` covers
    `application/geo+json` (RFC 6839). Parameters count only where the mode states them; a charset that is not stated is
    UTF-8, as all of A2A's JSON is.
    """
    advertised, stated = parse_media_type(mode), parse_media_type(media_type)
    return _covers(advertised.essence, stated.essence) and _states(stated.parameters, advertised.parameters)


class Modes:
    """What a list of modes covers, looked up by what could cover it: lists of thousands are as quick as short ones."""

    SAME = 64
    """Modes of one essence, with different parameters, that are kept."""

    def __init__(self, modes: Iterable[str]) -> None:
        self._by_essence: dict[str, list[MediaType]] = {}
        for mode in dict.fromkeys(modes):
            advertised = parse_media_type(mode)
            same = self._by_essence.setdefault(advertised.essence, [])
            if len(same) < self.SAME:
                same.append(advertised)

    def __bool__(self) -> bool:
        """Whether there is any mode."""
        return bool(self._by_essence)

    def cover(self, media_type: str) -> bool:
        """Whether one of the modes matches: the same as `any(matches(mode, media_type) for mode in modes)`."""
        stated = parse_media_type(media_type)
        return any(
            _states(stated.parameters, advertised.parameters)
            for essence in _covering(stated.essence)
            for advertised in self._by_essence.get(essence, ())
        )


def _covering(essence: str) -> Iterator[str]:
    """Everything that covers a type, beside itself: ranges, and the formats that it is built on."""
    yield essence
    yield "*/*"
    top, _, sub = essence.partition("/")
    if not sub:
        return
    yield f"{top}/*"
    while "+" in sub:
        sub = sub.partition("+")[2]
        yield f"{top}/*+{sub}"
        yield f"application/{sub}"


def _covers(advertised: str, stated: str) -> bool:
    if advertised in ("*/*", stated):
        return True
    top, _, sub = advertised.partition("/")
    stated_top, _, stated_sub = stated.partition("/")
    if not stated_sub:
        return False
    if sub == "*":
        return top == stated_top
    if sub.startswith("*+"):
        return top == stated_top and stated_sub.endswith(sub[1:])
    return top == "application" and stated_sub.endswith(f"+{sub}")


def _states(stated: frozenset[tuple[str, str]], wanted: frozenset[tuple[str, str]]) -> bool:
    missing = wanted - stated
    if not missing:
        return True
    return missing == {("charset", "utf-8")} and not any(name == "charset" for name, _ in stated)


def _parameters(text: str) -> frozenset[tuple[str, str]]:
    found: dict[str, str] = {}
    for match in _PARAMETER.finditer(text):
        name, token, quoted = match.groups()
        if name is None or name.lower() == "q":  # q is a weight of Accept, no parameter of the type
            continue
        value = token if token is not None else re.sub(r"\\(.)", r"\1", quoted)
        name = name.lower()
        found.setdefault(name, value.lower() if name == "charset" else value)
    return frozenset(found.items())
