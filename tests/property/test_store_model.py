"""Each engine against a model of fifty lines, whatever is done in whatever order, reopening included."""

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from cardkeeper.store.base import (
    AgentRecord,
    Commit,
    Compacted,
    Conflict,
    DriftRecord,
    Event,
    History,
    Store,
    StoredCard,
)
from cardkeeper.store.memory import MemoryStore
from cardkeeper.store.sqlite import SqliteStore
from store_records import change_to, drift_of, removal, without_card

HISTORY = History(events=5, cards_per_agent=2, drift_records=3)
AGENTS = st.sampled_from(["a", "b", "c"])
DIGESTS = st.sampled_from(["d1", "d2", "d3", "d4"])
SURFACES = st.sampled_from(["s1", "s2", "d1"])
OFFSETS = st.sampled_from([0, 0, 0, 0, -1, 1])
"""How far off the committer's knowledge is."""


class Model:
    """What a store should be, without thought for speed: nothing is ever deleted, only counted out when asked."""

    def __init__(self) -> None:
        self.agents: dict[str, AgentRecord] = {}
        self.log: list[Event] = []
        self.all_cards: list[StoredCard] = []
        self.drift: list[DriftRecord] = []

    def sequence_of(self, agent: str) -> int:
        return self.agents[agent].sequence if agent in self.agents else 0

    def commit(self, commit: Commit) -> Event | None:
        agent = commit.event.agent
        if self.sequence_of(agent) != commit.expected:
            return None
        event = replace(commit.event, sequence=len(self.log) + 1)
        self.log.append(event)
        self.agents.pop(agent, None)
        if commit.record:
            self.agents[agent] = replace(commit.record, sequence=event.sequence)
        if commit.card:
            self.all_cards.append(replace(commit.card, sequence=event.sequence))
            self._let_go(agent)
        named = {item.agent for item in self.log[-HISTORY.events :]} | set(self.agents)
        self.all_cards = [card for card in self.all_cards if card.agent in named]
        return event

    def _let_go(self, agent: str) -> None:
        while len(cards := self.cards(agent)) > HISTORY.cards_per_agent:
            digest = self.agents[agent].card_digest if agent in self.agents else ""
            current = next((card for card in cards if card.card_digest == digest), None)
            self.all_cards.remove(next(card for card in reversed(cards) if card is not current))

    def cards(self, agent: str) -> list[StoredCard]:
        return [card for card in reversed(self.all_cards) if card.agent == agent]

    def card(self, agent: str, digest: str) -> StoredCard | None:
        return next((c for c in self.cards(agent) if digest in (c.card_digest, c.skill_fingerprint)), None)


class EngineMachine(RuleBasedStateMachine):
    """Does the same to the engine and to the model."""

    engine: Store

    def make(self) -> Store:
        raise NotImplementedError

    @initialize()
    def begin(self) -> None:
        self.runner = asyncio.Runner()
        self.engine = self.make()
        self.epoch = self.run(self.engine.open()).epoch
        self.model = Model()

    def run(self, call: Awaitable):
        return self.runner.run(call)

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            self.run(self.engine.close())
            self.runner.close()

    def _commit(self, commit: Commit) -> None:
        expected = self.model.commit(commit)
        if expected is None:
            with pytest.raises(Conflict):
                self.run(self.engine.commit(commit))
        else:
            assert self.run(self.engine.commit(commit)) == expected

    @rule(agent=AGENTS, digest=DIGESTS, surface=SURFACES, off=OFFSETS)
    def change(self, agent: str, digest: str, surface: str, off: int) -> None:
        self._commit(change_to(agent, digest, surface=surface, expected=self.model.sequence_of(agent) + off))

    @rule(agent=AGENTS, digest=DIGESTS, off=OFFSETS)
    def change_without_a_document(self, agent: str, digest: str, off: int) -> None:
        self._commit(without_card(change_to(agent, digest, expected=self.model.sequence_of(agent) + off)))

    @rule(agent=AGENTS, digest=DIGESTS, named=DIGESTS)
    def keep_a_document_that_is_not_the_current_one(self, agent: str, digest: str, named: str) -> None:
        commit = change_to(agent, digest, expected=self.model.sequence_of(agent))
        self._commit(replace(commit, record=replace(commit.record, card_digest=named)))

    @rule(agent=AGENTS, off=OFFSETS)
    def remove(self, agent: str, off: int) -> None:
        self._commit(removal(agent, expected=self.model.sequence_of(agent) + off))

    @rule(agent=AGENTS, etag=st.text(max_size=3), off=OFFSETS)
    def touch(self, agent: str, etag: str, off: int) -> None:
        record = self.model.agents.get(agent) or AgentRecord(id=agent, agent_url="")
        touched = replace(record, etag=etag, sequence=record.sequence + off)
        if touched.sequence == self.model.sequence_of(agent) != 0:
            self.model.agents[agent] = touched
        self.run(self.engine.touch(touched))

    @rule(agent=AGENTS)
    def add_drift(self, agent: str) -> None:
        self.model.drift.append(replace(drift_of(agent), number=len(self.model.drift) + 1))
        assert self.run(self.engine.add_drift(drift_of(agent))) == self.model.drift[-1]

    @rule(back=st.integers(0, 8))
    def read_the_log(self, back: int) -> None:
        after = max(0, len(self.model.log) - back)
        if len(self.model.log) - after > HISTORY.events:
            with pytest.raises(Compacted):
                self.run(self.engine.events_after(after))
        else:
            assert list(self.run(self.engine.events_after(after))) == self.model.log[after:]

    @rule(agent=AGENTS, digest=DIGESTS | SURFACES)
    def read_a_card(self, agent: str, digest: str) -> None:
        assert self.run(self.engine.card(agent, digest)) == self.model.card(agent, digest)

    @rule(agent=AGENTS, before=st.integers(0, 12), limit=st.integers(1, 3))
    def page_cards(self, agent: str, before: int, limit: int) -> None:
        expected = [replace(c, body=b"") for c in self.model.cards(agent) if not before or c.sequence < before]
        assert list(self.run(self.engine.cards(agent, before=before, limit=limit))) == expected[:limit]

    @rule(agent=AGENTS | st.just(""), before=st.integers(0, 6), limit=st.integers(1, 3))
    def page_drift(self, agent: str, before: int, limit: int) -> None:
        kept = reversed(self.model.drift[-HISTORY.drift_records :])
        expected = [d for d in kept if (not before or d.number < before) and agent in ("", d.agent)]
        assert list(self.run(self.engine.drift(agent, before=before, limit=limit))) == expected[:limit]

    @invariant()
    def records_are_the_same(self) -> None:
        if hasattr(self, "model"):
            for agent in "abc":
                assert self.run(self.engine.agent(agent)) == self.model.agents.get(agent)


class MemoryMachine(EngineMachine):
    def make(self) -> Store:
        return MemoryStore(HISTORY)


class SqliteMachine(EngineMachine):
    def make(self) -> Store:
        self.folder = tempfile.mkdtemp()
        return SqliteStore(Path(self.folder, "store.db"), HISTORY)

    @precondition(lambda self: hasattr(self, "engine"))
    @rule()
    def reopen(self) -> None:
        self.run(self.engine.close())
        image = self.run(self.engine.open())
        assert image.epoch == self.epoch
        assert image.sequence == len(self.model.log)
        assert {record.id: record for record in image.agents} == self.model.agents

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)


@pytest.mark.parametrize("machine", [MemoryMachine, SqliteMachine])
def test_an_engine_behaves_as_the_model_does(machine):
    steps = settings(max_examples=60, stateful_step_count=40, deadline=None)
    run_state_machine_as_test(machine, settings=steps)
