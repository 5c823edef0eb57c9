"""Single flight: however many ask for the same work at once, it is done once.

The work belongs to the scope, not to whoever asked first: a caller whose deadline ends, or who goes away, leaves it to the
others.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from cardkeeper.errors import DeadlineTooShort
from cardkeeper.fleet.task_scope import TaskScope

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Flights by key. Bounded by the number of distinct keys in the air."""

    def __init__(self, scope: TaskScope) -> None:
        self._scope = scope
        self._flights: dict[str, asyncio.Task[T]] = {}

    def current(self, key: str) -> "asyncio.Task[T] | None":
        """Return the flight of that key that is in the air, or None."""
        return self._flights.get(key)

    def start(self, key: str, work: Callable[[], Coroutine[Any, Any, T]]) -> "asyncio.Task[T]":
        """Return the flight of that key, started now if there is none."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._scope.start(work(), f"flight {key}")
            self._flights[key] = flight
            flight.add_done_callback(lambda ended: self._land(key, ended))
        return flight

    def _land(self, key: str, flight: "asyncio.Task[T]") -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]


async def wait_for(flight: "asyncio.Task[T]", timeout: float, agent: str) -> T:
    """Wait for a flight without owning it. Raises DeadlineTooShort after `timeout` seconds; the flight goes on."""
    try:
        async with asyncio.timeout(timeout):
            return await asyncio.shield(flight)
    except TimeoutError:
        raise DeadlineTooShort(
            f"the card of {agent} was not there within {timeout:.1f} s; the fetch goes on, ask again with a longer deadline",
            metadata={"agent": agent},
        ) from None
