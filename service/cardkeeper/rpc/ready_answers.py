"""Answers to ResolveSkill that are ready as bytes.

A resolution is serialised once for each question and state, not once a call: the bytes of a question lead straight to the
bytes of its answer for as long as the agent's state is the one that was answered from, and fresh.
"""

from dataclasses import dataclass

from cardkeeper.clock import Clock
from cardkeeper.fleet.agent_state import AgentState
from cardkeeper.fleet.registry import Registry


@dataclass(frozen=True, slots=True)
class _Ready:
    answer: bytes
    state: AgentState
    agent_id: str
    until: float


class ReadyAnswers:
    """From question bytes to answer bytes; bounded, the oldest go first."""

    def __init__(self, registry: Registry, clock: Clock, *, max_entries: int = 20_000, max_bytes: int = 1024) -> None:
        # Bound once: this is the hot path.
        self._current = registry.by_id
        self._now = clock.monotonic
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._ready: dict[bytes, _Ready] = {}

    def get(self, question: bytes) -> bytes | None:
        """Return the answer if it is what a full resolve would give now."""
        ready = self._ready.get(question)
        if ready is None:
            return None
        if self._current(ready.agent_id) is ready.state and self._now() < ready.until:
            return ready.answer
        del self._ready[question]
        return None

    def put(self, question: bytes, answer: bytes, state: AgentState, until: float) -> None:
        """Keep an answer that holds until a monotonic instant, or until the agent's state is another one."""
        if len(question) > self._max_bytes:
            return
        self._ready[question] = _Ready(answer, state, state.record.id, until)
        if len(self._ready) > self._max_entries:
            del self._ready[next(iter(self._ready))]
