"""How long to wait before the next connection: full jitter, so that clients that were cut together do not return together."""

import random
from collections.abc import Callable

FIRST, MOST = 0.2, 10.0
"""Seconds."""
LONGEST_HINT = 60.0
"""Seconds that a server may ask for; a longer wish is cut, so that nobody can send a client away for good."""


class Backoff:
    """Doubles with each failure, up to ten seconds; starts anew once a stream has been in sync."""

    def __init__(self, random_unit: Callable[[], float] = random.random) -> None:
        self._random = random_unit
        self._failures = 0

    def succeeded(self) -> None:
        """Start anew."""
        self._failures = 0

    def after(self, at_least: float = 0.0) -> float:
        """Seconds to wait after a failure: what the server asked for (RetryInfo), and a random part of a rising ceiling."""
        ceiling = min(FIRST * 2.0**self._failures, MOST)
        self._failures = min(self._failures + 1, 16)
        return min(at_least, LONGEST_HINT) + self._random() * ceiling

    def within(self, most: float) -> float:
        """Seconds to wait after an orderly end: a random part of what the server grants (Draining)."""
        return self._random() * min(most, LONGEST_HINT)
