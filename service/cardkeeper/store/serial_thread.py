"""One thread that makes blocking calls, one after another, away from the event loop."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_Job = tuple["Future[Any]", Callable[[], Any]]


class Overdue(Exception):
    """The call did not end within its deadline. One that had begun goes on to its end, unseen."""


class Backlogged(Exception):
    """Too many calls wait already."""


class SerialThread:
    """Runs calls in order in a thread of its own; used from one event loop.

    A caller that is cancelled, or whose deadline passes, takes its call back if it has not begun; otherwise the call goes
    on, so that it is never left half done.
    """

    def __init__(self, name: str, *, backlog: int) -> None:
        self._backlog = backlog
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        # A daemon: a disk that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def run(self, timeout: float, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what the call returns, or raise what it raises.

        Raises Backlogged at once where too many wait, and Overdue after `timeout` seconds.
        """
        # Only this event loop adds, so the bound holds; calls taken back count until the thread has passed them.
        if self._jobs.qsize() >= self._backlog:
            raise Backlogged(f"{self._backlog} calls wait already")
        return await self._run(timeout, lambda: call(*args, **kwargs))

    async def close(self, timeout: float, last: Callable[[], None]) -> None:
        """Run `last` after all calls that wait, and end the thread. Raises Overdue where it does not end in time."""
        try:
            await self._run(timeout, last)
        finally:
            self._jobs.put(None)

    async def _run(self, timeout: float, call: Callable[[], T]) -> T:
        future: Future[T] = Future()
        self._jobs.put((future, call))
        deadline = asyncio.timeout(timeout)
        try:
            async with deadline:
                return await asyncio.wrap_future(future)  # cancelling it cancels the job, unless it has begun
        except TimeoutError as error:
            if not deadline.expired():
                raise  # the call's own
            raise Overdue(f"not done within {timeout:g} s") from error

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, call = job
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except BaseException as error:  # noqa: BLE001 - handed to the caller, who waits for it
                    future.set_exception(error)
            del job, future, call  # or what the last call returned lives until the next one
