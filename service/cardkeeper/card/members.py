"""Reading the members of a document's objects whatever their spelling and type, with a finding where they are odd.

Rules for every member: `null` is the same as absent; a snake_case key (protobuf JSON with original names) counts where
the camelCase key is missing; a value of the wrong type is ignored.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from cardkeeper.card.remarks import Remarks, pointer_token, shown

_HUMP = re.compile(r"(?<!^)(?=[A-Z])")


@cache
def snake_case(key: str) -> str:
    """`defaultInputModes` in protobuf's spelling: `default_input_modes`. Called with our own keys only."""
    return _HUMP.sub("_", key).lower()


def member(mapping: Mapping[str, object], key: str) -> object:
    """The value of a camelCase key, or of its snake_case spelling; None where neither is there."""
    value = mapping.get(key)
    return mapping.get(snake_case(key)) if value is None else value


class Members:
    """One JSON object of a document, and where it stands in it."""

    def __init__(self, mapping: Mapping[str, object], pointer: str, remarks: Remarks) -> None:
        self.mapping = mapping
        self.pointer = pointer
        self.remarks = remarks

    def at(self, key: str) -> str:
        """Pointer to the member, in the spelling that the document uses."""
        used = key if self.mapping.get(key) is not None or snake_case(key) not in self.mapping else snake_case(key)
        return f"{self.pointer}/{pointer_token(used)}"

    def value(self, key: str) -> object:
        """The member as it is; None where it is absent or null."""
        snake = snake_case(key)
        if snake != key and self.mapping.get(snake) is not None:
            camel, other = self.mapping.get(key), self.mapping[snake]
            if camel is None:
                self.remarks.note("key.snake_case", self.at(key), f"read as {key}, the name that A2A's JSON uses")
            elif camel != other:
                self.remarks.warn(
                    "key.conflict",
                    f"{self.pointer}/{snake}",
                    f"differs from {key} beside it, which is used; keep one of them",
                )
        return member(self.mapping, key)

    def text(self, key: str) -> str:
        """A string; empty where there is none."""
        value = self.value(key)
        if isinstance(value, str):
            return value
        if value is not None:
            self._wrong_type(key, "a string", value)
        return ""

    def flag(self, key: str) -> bool:
        """A boolean: only JSON's `true` is true."""
        value = self.value(key)
        if value is not None and not isinstance(value, bool):
            self.remarks.warn("flag.not_boolean", self.at(key), f"{shown(value)} counts as false; write true or false")
        return value is True

    def texts(self, key: str) -> tuple[str, ...]:
        """The strings of a list; a single string is a list of one, anything else in it is dropped."""
        value = self.value(key)
        if value is None:
            return ()
        if isinstance(value, str):
            self.remarks.repair("list.single_string", self.at(key), f"{shown(value)} is read as a list of one string")
            return (value,)
        if not isinstance(value, list):
            self._wrong_type(key, "a list of strings", value)
            return ()
        kept = tuple(item for item in value if isinstance(item, str))
        if len(kept) != len(value):
            self.remarks.repair("list.not_a_string", self.at(key), "members that are no strings are dropped")
        return kept

    def items(self, key: str) -> Iterator[tuple[str, object]]:
        """The members of a list, each with its pointer; nothing where there is no list."""
        value = self.value(key)
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield f"{self.at(key)}/{index}", item
        elif value is not None:
            self._wrong_type(key, "a list", value)

    def objects(self, key: str) -> Iterator["Members"]:
        """The objects of a list; anything else in it is dropped."""
        for pointer, item in self.items(key):
            if isinstance(item, Mapping):
                yield Members(item, pointer, self.remarks)
            else:
                self.remarks.repair("list.not_an_object", pointer, f"{shown(item)} is dropped, an object belongs here")

    def child(self, key: str) -> "Members":
        """An object; an empty one where there is none."""
        value = self.value(key)
        if isinstance(value, Mapping):
            return Members(value, self.at(key), self.remarks)
        if value is not None:
            self._wrong_type(key, "an object", value)
        return Members({}, self.at(key), self.remarks)

    def _wrong_type(self, key: str, wanted: str, value: object) -> None:
        self.remarks.warn("member.wrong_type", self.at(key), f"{shown(value)} is ignored, {wanted} belongs here")
