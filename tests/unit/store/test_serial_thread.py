"""The thread that makes blocking calls: order, deadlines, bounds, callers that go away."""

import asyncio
import threading
from functools import partial

import pytest

from cardkeeper.store.serial_thread import Backlogged, Overdue, SerialThread


class Gate:
    """A call that blocks until it is let through."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.open = threading.Event()

    def __call__(self) -> str:
        self.entered.set()
        assert self.open.wait(10)
        return "through"


@pytest.fixture
async def thread():
    serial = SerialThread("test", backlog=3)
    yield serial
    await serial.close(5, lambda: None)
    serial._thread.join(5)
    assert not serial._thread.is_alive()


async def test_calls_are_made_in_order_in_one_other_thread(thread: SerialThread):
    seen = []
    await asyncio.gather(*(thread.run(5, partial(seen.append, (n,))) for n in range(3)))
    assert seen == [(0,), (1,), (2,)]
    assert await thread.run(5, threading.get_ident) != threading.get_ident()
    assert await thread.run(5, threading.get_ident) == thread._thread.ident


async def test_what_a_call_raises_reaches_its_caller_and_the_thread_goes_on(thread: SerialThread):
    with pytest.raises(ZeroDivisionError):
        await thread.run(5, lambda: 1 // 0)
    with pytest.raises(TimeoutError, match="own"):  # its own, not the deadline's
        await thread.run(5, _raise, TimeoutError("own"))
    assert await thread.run(5, lambda: 3) == 3


def _raise(error: Exception) -> None:
    raise error


async def test_the_event_loop_goes_on_while_a_call_blocks(thread: SerialThread):
    gate = Gate()
    call = asyncio.create_task(thread.run(5, gate))
    while not gate.entered.is_set():
        await asyncio.sleep(0.001)
    gate.open.set()
    assert await call == "through"


async def test_past_the_deadline_the_caller_is_told_and_the_call_goes_on(thread: SerialThread):
    gate, done = Gate(), []
    with pytest.raises(Overdue, match=r"0\.02 s"):
        await thread.run(0.02, lambda: done.append(gate()))
    gate.open.set()
    await thread.run(5, lambda: None)
    assert done == ["through"]


async def test_a_call_that_was_not_begun_is_taken_back(thread: SerialThread):
    gate, done = Gate(), []
    blocking = asyncio.create_task(thread.run(5, gate))
    cancelled = asyncio.create_task(thread.run(5, done.append, "cancelled"))
    await asyncio.sleep(0.01)
    with pytest.raises(Overdue):
        await thread.run(0.01, done.append, "overdue")
    cancelled.cancel()
    await asyncio.wait([cancelled])
    gate.open.set()
    assert await blocking == "through"
    await thread.run(5, lambda: None)
    assert cancelled.cancelled()
    assert done == []


async def test_too_many_waiting_calls_are_refused_at_once_even_where_they_were_taken_back(thread: SerialThread):
    gate = Gate()
    blocking = asyncio.create_task(thread.run(5, gate))
    while not gate.entered.is_set():
        await asyncio.sleep(0.001)
    for _ in range(3):
        with pytest.raises(Overdue):
            await thread.run(0.001, lambda: None)
    with pytest.raises(Backlogged, match="3 calls"):
        await thread.run(5, lambda: None)
    gate.open.set()
    assert await blocking == "through"
    assert await thread.run(5, lambda: 1) == 1


async def test_close_waits_for_what_was_asked_before():
    serial, gate, done = SerialThread("test", backlog=3), Gate(), []
    blocking = asyncio.create_task(serial.run(5, gate))
    waiting = asyncio.create_task(serial.run(5, done.append, "waited"))
    closing = asyncio.create_task(serial.close(5, lambda: done.append("closed")))
    await asyncio.sleep(0.01)
    assert not closing.done()
    gate.open.set()
    await asyncio.gather(blocking, waiting, closing)
    assert done == ["waited", "closed"]


async def test_a_thread_that_cannot_end_in_time_is_said():
    serial, gate = SerialThread("test", backlog=3), Gate()
    blocking = asyncio.create_task(serial.run(5, gate))
    await asyncio.sleep(0.01)
    with pytest.raises(Overdue):
        await serial.close(0.01, lambda: None)
    gate.open.set()
    await blocking
    serial._thread.join(5)
    assert not serial._thread.is_alive()
