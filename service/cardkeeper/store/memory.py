"""The store in process memory: for tests, demonstrations and clients that need no restart.

Each opening begins empty and with a new epoch. No call suspends, so each is atomic.
"""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from cardkeeper.store.base import (
    AgentRecord,
    Commit,
    Compacted,
    Conflict,
    DriftRecord,
    Event,
    FleetImage,
    History,
    StoredCard,
    StoreUnavailable,
    new_epoch,
)
from cardkeeper.store.retention import surplus_cards


class MemoryStore:
    """A store.base.Store without durability."""

    def __init__(self, history: History | None = None) -> None:
        self._history = history or History()
        self._is_open = False
        self._clear()

    def _clear(self) -> None:
        self._agents: dict[str, AgentRecord] = {}
        self._events: deque[Event] = deque()
        self._named: Counter[str] = Counter()
        """Entries of the log by the agent that they name."""
        self._cards: dict[str, list[StoredCard]] = {}
        """Of each agent, oldest first."""
        self._drift: deque[DriftRecord] = deque(maxlen=self._history.drift_records)

    async def open(self) -> FleetImage:
        """Begin empty, with a new epoch."""
        self._clear()
        self._is_open = True
        return FleetImage(epoch=new_epoch(), sequence=0)

    async def commit(self, commit: Commit) -> Event:
        """Take the next revision for one change. Raises Conflict."""
        self._require_open()
        agent = commit.event.agent
        held = self._agents.get(agent)
        if (held.sequence if held else 0) != commit.expected:
            raise Conflict(f"{agent} is at {held.sequence if held else 0}, not at {commit.expected}")
        event = replace(commit.event, sequence=self._sequence + 1)
        if commit.record is None:
            self._agents.pop(agent, None)
        else:
            self._agents[agent] = replace(commit.record, sequence=event.sequence)
        if commit.card is not None:
            self._keep_card(replace(commit.card, sequence=event.sequence))
        self._log(event)
        return event

    async def agent(self, agent: str) -> AgentRecord | None:
        """Return an agent's record, or None."""
        self._require_open()
        return self._agents.get(agent)

    async def touch(self, record: AgentRecord) -> None:
        """Replace a record that is at the same sequence."""
        self._require_open()
        held = self._agents.get(record.id)
        if held is not None and held.sequence == record.sequence:
            self._agents[record.id] = record

    async def events_after(self, sequence: int) -> Sequence[Event]:
        """Return the events after a revision, in order. Raises Compacted."""
        self._require_open()
        bound = self._events[0].sequence - 1 if self._events else 0
        if sequence < bound:
            raise Compacted(f"the log begins after revision {bound}")
        return tuple(islice(self._events, sequence - bound, None))

    async def card(self, agent: str, digest: str) -> StoredCard | None:
        """Return the newest card of that skill fingerprint or card digest, or None."""
        self._require_open()
        for card in reversed(self._cards.get(agent, ())):
            if digest in (card.skill_fingerprint, card.card_digest):
                return card
        return None

    async def cards(self, agent: str, *, before: int, limit: int) -> Sequence[StoredCard]:
        """Return cards of revisions below `before` (0: all), newest first, with empty bodies."""
        self._require_open()
        older = (card for card in reversed(self._cards.get(agent, ())) if not before or card.sequence < before)
        return tuple(replace(card, body=b"") for card in islice(older, limit))

    async def add_drift(self, record: DriftRecord) -> DriftRecord:
        """Append to the log of drift events."""
        self._require_open()
        numbered = replace(record, number=self._drift[-1].number + 1 if self._drift else 1)
        self._drift.append(numbered)
        return numbered

    async def drift(self, agent: str, *, before: int, limit: int) -> Sequence[DriftRecord]:
        """Return drift events with numbers below `before` (0: all), newest first."""
        self._require_open()
        older = (record for record in reversed(self._drift) if not before or record.number < before)
        return tuple(islice((record for record in older if not agent or record.agent == agent), limit))

    async def close(self) -> None:
        """Forget everything."""
        self._clear()
        self._is_open = False

    @property
    def _sequence(self) -> int:
        return self._events[-1].sequence if self._events else 0

    def _require_open(self) -> None:
        if not self._is_open:
            raise StoreUnavailable("the store is not open")

    def _keep_card(self, card: StoredCard) -> None:
        held = self._agents.get(card.agent)
        kept = [*self._cards.get(card.agent, ()), card]
        known = [(item.sequence, item.card_digest) for item in kept]
        surplus = set(surplus_cards(known, held.card_digest if held else "", self._history.cards_per_agent))
        self._cards[card.agent] = [item for item in kept if item.sequence not in surplus]

    def _log(self, event: Event) -> None:
        self._events.append(event)
        self._named[event.agent] += 1
        while len(self._events) > self._history.events:
            agent = self._events.popleft().agent
            self._named[agent] -= 1
            if not self._named[agent]:
                del self._named[agent]
                if agent not in self._agents:
                    self._cards.pop(agent, None)
