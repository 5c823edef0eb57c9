"""Ids that somebody may have meant. Pure, and bounded for any number and length of ids."""

import difflib
import re
from collections.abc import Iterable

MAX_IDS = 2_000
"""Ids that are looked at, at most."""
MAX_LENGTH = 200
"""Characters of an id that are compared."""
_LIKE = 0.6
"""Least similarity (2 * matching characters / all characters) that counts as near."""
_VERSION = re.compile(r"[-_. ]?v?\d+([-_.]\d+)*$")
_SEPARATORS = re.compile(r"[-_. /:]+")


def near_ids(wanted: str, ids: Iterable[str], limit: int = 5) -> tuple[str, ...]:
    """Return the ids nearest to a wanted one, nearest first: other spellings, other versions, then what reads alike."""
    stem = _stem(wanted)
    scored: list[tuple[float, str]] = []
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(_plain(wanted))
    for candidate in list(dict.fromkeys(ids))[:MAX_IDS]:
        if not candidate or candidate == wanted:
            continue
        if _plain(candidate) == _plain(wanted):
            scored.append((3.0, candidate))
        elif stem and _stem(candidate) == stem:
            scored.append((2.0, candidate))
        else:
            matcher.set_seq1(_plain(candidate))
            if matcher.real_quick_ratio() >= _LIKE and matcher.quick_ratio() >= _LIKE:
                likeness = matcher.ratio()
                if likeness >= _LIKE:
                    scored.append((likeness, candidate))
    scored.sort(key=lambda item: (-item[0], item[1]))
    return tuple(candidate for _, candidate in scored[:limit])


def _plain(text: str) -> str:
    """Without case and separators: `Summarize_V2` and `summarize-v2` are one spelling."""
    return _SEPARATORS.sub(" ", text[:MAX_LENGTH].casefold()).strip()


def _stem(text: str) -> str:
    """Without a version at the end."""
    return _VERSION.sub("", _plain(text)).strip()
