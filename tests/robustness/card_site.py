"""The agents of a run: one small HTTP server whose cards change at random, and which fails at random."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from card_server import CARD, CardServer, Reply, card_server

SKILLS = ("base", "alpha", "beta", "gamma", "delta")
TAGS = ("red", "green", "blue")
MODES = ("text/plain", "text/markdown", "application/json")


class Site:
    """Cards by number of the agent."""

    def __init__(self, served: CardServer, agents: int, chance: random.Random) -> None:
        self._served = served
        self._chance = chance
        self.urls = [f"{served.url}/agent/{number}" for number in range(agents)]
        for url in self.urls:
            self.change(url)

    async def change_for_ever(self, pause: float) -> None:
        """Change one agent after the other, at random times."""
        while True:
            await asyncio.sleep(self._chance.expovariate(1 / pause))
            self.change(self._chance.choice(self.urls))
            self._served.seen.clear()

    def change(self, url: str) -> None:
        """Give an agent another card, or make it fail until its next change."""
        path = url.removeprefix(self._served.url) + CARD
        fate = self._chance.random()
        if fate < 0.06:
            self._served.replies[path] = Reply(b"busy", 503)
        elif fate < 0.09:
            self._served.replies[path] = Reply(b"[1, 2", 200)
        else:
            self._served.serve(self._card(url), path)

    def heal(self) -> None:
        """Make every agent answer with a card."""
        for url in self.urls:
            self._served.serve(self._card(url), url.removeprefix(self._served.url) + CARD)

    def _card(self, url: str) -> dict[str, Any]:
        pick = self._chance
        extra = pick.sample(SKILLS[1:], pick.randint(0, 3))
        return {
            "name": "Agent",
            "description": pick.choice(("one thing", "another thing")),
            "version": pick.choice(("1.0", "1.0", "1.1")),
            "supportedInterfaces": [
                {"url": f"{url}/{pick.choice('ab')}", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
            ],
            "capabilities": {"streaming": pick.random() < 0.8},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": [pick.choice(MODES)],
            "skills": [self._skill(name) for name in ("base", *extra)],
        }

    def _skill(self, name: str) -> dict[str, Any]:
        pick = self._chance
        skill: dict[str, Any] = {
            "id": name,
            "name": name,
            "description": pick.choice(("does it", "does it well")),
            "tags": pick.sample(TAGS, pick.randint(0, 2)),
        }
        if pick.random() < 0.5:
            skill["outputModes"] = pick.sample(MODES, pick.randint(1, 3))
        return skill


@asynccontextmanager
async def card_site(agents: int, chance: random.Random) -> AsyncIterator[Site]:
    """Serve cards on a free port of 127.0.0.1."""
    async with card_server() as served:
        yield Site(served, agents, chance)
