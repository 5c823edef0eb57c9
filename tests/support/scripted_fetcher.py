"""A fetcher that answers from a script: for tests of what is above the network."""

import asyncio
import json
from typing import Any

from cardkeeper.card.parse import parse_card
from cardkeeper.errors import CardUnavailable
from cardkeeper.fetch.base import CardRequest, CardResponse


def card_document(*skills: str | dict[str, Any], version: str = "1.0", **fields: Any) -> dict[str, Any]:
    """A 1.0 card; a skill given by its id takes text/plain and gives text/markdown."""
    return {
        "name": "Peer",
        "description": "d",
        "version": version,
        "supportedInterfaces": [
            {"url": "https://peer.example.com/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        ],
        "capabilities": {"streaming": True},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/markdown"],
        "skills": [
            {"id": skill, "name": skill, "description": "d", "tags": ["t"]} if isinstance(skill, str) else skill
            for skill in skills
        ],
        **fields,
    }


class ScriptedFetcher:
    """Cards, or errors, by agent URL. Every request is noted; `hold` keeps answers back."""

    def __init__(self) -> None:
        self.answers: dict[str, dict[str, Any] | Exception] = {}
        self.etags: dict[str, str] = {}
        self.requests: list[CardRequest] = []
        self.gate = asyncio.Event()
        self.gate.set()

    def hold(self) -> None:
        """Keep answers back until `release`."""
        self.gate.clear()

    def release(self) -> None:
        """Let answers go."""
        self.gate.set()

    def count(self, agent_url: str) -> int:
        """Requests for an agent's card so far."""
        return sum(request.agent_url == agent_url for request in self.requests)

    async def fetch(self, request: CardRequest, *, timeout: float) -> CardResponse:
        """Answer from the script."""
        self.requests.append(request)
        async with asyncio.timeout(timeout):
            await self.gate.wait()
        answer = self.answers.get(request.agent_url)
        if answer is None:
            raise CardUnavailable(f"{request.agent_url}: http-404", metadata={"cause": "http-404"})
        if isinstance(answer, Exception):
            raise answer
        url = request.agent_url + "/.well-known/agent-card.json"
        etag = self.etags.get(request.agent_url, "")
        if etag and request.etag == etag:
            return CardResponse(card_url=url, card=None, etag=etag)
        body = json.dumps(answer).encode()
        return CardResponse(card_url=url, card=parse_card(body, url), body=body, etag=etag)

    async def close(self) -> None:
        """Nothing to close."""
