"""The client that everybody writes first: it caches a card for a while, and believes it."""

import time
from typing import Any

import httpx
from send import send_task


class NaiveClient:
    """Caches cards by URL for a TTL, and picks skills from the cache."""

    def __init__(self, ttl: float = 300.0) -> None:
        self._ttl = ttl
        self._cards: dict[str, tuple[float, dict[str, Any]]] = {}

    def card(self, agent_url: str) -> dict[str, Any]:
        """Return the card, fetched at most once in a TTL."""
        until, card = self._cards.get(agent_url, (0.0, {}))
        if time.monotonic() >= until:
            card = httpx.get(f"{agent_url}/.well-known/agent-card.json", timeout=5.0).raise_for_status().json()
            self._cards[agent_url] = (time.monotonic() + self._ttl, card)
        return card

    def run(self, agent_url: str, skill_id: str) -> dict[str, Any]:
        """Send a task to a skill that the cached card advertises, and return what the agent answered."""
        card = self.card(agent_url)
        if not any(skill["id"] == skill_id for skill in card["skills"]):
            raise LookupError(f"no skill {skill_id}")
        interface = card["supportedInterfaces"][0]
        answer: dict[str, Any] = httpx.Response(
            200, content=send_task(interface["url"], skill_id, protocol_version=interface["protocolVersion"])
        ).json()
        return answer
