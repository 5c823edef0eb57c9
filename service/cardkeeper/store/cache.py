"""A bounded cache, for what can be had again: parsed snapshots, ready-made answers, negative answers.

Over aiocache, which gives the interface and the lifetimes; the bound is ours, because its memory engine has none.
Coherence (revisions, events) is the store's, never a cache's.
"""

from collections import OrderedDict
from typing import Generic, TypeVar, cast

from aiocache import SimpleMemoryCache
from aiocache.serializers import NullSerializer

V = TypeVar("V")


class BoundedCache(Generic[V]):
    """At most `max_entries` values, each for at most `ttl` seconds; the least recently used one goes first.

    Values are kept as they are, so they should be immutable. None cannot be told from "not there".
    """

    def __init__(self, *, max_entries: int, ttl: float) -> None:
        if max_entries < 1 or not ttl > 0:
            raise ValueError("a cache keeps at least one entry for more than 0 seconds")
        self._max_entries = max_entries
        self._ttl = ttl
        # timeout=None: the default wraps each call in wait_for, five times the price of a get.
        self._values = SimpleMemoryCache(serializer=NullSerializer(encoding=None), timeout=None)
        self._recency: OrderedDict[str, None] = OrderedDict()
        """Keys, least recently used first. An expired one stays until it is asked for or is the oldest."""

    def __len__(self) -> int:
        """Number of entries held; an upper bound, as expired ones may still count."""
        return len(self._recency)

    async def get(self, key: str) -> V | None:
        """Return the value, or None where there is none or its lifetime is over."""
        value = cast("V | None", await self._values.get(key))
        if value is None:
            self._recency.pop(key, None)
        else:
            self._recency.move_to_end(key)
        return value

    async def set(self, key: str, value: V) -> None:
        """Keep a value; its lifetime begins anew."""
        await self._values.set(key, value, ttl=self._ttl)
        self._recency[key] = None
        self._recency.move_to_end(key)
        while len(self._recency) > self._max_entries:
            await self.delete(next(iter(self._recency)))

    async def delete(self, key: str) -> None:
        """Forget a value, if it is there."""
        self._recency.pop(key, None)
        await self._values.delete(key)

    async def close(self) -> None:
        """Forget all values and their timers; safe to call twice, and the cache can be used again."""
        # Key by key: aiocache's clear() leaves the timers, which later delete newer values of the same keys.
        for key in list(self._recency):
            await self.delete(key)
