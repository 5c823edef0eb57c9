"""The invalidation stream of the synchronous client: one thread, one stream, whatever the number of its users."""

import logging
import threading
import time
from collections.abc import Iterator
from queue import Empty, SimpleQueue
from typing import TypeAlias

import grpc

from cardkeeper_client.backoff import Backoff
from cardkeeper_client.failure import service_error
from cardkeeper_client.session import Session
from cardkeeper_client.v1 import discovery_service_pb2 as pb
from cardkeeper_client.v1 import discovery_service_pb2_grpc

log = logging.getLogger("cardkeeper_client")

TICK = 1.0
"""Seconds between two looks at how long the server has been silent."""

Steps: TypeAlias = "SimpleQueue[pb.WatchInvalidationsRequest | None]"


class Stream:
    """Keeps a session on a stream until it is stopped. `lock` guards the session and its near cache."""

    def __init__(self, channel: grpc.Channel, session: Session, lock: threading.RLock) -> None:
        self._stub = discovery_service_pb2_grpc.DiscoveryServiceStub(channel)
        self._session = session
        self._lock = lock
        self._stopping = threading.Event()
        self._synced = threading.Event()
        self._call: grpc.Call | None = None
        self._thread = threading.Thread(target=self._run, name="cardkeeper stream", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wait_until_synced(self, timeout: float) -> bool:
        """Wait for the stream to be in sync. Return whether it is."""
        return self._synced.wait(timeout)

    def stop(self, timeout: float = 5.0) -> None:
        """End the stream and the thread, within `timeout` seconds."""
        self._stopping.set()
        call = self._call
        if call is not None:
            call.cancel()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _run(self) -> None:
        backoff = Backoff()
        while not self._stopping.is_set():
            self._stopping.wait(self._follow(backoff))

    def _follow(self, backoff: Backoff) -> float:
        """Follow one stream to its end; return the seconds to wait before the next."""
        pause: float | None = None
        steps: Steps = SimpleQueue()
        with self._lock:
            steps.put(self._session.opened(time.monotonic()))
        call = self._stub.WatchInvalidations(self._steps(steps), wait_for_ready=True)
        self._call = call
        if self._stopping.is_set():  # stop() may have looked for the call before it was there
            call.cancel()
        try:
            for frame in call:
                with self._lock:
                    self._session.heard(time.monotonic())
                    reaction = self._session.apply(frame)
                if self._session.in_sync:
                    backoff.succeeded()
                    self._synced.set()
                else:
                    self._synced.clear()
                for step in reaction.steps:
                    steps.put(step)
                if reaction.reconnect_within is not None:
                    pause = backoff.within(reaction.reconnect_within)
        except grpc.RpcError as error:
            if not self._stopping.is_set():
                # CANCELLED too: nobody here asked for it, so it is the server's or the network's.
                ended = service_error(error)
                log.info("the invalidation stream ended: %s", ended)
                pause = backoff.after(ended.retry_after or 0.0) if pause is None else pause
        finally:
            self._synced.clear()
            with self._lock:
                self._session.lost()
            # A call that is merely forgotten leaks on both sides.
            call.cancel()
            steps.put(None)
            self._call = None
        return backoff.after() if pause is None else pause

    def _steps(self, steps: Steps) -> Iterator[pb.WatchInvalidationsRequest]:
        """What to send, on gRPC's own thread; in between, it watches for a server that fell silent."""
        while True:
            try:
                step = steps.get(timeout=TICK)
            except Empty:
                call = self._call
                if call is not None and self._session.is_silent(time.monotonic()):
                    with self._lock:
                        self._session.lost()  # at once: the cancellation may take its time
                    call.cancel()
                continue
            if step is None:
                return
            yield step
