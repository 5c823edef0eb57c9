"""A small HTTP server on loopback that serves what a test puts in it, and counts."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

CARD = "/.well-known/agent-card.json"
LEGACY_CARD = "/.well-known/agent.json"


@dataclass(frozen=True)
class Reply:
    """One answer."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class CardServer:
    """Answers by path; 404 for any other. `seen` holds each request's path and headers."""

    url: str = ""
    replies: dict[str, Reply] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def serve(self, card: Any, path: str = CARD, **headers: str) -> None:
        """Serve a document: JSON of a value, or bytes as they are."""
        body = card if isinstance(card, bytes) else json.dumps(card).encode()
        self.replies[path] = Reply(body, headers={name.replace("_", "-"): value for name, value in headers.items()})

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection, request after request."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                first, *lines = head.decode("latin-1").split("\r\n")
                path = first.split(" ")[1]
                pairs = (line.partition(":") for line in lines if line)
                self.seen.append((path, {name.lower(): value.strip() for name, _, value in pairs}))
                self.counts[path] += 1
                reply = self.replies.get(path, Reply(b"nothing here", 404))
                extra = "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
                start = f"HTTP/1.1 {reply.status} X\r\ncontent-length: {len(reply.body)}\r\n{extra}\r\n"
                writer.write(start.encode("latin-1") + reply.body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def card_server() -> AsyncIterator[CardServer]:
    """Listen on a free port of 127.0.0.1."""
    served = CardServer()
    server = await asyncio.start_server(served.answer, "127.0.0.1", 0)
    served.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield served
