"""Parts of messages and artifacts, in the shape of every dialect (a2a-facts 4.4)."""

import json
from collections.abc import Iterator, Mapping

from cardkeeper.drift.document import JsonValue, child
from cardkeeper.drift.model import Part, PartKind
from cardkeeper.errors import DocumentUnreadable

MAX_PARTS = 10_000
"""Parts that one document may hold."""

_TYPE_KEYS = ("mediaType", "media_type", "mimeType", "mime_type", "contentType", "content_type")
_NAME_KEYS = ("filename", "fileName", "file_name", "name")
_FILE_KEYS = ("file", "raw", "url", "uri", "bytes", "fileWithBytes", "fileWithUri", "file_with_bytes", "file_with_uri")


def text_member(value: Mapping[str, JsonValue], *keys: str) -> str:
    """Return the first member of these names that is a text and not empty, else ""."""
    for key in keys:
        member = value.get(key)
        if isinstance(member, str) and member:
            return member
    return ""


def part_items(container: Mapping[str, JsonValue], pointer: str) -> Iterator[tuple[JsonValue, str]]:
    """Yield the raw parts of an artifact or a message with their pointers: `parts`, or `content` of the 0.3 proto JSON."""
    for key in ("parts", "content"):
        members = container.get(key)
        if isinstance(members, list):
            if len(members) > MAX_PARTS:
                raise DocumentUnreadable(f"{len(members)} parts; at most {MAX_PARTS} are read")
            yield from ((member, child(child(pointer, key), index)) for index, member in enumerate(members))
            return


def read_parts(container: Mapping[str, JsonValue], pointer: str) -> tuple[Part, ...]:
    """Return the parts of an artifact or a message; members that are no part of any dialect are left out."""
    read = (read_part(raw, where) for raw, where in part_items(container, pointer))
    return tuple(part for part in read if part is not None)


def read_part(raw: JsonValue, pointer: str) -> Part | None:
    """Return one part, or None where it holds nothing that a dialect knows."""
    if isinstance(raw, str):
        return Part(kind=PartKind.TEXT, pointer=pointer)
    if not isinstance(raw, dict):
        return None
    kind = _kind(raw)
    if kind is None:
        return None
    file = raw.get("file")
    name = text_member(file, *_NAME_KEYS) if isinstance(file, dict) else ""
    return Part(
        kind=kind,
        pointer=pointer,
        media_type=_stated_type(raw),
        file_name=name or text_member(raw, *_NAME_KEYS) or _name_in_url(raw) if kind is PartKind.FILE else "",
        data=_data_text(raw) if kind is PartKind.DATA else "",
    )


def part_text(raw: JsonValue) -> str:
    """Return what a text part says, else ""."""
    if isinstance(raw, str):
        return raw
    return text_member(raw, "text") if isinstance(raw, dict) else ""


def _kind(raw: Mapping[str, JsonValue]) -> PartKind | None:
    named = text_member(raw, "kind", "type").lower()
    if named in ("text", "file", "data"):
        return PartKind(named)
    if isinstance(raw.get("text"), str):
        return PartKind.TEXT
    if any(raw.get(key) is not None for key in _FILE_KEYS):
        return PartKind.FILE
    if "data" in raw:
        return PartKind.DATA
    return PartKind.FILE if "/" in named or _stated_type(raw) else None


def _stated_type(raw: Mapping[str, JsonValue]) -> str:
    """1.0 `mediaType`; 0.x `file.mimeType`; 0.1-0.2 `type`, which may itself be a media type; `metadata.mimeType`."""
    holders: list[JsonValue] = [dict(raw), raw.get("file")]
    for holder in holders:
        if isinstance(holder, dict) and (stated := text_member(holder, *_TYPE_KEYS).strip()):
            return stated
    for key in ("type", "kind"):
        named = raw.get(key)
        if isinstance(named, str) and "/" in named:
            return named.strip()
    metadata = raw.get("metadata")
    return text_member(metadata, *_TYPE_KEYS).strip() if isinstance(metadata, dict) else ""


def _name_in_url(raw: Mapping[str, JsonValue]) -> str:
    """Return the last segment of the URL that a file part without a name points to."""
    file = raw.get("file")
    holder = file if isinstance(file, dict) else raw
    url = text_member(holder, "url", "uri", "fileWithUri", "file_with_uri")
    if url.startswith("data:"):
        return ""
    return url.partition("?")[0].partition("#")[0].rpartition("/")[2][:256]


def _data_text(raw: Mapping[str, JsonValue]) -> str:
    """JSON text of the payload; the 0.3 proto JSON wraps it once more, and then has no discriminator."""
    data = raw.get("data")
    bare = not any(raw.get(key) for key in ("kind", "type", *_TYPE_KEYS))
    if bare and isinstance(data, dict) and set(data) == {"data"} and isinstance(data["data"], dict):
        data = data["data"]
    return json.dumps(data, ensure_ascii=False)
