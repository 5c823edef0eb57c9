"""Records as JSON text and back, for engines that keep text.

The text is ASCII, so that lone surrogates, which JSON cards may hold, survive engines that insist on UTF-8. A field that
this release does not know is ignored, and one that is missing takes its default, so that releases with more and with
fewer fields read each other's text; only a change of meaning takes another FORMAT.
"""

import base64
import dataclasses
import json
from enum import Enum
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")

FORMAT = 1
"""Version of the encoding, written into each text as "v"."""


class Undecodable(ValueError):
    """The text is no such record: damaged, or written by a newer release."""


def encode(record: "DataclassInstance") -> str:
    """Return a frozen record as one line of ASCII JSON; bytes become base64."""
    return json.dumps({"v": FORMAT} | _fields(record), default=_plain, separators=(",", ":"))


def decode(kind: type[Record], text: str) -> Record:
    """Return the record of that type. Raises Undecodable, naming the field."""
    try:
        document = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise Undecodable(f"no {kind.__name__}: {error}") from error
    version = document.get("v") if isinstance(document, dict) else None
    if type(version) is not int:
        raise Undecodable(f"no {kind.__name__}: the text states no format")
    if version > FORMAT:
        raise Undecodable(
            f"{kind.__name__} of format {version}; this release reads up to {FORMAT}: run a newer release"
        )
    record: Record = _record(kind, document, kind.__name__)
    return record


def _fields(record: "DataclassInstance") -> dict[str, object]:
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


def _plain(value: object) -> object:
    """What `json` does not write by itself; it writes tuples and the string and integer enums."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    raise TypeError(f"a {type(value).__name__} is not encoded")


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _record(kind: Any, value: object, where: str) -> Any:
    if not isinstance(value, dict):
        raise Undecodable(f"{where} is no object")
    hints = _hints(kind)
    known = {name: _value(hint, value[name], f"{where}.{name}") for name, hint in hints.items() if name in value}
    try:
        return kind(**known)
    except (TypeError, ValueError) as error:
        raise Undecodable(f"{where}: {error}") from error


def _value(hint: Any, value: object, where: str) -> Any:
    """Read one value as its annotation says; the annotations of the records are the schema."""
    if get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise Undecodable(f"{where} is no list")
        return tuple(_value(get_args(hint)[0], item, f"{where}[{index}]") for index, item in enumerate(value))
    if NoneType in get_args(hint):
        return None if value is None else _value(get_args(hint)[0], value, where)
    if dataclasses.is_dataclass(hint):
        return _record(hint, value, where)
    try:
        if hint is bytes and isinstance(value, str):
            return base64.b64decode(value, validate=True)
        if issubclass(hint, Enum):
            return hint(value)
    except ValueError as error:
        raise Undecodable(f"{where}: {error}") from error
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        raise Undecodable(f"{where} is no {hint.__name__}")
    return value
