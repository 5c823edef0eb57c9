"""Token buckets: how often one agent may be fetched, and how often one reporter may cause it."""

from collections import OrderedDict

from cardkeeper.clock import Clock


class Budget:
    """One bucket a key, refilled by one token each `interval` seconds up to `burst`; bounded in keys.

    A key that was forgotten to make room starts anew with a full bucket, so the bound on keys should exceed the number of
    those who are active within burst x interval seconds.
    """

    def __init__(self, clock: Clock, *, burst: int, interval: float, max_keys: int = 65_536) -> None:
        self._clock = clock
        self._burst = float(burst)
        self._interval = interval
        self._max_keys = max_keys
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, key: str) -> float:
        """Return the seconds until `key` has a token: 0 if it has one now."""
        tokens = self._level(key)
        return 0.0 if tokens >= 1.0 else (1.0 - tokens) * self._interval

    def take(self, key: str) -> bool:
        """Take a token if there is one, and say so."""
        tokens = self._level(key)
        if tokens < 1.0:
            return False
        self._buckets[key] = (tokens - 1.0, self._clock.monotonic())
        self._buckets.move_to_end(key)
        if len(self._buckets) > self._max_keys:
            self._buckets.popitem(last=False)
        return True

    def _level(self, key: str) -> float:
        tokens, at = self._buckets.get(key, (self._burst, 0.0))
        return min(self._burst, tokens + (self._clock.monotonic() - at) / self._interval)
