"""Answers to ResolveSkill that are ready as bytes.

A resolution is serialised once for each question and state, not once a call: the bytes of a question lead straight to the
bytes of its answer for as long as the agent's state is the one that was answered from, and fresh.
"""

from collections import OrderedDict
from dataclasses import dataclass

from cardkeeper.clock import Clock
from cardkeeper.fleet.agent_state import AgentState
from cardkeeper.fleet.registry import Registry


@dataclass(frozen=True, slots=True)
class _Ready:
    answer: bytes
    state: AgentState
    until: float


class ReadyAnswers:
    """A bounded LRU from question bytes to answer bytes."""

    def __init__(self, registry: Registry, clock: Clock, *, max_entries: int = 20_000, max_bytes: int = 1024) -> None:
        self._registry = registry
        self._clock = clock
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._ready: OrderedDict[bytes, _Ready] = OrderedDict()

    def get(self, question: bytes) -> bytes | None:
        """Return the answer if it is what a full resolve would give now."""
        ready = self._ready.get(question)
        if ready is None:
            return None
        if self._registry.by_id(ready.state.record.id) is ready.state and self._clock.monotonic() < ready.until:
            self._ready.move_to_end(question)
            return ready.answer
        del self._ready[question]
        return None

    def put(self, question: bytes, answer: bytes, state: AgentState, until: float) -> None:
        """Keep an answer that holds until a monotonic instant, or until the agent's state is another one."""
        if len(question) > self._max_bytes:
            return
        self._ready[question] = _Ready(answer, state, until)
        if len(self._ready) > self._max_entries:
            self._ready.popitem(last=False)
