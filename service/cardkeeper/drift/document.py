"""From the bytes that a client reports to a JSON value: strict, bounded, and never a crash."""

import json
import re
from typing import NoReturn, TypeAlias

from cardkeeper.errors import DocumentUnreadable

JsonObject: TypeAlias = "dict[str, JsonValue]"
JsonValue: TypeAlias = "dict[str, JsonValue] | list[JsonValue] | str | int | float | bool | None"

MAX_BYTES = 1024 * 1024
"""Largest document that is read, in bytes."""

MAX_DEPTH = 64
"""Deepest nesting that is read."""

_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_BRACKET = re.compile(r"[\[{]|[\]}]")


def read_json(document: bytes) -> JsonValue:
    """Return the JSON value of a reported document.

    A byte order mark is skipped; of duplicate keys the last counts; lone surrogates become U+FFFD, because nothing that
    is answered could carry them. Raises DocumentUnreadable where the document is larger than 1 MiB, no UTF-8, no JSON
    (NaN and Infinity are none), or nested deeper than 64.
    """
    if len(document) > MAX_BYTES:
        raise DocumentUnreadable(f"the document has {len(document)} bytes; at most {MAX_BYTES} are read")
    try:
        text = document.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentUnreadable(f"the document is no UTF-8: byte {error.start} is not") from error
    check_depth(text)
    try:
        value: JsonValue = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except ValueError as error:  # JSONDecodeError, and numbers beyond what can be converted
        raise DocumentUnreadable(f"the document is no JSON: {error}") from error
    return without_surrogates(value) if "\\u" in text else value


def check_depth(text: str) -> None:
    """Raise DocumentUnreadable where JSON text nests deeper than 64."""
    depth = 0
    for bracket in _BRACKET.finditer(_STRING.sub("", text)):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > MAX_DEPTH:
            raise DocumentUnreadable(f"the document nests deeper than {MAX_DEPTH}")


def without_surrogates(value: JsonValue) -> JsonValue:
    """Return the value with every lone surrogate replaced by U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {str(without_surrogates(key)): without_surrogates(item) for key, item in value.items()}
    return value


def child(pointer: str, key: str | int) -> str:
    """Return the JSON Pointer (RFC 6901) of a member or element."""
    return f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"{digits[:20]} is beyond what a number can hold")
    return number
