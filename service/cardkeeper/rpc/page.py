"""Pages of a list (AIP-158): opaque tokens that are bound to the question they belong to."""

import base64
import binascii
import hashlib
import json

from google.protobuf.message import Message

from cardkeeper.errors import InvalidInput


def page_size(asked: int, *, default: int, maximum: int) -> int:
    """The size of a page: too large is cut, 0 is the default; below 0 is refused by the rules."""
    return min(asked, maximum) if asked > 0 else default


def write_token(position: str, request: Message) -> str:
    """A token for the page that starts after `position`."""
    text = json.dumps([position, _question(request)])
    return base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).decode()


def read_token(token: str, request: Message) -> str:
    """The position in a token; empty for the first page. Raises InvalidInput for a token of another question."""
    if not token:
        return ""
    try:
        position, question = json.loads(base64.urlsafe_b64decode(token.encode()))
    except (binascii.Error, ValueError, TypeError):
        position, question = None, None
    if not isinstance(position, str) or question != _question(request):
        raise InvalidInput("send next_page_token as it was returned, with the same other fields", field="page_token")
    return position


def _question(request: Message) -> str:
    same = type(request)()
    same.CopyFrom(request)
    for field in ("page_token", "page_size"):
        same.ClearField(field)
    return hashlib.sha256(same.SerializeToString(deterministic=True)).hexdigest()[:16]
