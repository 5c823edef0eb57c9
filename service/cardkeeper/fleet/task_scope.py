"""Owner of background tasks: none is fire-and-forget, all end with the scope."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")


class TaskScope:
    """A set of tasks that are cancelled, and waited for, when it closes.

    Unlike asyncio.TaskGroup, a task that crashes does not take its siblings with it: it is logged, as the defect it is.
    """

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[Any], tuple[type[Exception], ...]] = {}
        """Each with the errors that whoever waits for it knows how to take."""
        self._closed = False

    def start(
        self, work: Coroutine[Any, Any, T], name: str, *, expected: tuple[type[Exception], ...] = ()
    ) -> "asyncio.Task[T]":
        """Start a task; ending with an `expected` error is no crash. Raises RuntimeError once the scope is closed."""
        if self._closed:
            work.close()
            raise RuntimeError("the task scope is closed")
        task = asyncio.create_task(work, name=name)
        self._tasks[task] = expected
        task.add_done_callback(self._ended)
        return task

    async def close(self) -> None:
        """Cancel what runs and wait for its end; safe to call twice."""
        self._closed = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        expected = self._tasks.pop(task)
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, expected):
            log.error("task %s crashed", task.get_name(), exc_info=error)
