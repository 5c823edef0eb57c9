"""Background refresh: each card once in its lifetime, never in step with the others.

It also retries what failed, and what is suspect, as soon as its backoff allows.
"""

import asyncio
import heapq
import random
from collections.abc import Callable

from cardkeeper.clock import Clock
from cardkeeper.fleet.agent_state import AgentState
from cardkeeper.fleet.policy import FleetPolicy
from cardkeeper.fleet.refetch import Refetcher
from cardkeeper.fleet.registry import Registry
from cardkeeper.fleet.task_scope import TaskScope
from cardkeeper.store.base import Cause

TICK = 1.0
"""Seconds between two looks at what is due: the finest step that a schedule of minutes needs."""


class RefreshSchedule:
    """A heap of due times, one entry an agent and state; entries of replaced states are dropped when they surface."""

    def __init__(
        self,
        registry: Registry,
        refetcher: Refetcher,
        clock: Clock,
        policy: FleetPolicy,
        scope: TaskScope,
        random_unit: Callable[[], float] = random.random,
    ) -> None:
        self._registry = registry
        self._refetcher = refetcher
        self._clock = clock
        self._policy = policy
        self._scope = scope
        self._random = random_unit
        self._slots = asyncio.Semaphore(policy.max_refresh_concurrency)

    async def run(self) -> None:
        """Refresh what is due, for ever."""
        heap: list[tuple[float, str]] = []
        planned: dict[str, AgentState] = {}
        while True:
            for state in self._registry:
                if planned.get(state.record.id) is not state:
                    planned[state.record.id] = state
                    heapq.heappush(heap, (self.due(state), state.record.id))
            now = self._clock.monotonic()
            while heap and heap[0][0] <= now:
                _, agent_id = heapq.heappop(heap)
                current = self._registry.by_id(agent_id)
                if current is None:
                    planned.pop(agent_id, None)
                elif planned.get(agent_id) is current:
                    await self._slots.acquire()
                    del planned[agent_id]
                    self._scope.start(self._refresh(current), f"refresh {agent_id}")
            await asyncio.sleep(TICK)

    def due(self, state: AgentState) -> float:
        """When a state is due, in monotonic seconds."""
        record = state.record
        if record.failure is not None:
            return state.retry_at
        if record.suspicion is not None or state.card is None:
            return self._clock.monotonic()
        early = record.lifetime * self._policy.refresh_jitter * self._random()
        return state.fresh_until - early

    async def _refresh(self, state: AgentState) -> None:
        try:
            conditional = state.record.suspicion is None
            await self._refetcher.flight(state.record.agent_url, Cause.REFRESH, conditional=conditional)
        finally:
            self._slots.release()
