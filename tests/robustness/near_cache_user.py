"""A user of the Python client: asks again and again, mostly answered from memory, and notes every answer."""

import asyncio
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from cardkeeper_client import CardkeeperAsync, ServiceError
from cardkeeper_client.v1 import discovery_service_pb2 as pb
from robustness.frame_steps import agent_id
from robustness.watcher import FORBIDDEN
from trace_history import Point
from trace_record import Resolved, Step

FORBIDDEN_NAMES = frozenset(code.name for code in FORBIDDEN)


class NearCacheUser:
    """One client after the other. No answer may be older than what its client's stream, or an answer, told before."""

    def __init__(
        self,
        target: str,
        agents: Sequence[str],
        chance: random.Random,
        note: Callable[[Step], None],
        complain: Callable[[str], None],
    ) -> None:
        self._target = target
        self._agents = agents
        self._chance = chance
        self._note = note
        self._complain = complain
        self._known: dict[str, Point] = {}
        """Newest state of each agent that the present client knows of, by the agent's id."""

    async def run(self, finishing: asyncio.Event) -> None:
        """Use clients until told to finish; the last one has to come in sync."""
        while not finishing.is_set():
            async with self._client() as cards:
                await self._use(cards, finishing)
        async with self._client() as cards:
            if not await cards.wait_until_in_sync(60.0):
                self._complain("a near cache could not come in sync at the end")

    def _client(self) -> CardkeeperAsync:
        cards = CardkeeperAsync(self._target, timeout=5.0)
        self._known = {}
        apply = cards._session.apply

        def listen(frame: pb.WatchInvalidationsResponse, *more: Any) -> Any:
            reaction = apply(frame, *more)
            if frame.HasField("invalidation"):
                at = frame.invalidation.agent_revision
                self._learn(agent_id(frame.invalidation.agent), Point(at.epoch, at.sequence))
            return reaction

        cards._session.apply = listen  # type: ignore[method-assign] # to hear what the client hears
        return cards

    async def _use(self, cards: CardkeeperAsync, finishing: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._chance.uniform(2.0, 30.0)
        while not finishing.is_set() and loop.time() < end:
            number = self._chance.randrange(len(self._agents))
            name = f"agents/agent-{number}"
            floor = self._known.get(agent_id(name))
            with suppress(ServiceError):
                await self._ask(cards, name, floor)
            await asyncio.sleep(self._chance.random() * 0.02)

    async def _ask(self, cards: CardkeeperAsync, name: str, floor: Point | None) -> None:
        try:
            found = await cards.resolve(name, "base")
        except ServiceError as error:
            if error.code in FORBIDDEN_NAMES:
                self._complain(f"resolve ended with {error.code}: {error}")
            raise
        if found.agent != name:
            self._complain(f"resolve of {name} answers for {found.agent}")
        at = Point(found.epoch, found.sequence)
        agent = agent_id(found.agent)
        self._note(Resolved(agent=agent, fingerprint=found.skill_fingerprint, at=at, floor=floor, kept=False))
        self._learn(agent, at)

    def _learn(self, agent: str, at: Point) -> None:
        known = self._known.get(agent)
        if known is None or known.epoch != at.epoch or known < at:
            self._known[agent] = at
