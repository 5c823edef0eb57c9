"""The invalidation stream of the synchronous client: one thread, one stream, whatever the number of its users."""

import logging
import threading
import time
from collections.abc import Iterator
from queue import Empty, SimpleQueue

import grpc

from cardkeeper_client.backoff import Backoff
from cardkeeper_client.failure import code_of
from cardkeeper_client.session import SILENCE, Session
from cardkeeper_client.v1 import discovery_service_pb2 as pb
from cardkeeper_client.v1 import discovery_service_pb2_grpc

log = logging.getLogger("cardkeeper_client")

TICK = 1.0
"""Seconds between two looks at how long the server has been silent."""


class Stream:
    """Keeps a session on a stream until it is stopped."""

    def __init__(
        self, channel: grpc.Channel, session: Session, lock: threading.RLock, *, silence: float = SILENCE
    ) -> None:
        self._stub = discovery_service_pb2_grpc.DiscoveryServiceStub(channel)
        self._session = session
        self._lock = lock
        self._silence = silence
        self._stopping = threading.Event()
        self._synced = threading.Event()
        self._call: grpc.Call | None = None
        self._heard = 0.0
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
            hint = self._follow(backoff)
            self._stopping.wait(backoff.wait(hint=hint))

    def _follow(self, backoff: Backoff) -> float | None:
        """Follow one stream to its end; return the server's hint when to come back."""
        hint = None
        steps: SimpleQueue[pb.WatchInvalidationsRequest | None] = SimpleQueue()
        with self._lock:
            steps.put(self._session.opened())
        self._heard = time.monotonic()
        call = self._stub.WatchInvalidations(self._steps(steps), wait_for_ready=True)
        self._call = call
        try:
            for frame in call:
                self._heard = time.monotonic()
                with self._lock:
                    reaction = self._session.apply(frame)
                if frame.WhichOneof("event") == "synced":
                    backoff.succeeded()
                    self._synced.set()
                for step in reaction.steps:
                    steps.put(step)
                if reaction.reconnect_within is not None:
                    hint = reaction.reconnect_within
        except grpc.RpcError as error:
            if not self._stopping.is_set():
                log.info("the invalidation stream ended: %s", code_of(error))
        finally:
            self._synced.clear()
            with self._lock:
                self._session.lost()
            # A call that is merely forgotten leaks on both sides.
            call.cancel()
            steps.put(None)
            self._call = None
        return hint

    def _steps(
        self, steps: "SimpleQueue[pb.WatchInvalidationsRequest | None]"
    ) -> Iterator[pb.WatchInvalidationsRequest]:
        """What to send, on gRPC's own thread; in between, it watches for a server that fell silent."""
        while True:
            try:
                step = steps.get(timeout=TICK)
            except Empty:
                call = self._call
                if call is not None and time.monotonic() - self._heard > self._silence:
                    with self._lock:
                        self._session.lost()  # at once: the cancellation may take its time
                    call.cancel()
                continue
            if step is None:
                return
            yield step
