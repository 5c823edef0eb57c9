"""The validation rules of the contract, applied to requests.

The stubs carry no rules (style: two copies of buf/validate/validate.proto cannot share a process), so the rules live in a
descriptor image of their own, in a private pool.
"""

from functools import lru_cache
from importlib import resources

import protovalidate
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message

from cardkeeper.errors import InvalidInput


class Rules:
    """Checks any request message of the contract; about 7 us each."""

    def __init__(self) -> None:
        image = descriptor_pb2.FileDescriptorSet.FromString(
            resources.files("cardkeeper.v1").joinpath("rules.binpb").read_bytes()
        )
        self._pool = descriptor_pool.DescriptorPool()
        for file in image.file:
            self._pool.Add(file)
        self._validator = protovalidate.Validator()
        self._message_class = lru_cache(maxsize=None)(self._load)

    def check(self, request: Message) -> None:
        """Raise InvalidInput with every violation, each with the path of its field."""
        ruled = self._message_class(request.DESCRIPTOR.full_name).FromString(request.SerializeToString())
        found = self._validator.collect_violations(ruled)
        if not found:
            return
        violations = tuple((_path(violation.proto.field), violation.proto.message) for violation in found)
        listed = "; ".join(f"{field}: {text}" if field else text for field, text in violations[:4])
        error = InvalidInput(listed, field=violations[0][0])
        error.violations = violations
        raise error

    def _load(self, full_name: str) -> type[Message]:
        return message_factory.GetMessageClass(self._pool.FindMessageTypeByName(full_name))


def _path(path: object) -> str:
    """`need.output_modes[3]` from a FieldPath."""
    text = ""
    for element in getattr(path, "elements", ()):
        text += ("." if text else "") + element.field_name
        subscript = element.subscript
        if subscript is not None and subscript.field in ("index", "string_key"):
            text += f"[{subscript.value}]"
    return text
