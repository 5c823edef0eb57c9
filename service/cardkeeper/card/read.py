"""Bytes to a JSON object, strictly and in bounded time: what A2A's grammar is built on (RFC 8259, RFC 7493)."""

import json
import math
import re
from collections import Counter
from itertools import accumulate
from typing import NoReturn

from cardkeeper.card.finding import Finding, Level
from cardkeeper.card.remarks import Remarks, pointer_token, shown
from cardkeeper.errors import CardInvalid

MAX_BYTES = 1024 * 1024
"""Size limit of a card. Real ones are a few KiB."""
MAX_DEPTH = 64
"""Nesting limit of a card. Real ones stay under 20."""
MAX_EXACT_INTEGER = 2**53 - 1
"""Beyond it, integers are not the same in every JSON reader (RFC 7493 section 2.2)."""

_BOM = b"\xef\xbb\xbf"
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_MARKUP = re.compile(rb"\s*<[!?a-z]", re.IGNORECASE)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

JsonObject = dict[str, object]


def read_document(body: bytes, *, max_bytes: int = MAX_BYTES) -> tuple[JsonObject, tuple[Finding, ...]]:
    """Return the JSON object in `body`, and what was odd about its text.

    A byte order mark is dropped, the last of duplicate keys wins (as in all common readers), and half a surrogate pair
    becomes U+FFFD; each with a finding. Raises CardInvalid for anything that is no JSON object in UTF-8 within bounds.
    """
    remarks = Remarks()
    if len(body) > max_bytes:
        _refuse("document.too_large", f"the document has {len(body)} bytes, the limit is {max_bytes}")
    if body.startswith(_BOM):
        body = body[len(_BOM) :]
        remarks.repair(
            "document.bom", "", "the document starts with a byte order mark; serve it without (RFC 8259 8.1)"
        )
    if not body.strip():
        _refuse("document.empty", "the document is empty")
    if _MARKUP.match(body):
        _refuse("document.html", "the document is an HTML or XML page, not JSON; the URL is likely not a card's")
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        _refuse("document.not_utf8", f"the document is not UTF-8: byte {error.start} is {error.reason}")
    if _depth(body) > MAX_DEPTH:
        _refuse("document.too_deep", f"the document is nested deeper than {MAX_DEPTH} levels")
    value = _Reader(remarks).read(text)
    if b"\\ud" in body.lower():
        value = _scrubbed(value, "", remarks)
    if not isinstance(value, dict):
        hint = "; a list of cards is a catalogue, register each card by itself" if isinstance(value, list) else ""
        _refuse("document.not_an_object", f"the document is {shown(value)}, a card is a JSON object{hint}")
    return value, remarks.findings()


class _Reader:
    """One run of the JSON parser; remembers what the parsed values no longer show."""

    def __init__(self, remarks: Remarks) -> None:
        self._remarks = remarks
        self._duplicates: list[tuple[JsonObject, str]] = []

    def read(self, text: str) -> object:
        try:
            value: object = json.loads(
                text,
                object_pairs_hook=self._object,
                parse_constant=self._constant,
                parse_float=self._float,
                parse_int=self._int,
            )
        except json.JSONDecodeError as error:
            place = f"line {error.lineno} column {error.colno}"
            _refuse("document.not_json", f"the document is not JSON: {error.msg} at {place}")
        if self._duplicates:
            self._report_duplicates(value)
        return value

    def _object(self, pairs: list[tuple[str, object]]) -> JsonObject:
        made = dict(pairs)
        if len(made) != len(pairs):
            counted = Counter(key for key, _ in pairs)
            self._duplicates += [(made, key) for key, count in counted.items() if count > 1]
        return made

    def _constant(self, text: str) -> NoReturn:
        _refuse("document.not_json", f"the document is not JSON: {text} is no JSON number")

    def _float(self, text: str) -> float:
        value = float(text)
        if math.isinf(value):
            _refuse("document.number_range", f"the number {text[:40]} is beyond what JSON readers can hold")
        return value

    def _int(self, text: str) -> int:
        if math.isinf(float(text)):
            _refuse("document.number_range", f"the number {text[:40]}… is beyond what JSON readers can hold")
        value = int(text)
        if abs(value) > MAX_EXACT_INTEGER:
            self._remarks.warn(
                "document.number_inexact",
                "",
                f"the integer {text[:40]} is beyond 2^53 and reads differently in other languages; write it as a string",
            )
        return value

    def _report_duplicates(self, root: object) -> None:
        """Find where the objects with duplicate keys ended up; those that were overwritten themselves are nowhere."""
        places: dict[int, str] = {}
        pending = [("", root)]
        while pending:
            pointer, value = pending.pop()
            if isinstance(value, dict):
                places[id(value)] = pointer
                pending += [(f"{pointer}/{pointer_token(key)}", item) for key, item in value.items()]
            elif isinstance(value, list):
                pending += [(f"{pointer}/{index}", item) for index, item in enumerate(value)]
        for made, key in self._duplicates:
            if id(made) in places:
                self._remarks.warn(
                    "document.duplicate_key",
                    f"{places[id(made)]}/{pointer_token(_whole(key))}",
                    "the key is there more than once; the last one is used, other readers may take the first",
                )


def _depth(body: bytes) -> int:
    """Nesting of arrays and objects, counted without recursion; exact for JSON, and no smaller than what is parsed."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH:
        return 0
    brackets = (byte for byte in _STRING.sub(b"", body) if byte in b"[]{}")
    return max(accumulate(1 if byte in b"[{" else -1 for byte in brackets), default=0)


def _whole(text: str) -> str:
    return _LONE_SURROGATE.sub("\ufffd", text)


def _scrubbed(value: object, pointer: str, remarks: Remarks) -> object:
    """Replace halves of surrogate pairs, which no encoding can carry, as browsers and Go do."""
    match value:
        case str():
            whole = _whole(value)
            if whole != value:
                remarks.repair("document.surrogate", pointer, "half a surrogate pair stands for no character: U+FFFD")
            return whole
        case list():
            return [_scrubbed(item, f"{pointer}/{index}", remarks) for index, item in enumerate(value)]
        case dict():
            return {
                str(_scrubbed(key, pointer, remarks)): _scrubbed(item, f"{pointer}/{pointer_token(key)}", remarks)
                for key, item in value.items()
            }
        case _:
            return value


def _refuse(finding_id: str, message: str) -> NoReturn:
    raise CardInvalid(message, findings=(Finding(finding_id, "", message, Level.ERROR),))
