"""How long a source says that its card is fresh (RFC 9111 section 4.2). Pure."""

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

_DIRECTIVE = re.compile(r"""([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?:\s*=\s*(?:"([^"]*)"|([^\s,"]*)))?""")
_LONGEST = 2**31
"""Seconds; what is longer means this (RFC 9111 section 1.2.2)."""


def stated_lifetime(headers: Mapping[str, str]) -> float | None:
    """Return the seconds for which the answer is still fresh; None where the source states nothing readable.

    `headers` must be looked up without regard to case, or be in lower case. A directive stated twice counts at its
    lowest. `s-maxage` goes before `max-age`, for this is a shared cache; `private` is about who may store, and a card
    that was fetched without credentials is everyone's.
    """
    directives = _directives(headers.get("cache-control", ""))
    if "no-store" in directives or "no-cache" in directives:
        return 0.0
    for name in ("s-maxage", "max-age"):
        stated = [seconds for value in directives.get(name, ()) if (seconds := _seconds(value)) is not None]
        if stated:
            return float(max(0, min(stated) - (_seconds(headers.get("age", "")) or 0)))
    return _until_expiry(headers)


def _directives(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, quoted, plain in _DIRECTIVE.findall(text):
        found.setdefault(name.lower(), []).append(quoted or plain)
    return found


def _seconds(text: str) -> int | None:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit()):
        return None
    return min(int(digits), _LONGEST) if len(digits) <= 10 else _LONGEST


def _until_expiry(headers: Mapping[str, str]) -> float | None:
    """`Expires` by the source's own clock: nothing is known without its `Date`."""
    expires, date = headers.get("expires", ""), headers.get("date", "")
    if not expires or not date:
        return None
    try:
        lifetime = parsedate_to_datetime(expires).timestamp() - parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        # "0" and other invalid dates mean "in the past" (RFC 9111 section 5.3).
        return 0.0
    return max(0.0, min(lifetime, _LONGEST) - (_seconds(headers.get("age", "")) or 0))
