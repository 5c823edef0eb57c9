"""The bounded cache: its bound, its lifetimes, and no timer left behind."""

import asyncio

import pytest

from cardkeeper.store.cache import BoundedCache


def timers() -> int:
    """Timers that the running loop still waits for."""
    return sum(not handle.cancelled() for handle in asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined] # CPython's own list


async def test_a_value_is_kept_as_it_is():
    cache: BoundedCache[object] = BoundedCache(max_entries=2, ttl=60)
    value = object()
    await cache.set("a", value)
    assert await cache.get("a") is value
    assert await cache.get("b") is None
    await cache.close()


async def test_a_value_set_again_replaces_the_old_one():
    cache: BoundedCache[bytes] = BoundedCache(max_entries=1, ttl=60)
    await cache.set("a", b"1")
    await cache.set("a", b"2")
    assert await cache.get("a") == b"2"
    assert len(cache) == 1
    await cache.close()


async def test_a_deleted_value_is_gone_and_deleting_nothing_is_no_error():
    cache: BoundedCache[bytes] = BoundedCache(max_entries=2, ttl=60)
    await cache.set("a", b"1")
    await cache.delete("a")
    await cache.delete("a")
    assert await cache.get("a") is None
    assert len(cache) == 0


async def test_the_least_recently_used_value_goes_first():
    cache: BoundedCache[int] = BoundedCache(max_entries=3, ttl=60)
    for number in range(3):
        await cache.set(str(number), number)
    await cache.get("0")
    await cache.set("3", 3)
    assert [await cache.get(key) for key in "0123"] == [0, None, 2, 3]
    await cache.close()


async def test_the_bound_holds_however_much_is_set():
    cache: BoundedCache[int] = BoundedCache(max_entries=10, ttl=60)
    for number in range(1000):
        await cache.set(str(number), number)
    assert len(cache) == len(cache._values._cache) == timers() == 10
    await cache.close()


async def test_a_value_ends_with_its_lifetime():
    cache: BoundedCache[int] = BoundedCache(max_entries=3, ttl=0.02)
    await cache.set("a", 1)
    assert await cache.get("a") == 1
    await asyncio.sleep(0.05)
    assert await cache.get("a") is None
    assert len(cache) == 0


async def test_a_value_set_again_begins_its_lifetime_anew():
    cache: BoundedCache[int] = BoundedCache(max_entries=3, ttl=0.2)
    await cache.set("a", 1)
    await asyncio.sleep(0.12)
    await cache.set("a", 2)
    await asyncio.sleep(0.12)
    assert await cache.get("a") == 2
    await cache.close()


async def test_expired_entries_make_room_before_live_ones():
    cache: BoundedCache[int] = BoundedCache(max_entries=2, ttl=0.05)
    await cache.set("old", 1)
    await asyncio.sleep(0.08)
    await cache.set("a", 1)
    await cache.set("b", 2)
    assert (await cache.get("a"), await cache.get("b")) == (1, 2)
    await cache.close()


async def test_a_timer_of_before_close_does_not_delete_a_later_value():
    cache: BoundedCache[int] = BoundedCache(max_entries=3, ttl=0.05)
    await cache.set("a", 1)
    await cache.close()
    cache._ttl = 60
    await cache.set("a", 2)
    await asyncio.sleep(0.08)
    assert await cache.get("a") == 2
    await cache.close()


async def test_close_leaves_no_timer_and_may_be_called_twice():
    cache: BoundedCache[int] = BoundedCache(max_entries=3, ttl=60)
    for number in range(5):
        await cache.set(str(number), number)
    await cache.close()
    await cache.close()
    assert timers() == 0
    assert len(cache) == 0


@pytest.mark.parametrize(("max_entries", "ttl"), [(0, 1.0), (-1, 1.0), (1, 0.0), (1, -1.0), (1, float("nan"))])
def test_a_cache_without_bound_or_lifetime_is_refused(max_entries: int, ttl: float):
    with pytest.raises(ValueError, match="at least one entry"):
        BoundedCache(max_entries=max_entries, ttl=ttl)
