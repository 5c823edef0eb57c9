"""Time, injected: no other module of the service reads a clock of its own."""

import time
from typing import Protocol


class Clock(Protocol):
    """Two clocks: wall time for what people and other machines read, monotonic time for every wait and lifetime."""

    def now(self) -> float:
        """Seconds since the Unix epoch; may step."""
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never steps."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> float:
        """Seconds since the Unix epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds since an arbitrary start."""
        return time.monotonic()


class ManualClock:
    """Clocks that stand still until they are told to move."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now
        self._monotonic = 1_000.0

    def now(self) -> float:
        """Seconds since the Unix epoch."""
        return self._now

    def monotonic(self) -> float:
        """Seconds since an arbitrary start."""
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        self._now += seconds
        self._monotonic += seconds

    def step_wall(self, seconds: float) -> None:
        """Step wall time alone, as an operator or NTP does."""
        self._now += seconds
