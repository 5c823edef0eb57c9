"""The invalidation stream of the asyncio client: one task, one stream, whatever the number of its users."""

import asyncio
import logging
import time
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

import grpc

from cardkeeper_client.backoff import Backoff
from cardkeeper_client.failure import service_error
from cardkeeper_client.session import Session
from cardkeeper_client.v1 import discovery_service_pb2_grpc

log = logging.getLogger("cardkeeper_client")


class AsyncStream:
    """Keeps a session on a stream until it is stopped."""

    def __init__(self, channel: grpc.aio.Channel, session: Session) -> None:
        self._stub: Any = discovery_service_pb2_grpc.DiscoveryServiceStub(channel)
        self._session = session
        self._synced = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the task on the running loop; not again while it runs."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="cardkeeper stream")

    async def wait_until_synced(self, timeout: float) -> bool:
        """Wait for the stream to be in sync. Return whether it is."""
        try:
            async with asyncio.timeout(timeout):
                await self._synced.wait()
        except TimeoutError:
            return False
        return True

    async def stop(self) -> None:
        """End the stream and the task."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        backoff = Backoff()
        while True:
            pause = await self._follow(backoff)
            await asyncio.sleep(pause)

    async def _follow(self, backoff: Backoff) -> float:
        """Follow one stream to its end; return the seconds to wait before the next."""
        pause: float | None = None
        call = self._stub.WatchInvalidations(wait_for_ready=True)
        try:
            await self._within_silence(call.write(self._session.opened(time.monotonic())))
            while (frame := await self._within_silence(call.read())) is not grpc.aio.EOF:
                self._session.heard(time.monotonic())
                reaction = self._session.apply(frame)
                if self._session.in_sync:
                    backoff.succeeded()
                    self._synced.set()
                else:
                    self._synced.clear()
                for step in reaction.steps:
                    await self._within_silence(call.write(step))
                if reaction.reconnect_within is not None:
                    pause = backoff.within(reaction.reconnect_within)
        except TimeoutError:
            log.info("the invalidation stream was silent for %.0f s", self._session.silence)
        except grpc.RpcError as error:
            # CANCELLED too: nobody here asked for it, so it is the server's or the network's.
            ended = service_error(error)
            log.info("the invalidation stream ended: %s", ended)
            pause = backoff.after(ended.retry_after or 0.0) if pause is None else pause
        except asyncio.InvalidStateError:
            log.info("the invalidation stream ended before a step was sent")
        finally:
            self._synced.clear()
            self._session.lost()
            # A call that is merely forgotten leaks on both sides.
            call.cancel()
        return backoff.after() if pause is None else pause

    async def _within_silence(self, waiting: Awaitable[Any]) -> Any:
        async with asyncio.timeout(self._session.silence):
            return await waiting
