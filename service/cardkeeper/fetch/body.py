"""Reading a body whose length nobody can be trusted about."""

import zlib
from collections.abc import AsyncIterable, Mapping

from cardkeeper.errors import CardInvalid

_IDENTITY = frozenset({"", "identity"})
_GZIP = frozenset({"gzip", "x-gzip"})


async def read_body(chunks: AsyncIterable[bytes], headers: Mapping[str, str], *, limit: int) -> bytes:
    """Return the body, decompressed. Neither it nor what is on the wire for it may be longer than `limit` bytes.

    Raises CardInvalid where it is, where it is coded in a way that was not asked for, or where the coding is broken.
    Memory is bounded by the limit, whatever the ratio of compression.
    """
    declared = headers.get("content-length", "")
    if declared.isascii() and declared.isdigit() and (len(declared) > 19 or int(declared) > limit):
        raise _too_large(limit)
    coding = headers.get("content-encoding", "").strip().lower()
    if coding not in _IDENTITY | _GZIP | {"deflate"}:
        raise CardInvalid("its content coding was not asked for", metadata={"cause": "content-coding"})
    body = bytearray()
    inflater = None if coding in _IDENTITY else _Inflater(coding)
    received = 0
    async for chunk in chunks:
        received += len(chunk)
        body += inflater.inflate(chunk, limit - len(body) + 1) if inflater else chunk
        if received > limit or len(body) > limit:
            raise _too_large(limit)
    if inflater is not None:
        inflater.finish()
    return bytes(body)


class _Inflater:
    """Gzip (RFC 1952) or deflate (RFC 9110 section 8.4.1.2), a bounded piece at a time."""

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._stream: zlib._Decompress | None = None

    def inflate(self, chunk: bytes, longest: int) -> bytes:
        """Return at most `longest` bytes; fewer mean that all of the chunk is used up."""
        if not chunk:
            return b""
        if self._stream is None:
            self._stream = zlib.decompressobj(self._window_bits(chunk[0]))
        try:
            inflated = self._stream.decompress(chunk, longest)
        except zlib.error:
            raise self._broken() from None
        if self._stream.unused_data:
            raise self._broken()
        return inflated

    def finish(self) -> None:
        """Raise CardInvalid where the end of the compressed data is missing."""
        if self._stream is None or not self._stream.eof:
            raise self._broken()

    def _window_bits(self, first: int) -> int:
        if self._coding in _GZIP:
            return 16 + zlib.MAX_WBITS
        # "deflate" means zlib's format (its first byte names the method, 8); some servers send it bare.
        return zlib.MAX_WBITS if first & 0x0F == 8 else -zlib.MAX_WBITS

    def _broken(self) -> CardInvalid:
        return CardInvalid(f"its {self._coding} coding is broken", metadata={"cause": "content-coding"})


def _too_large(limit: int) -> CardInvalid:
    return CardInvalid(f"it is larger than {limit} bytes", metadata={"cause": "too-large"})
