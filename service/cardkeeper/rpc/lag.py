"""How far a client is behind, judged by its acknowledgements.

The transport does not tell: a client that never reads absorbs thousands of frames before a write blocks.
"""

from cardkeeper.clock import Clock


class Lag:
    """Acknowledgements against what was sent. A client that never acknowledged is not judged."""

    def __init__(self, clock: Clock, timeout: float) -> None:
        self._clock = clock
        self._timeout = timeout
        self.acknowledged = -1
        self._sent = 0
        self._waiting_since: float | None = None

    def sent(self, sequence: int) -> None:
        """Note that everything up to a revision was sent."""
        if sequence > self._sent:
            self._sent = sequence
            if self._waiting_since is None:
                self._waiting_since = self._clock.monotonic()

    def acknowledge(self, sequence: int) -> None:
        """Note an acknowledgement; a lower one than before changes nothing, one of the future counts as of now."""
        sequence = min(sequence, self._sent)
        if sequence > self.acknowledged:
            self.acknowledged = sequence
            self._waiting_since = None if sequence >= self._sent else self._clock.monotonic()

    def overdue(self) -> bool:
        """Whether a client that acknowledges has made no progress for too long."""
        if self.acknowledged < 0 or self._waiting_since is None:
            return False
        return self._clock.monotonic() - self._waiting_since > self._timeout
