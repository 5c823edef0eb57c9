"""The agents that are kept, and the one way in which their state changes."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from cardkeeper.card.model import Card
from cardkeeper.card.parse import parse_card
from cardkeeper.clock import Clock
from cardkeeper.errors import CardInvalid, Unavailable
from cardkeeper.fleet.agent_state import AgentState, agent_state
from cardkeeper.fleet.policy import FleetPolicy
from cardkeeper.fleet.revision_log import RevisionLog
from cardkeeper.fleet.task_scope import TaskScope
from cardkeeper.store.base import AgentRecord, Commit, Conflict, Event, Store, StoreUnavailable

log = logging.getLogger(__name__)

DOUBT_INTERVAL = 1.0
"""Seconds between attempts to read what became of a commit whose outcome is unknown."""


class Registry:
    """Agents by id and by canonical URL, in step with the store.

    Reads are plain look-ups. Every write goes through `commit` or `touch`.
    """

    def __init__(
        self, store: Store, revisions: RevisionLog, clock: Clock, policy: FleetPolicy, scope: TaskScope
    ) -> None:
        self.store = store
        self.revisions = revisions
        self._clock = clock
        self._policy = policy
        self._scope = scope
        self._by_id: dict[str, AgentState] = {}
        self._id_by_url: dict[str, str] = {}
        self._committing = asyncio.Lock()
        self._in_doubt = False
        """A commit's outcome is unknown: the store is read before the next one."""

    async def open(self) -> None:
        """Load what the store holds. Raises StoreUnavailable."""
        image = await self.store.open()
        self.revisions.start(image.epoch, image.sequence)
        for record in image.agents:
            self._put(record, await self._stored_card(record))

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[AgentState]:
        return iter(list(self._by_id.values()))

    def by_id(self, agent_id: str) -> AgentState | None:
        """Return the agent of that id."""
        return self._by_id.get(agent_id)

    def by_url(self, agent_url: str) -> AgentState | None:
        """Return the agent of that canonical URL."""
        agent_id = self._id_by_url.get(agent_url)
        return None if agent_id is None else self._by_id.get(agent_id)

    async def commit(self, commit: Commit, card: Card | None) -> Event:
        """Take a revision for one change: store it, swap the state, tell the subscribers.

        Goes on to its end even where the caller is cancelled. Raises store.base.Conflict where the agent is not as the
        committer knew it, and Unavailable where the store does not take it.
        """
        committing = self._scope.start(
            self._commit(commit, card), f"commit {commit.event.agent}", expected=(Conflict, Unavailable)
        )
        return await asyncio.shield(committing)

    async def touch(self, record: AgentRecord, card: Card | None) -> None:
        """Keep freshness or failure of an agent without a revision.

        What cannot be stored is kept in memory all the same: it is only when the card was last seen.
        """
        current = self._by_id.get(record.id)
        if current is None or current.record.sequence != record.sequence:
            return
        self._put(record, card)
        try:
            await self.store.touch(record)
        except StoreUnavailable as error:
            log.warning("freshness of %s is not stored: %s", record.id, error)

    async def _commit(self, commit: Commit, card: Card | None) -> Event:
        async with self._committing:
            try:
                if self._in_doubt:
                    await self._catch_up()
                self._check_url(commit)
                event = await self.store.commit(commit)
            except StoreUnavailable as error:
                if not self._in_doubt:
                    self._in_doubt = True
                    self._scope.start(self._settle_doubt(), "commit in doubt")
                raise Unavailable(
                    f"the store took no change: {error}", reason="STORE_UNAVAILABLE", retry_after=1.0
                ) from error
            if commit.record is None:
                self._drop(commit.event.agent)
            else:
                self._put(replace(commit.record, sequence=event.sequence), card)
            self.revisions.append(event)
            return event

    def _check_url(self, commit: Commit) -> None:
        """Raise Conflict where another agent has the URL: the store compares by id, and two may have met an agent at once."""
        if commit.record is None:
            return
        holder = self._id_by_url.get(commit.record.agent_url, commit.record.id)
        if holder != commit.record.id:
            raise Conflict(f"{commit.record.agent_url} is kept as {holder}, not as {commit.record.id}")

    async def _settle_doubt(self) -> None:
        """See to it that a change which was taken after all is told, even if no other commit follows."""
        while self._in_doubt:
            await asyncio.sleep(DOUBT_INTERVAL)
            async with self._committing:
                if self._in_doubt:
                    with suppress(StoreUnavailable):
                        await self._catch_up()

    async def _catch_up(self) -> None:
        """Apply events that the store took although their commit seemed to fail."""
        for event in await self.store.events_after(self.revisions.sequence):
            record = await self.store.agent(event.agent)
            if record is None:
                self._drop(event.agent)
            else:
                self._put(record, await self._stored_card(record))
            self.revisions.append(event)
        self._in_doubt = False

    async def _stored_card(self, record: AgentRecord) -> Card | None:
        stored = await self.store.card(record.id, record.card_digest) if record.card_digest else None
        if stored is None:
            return None
        try:
            return parse_card(stored.body, stored.card_url)
        except CardInvalid as error:
            # Another release of this service took it for a card; it is fetched again on first use.
            log.warning("the stored card of %s is refused: %s", record.id, error)
            return None

    def _put(self, record: AgentRecord, card: Card | None) -> None:
        self._by_id[record.id] = agent_state(
            record, card, self._clock, hard_lifetime=self._policy.hard_lifetime, previous=self._by_id.get(record.id)
        )
        self._id_by_url[record.agent_url] = record.id

    def _drop(self, agent_id: str) -> None:
        state = self._by_id.pop(agent_id, None)
        if state is not None:
            self._id_by_url.pop(state.record.agent_url, None)
