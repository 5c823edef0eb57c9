"""How long to wait before the next connection: full jitter, so that clients that were cut together do not return together."""

import random
from collections.abc import Callable

FIRST, MOST = 0.2, 10.0
"""Seconds."""


class Backoff:
    """Doubles with each failure, up to ten seconds; starts anew once a stream has been in sync."""

    def __init__(self, random_unit: Callable[[], float] = random.random) -> None:
        self._random = random_unit
        self._failures = 0

    def succeeded(self) -> None:
        """Start anew."""
        self._failures = 0

    def wait(self, *, hint: float | None = None) -> float:
        """Return seconds to wait: a random part of the hint, or of a ceiling that rises."""
        ceiling = min(FIRST * 2.0**self._failures, MOST) if hint is None else hint
        self._failures = min(self._failures + 1, 16)
        return self._random() * ceiling
