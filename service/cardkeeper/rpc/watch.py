"""WatchInvalidations: one stream a client process.

A stream is two coroutines: a reader that takes the client's steps in, and a writer that alone sends, so that the order of
frames is the order of its decisions. All streams share one pulse for bookmarks and overdue acknowledgements: a stream has no
timer of its own.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable

from cardkeeper.card.change import Severity
from cardkeeper.clock import Clock
from cardkeeper.errors import CardkeeperError, Exhausted, InvalidInput, Unavailable
from cardkeeper.fleet.difference import Gap, load_missed
from cardkeeper.fleet.mailbox import Mailbox
from cardkeeper.fleet.negotiation import Need
from cardkeeper.fleet.registry import Registry
from cardkeeper.fleet.revision_log import Revision
from cardkeeper.fleet.subscription import Subscription
from cardkeeper.rpc import decode
from cardkeeper.rpc.endpoint import Context, peer_of
from cardkeeper.rpc.frames import Frames
from cardkeeper.rpc.lag import Lag
from cardkeeper.rpc.rules import Rules
from cardkeeper.rpc.stream_policy import StreamPolicy
from cardkeeper.v1 import change_pb2, discovery_service_pb2, invalidation_pb2

log = logging.getLogger(__name__)

MAX_WAITING_STEPS = 64
"""Steps of one client that wait for the writer; the reader stops reading beyond."""

_GAPS = {
    Gap.COMPACTED: invalidation_pb2.Resync.REASON_COMPACTED,
    Gap.EPOCH_CHANGED: invalidation_pb2.Resync.REASON_EPOCH_CHANGED,
}


class WatchStream:
    """One client's stream, from its first step to its end."""

    def __init__(
        self, registry: Registry, frames: Frames, rules: Rules, clock: Clock, policy: StreamPolicy, context: Context
    ) -> None:
        self._registry = registry
        self._fanout = registry.revisions.fanout
        self._frames = frames
        self._rules = rules
        self._policy = policy
        self._context = context
        self._awake = asyncio.Event()
        self._mailbox = Mailbox(self._awake.set)
        self._steps: asyncio.Queue[invalidation_pb2.Subscribe | invalidation_pb2.Unsubscribe] = asyncio.Queue(
            MAX_WAITING_STEPS
        )
        self._needs: tuple[Need, ...] = ()
        self._sent = 0
        """Highest revision on the stream so far."""
        self._bookmark_due = False
        self._has_synced = False
        """Before, a bookmark would let a client that resumes believe that it had its difference already."""
        self._ending: CardkeeperError | None = None
        self._writer: asyncio.Task[None] | None = None
        self._draining: float | None = None
        self._lag = Lag(clock, policy.ack_timeout)

    async def run(self) -> None:
        """Serve the client until it goes, or until the service has to end the stream with an error."""
        reader = asyncio.create_task(self._read(), name="watch reader")
        self._writer = asyncio.create_task(self._write_for_ever(), name="watch writer")
        try:
            await asyncio.wait((self._writer,))
            if self._ending is not None:
                raise self._ending
            await self._writer
        finally:
            self._fanout.drop(self._mailbox)
            reader.cancel()
            self._writer.cancel()
            await asyncio.gather(reader, self._writer, return_exceptions=True)

    def pulse(self) -> None:
        """Make a bookmark due, and end the stream if its client stopped acknowledging."""
        if self._lag.overdue():
            self.end(
                Exhausted(
                    f"nothing was acknowledged for {self._policy.ack_timeout:.0f} s although frames were sent",
                    reason="ACK_OVERDUE",
                    metadata={"acknowledged": str(self._lag.acknowledged), "sent": str(self._sent)},
                    retry_after=1.0,
                )
            )
        self._bookmark_due = True
        self._awake.set()

    def drain(self, within: float) -> None:
        """Say goodbye and end."""
        self._draining = within
        self._awake.set()

    def end(self, error: CardkeeperError) -> None:
        """End the stream with an error, even where the writer waits for a client that does not read."""
        self._ending = self._ending or error
        if self._writer is not None:
            self._writer.cancel()

    async def _read(self) -> None:
        """Take steps in until the client has no more to say; a client may go on reading after that."""
        try:
            while isinstance(raw := await self._context.read(), bytes):
                request = discovery_service_pb2.WatchInvalidationsRequest.FromString(raw)
                self._rules.check(request)
                match request.WhichOneof("step"):
                    case "ack":
                        if request.ack.revision.epoch == self._registry.revisions.epoch:
                            self._lag.acknowledge(request.ack.revision.sequence)
                    case "subscribe":
                        await self._steps.put(request.subscribe)
                    case "unsubscribe":
                        await self._steps.put(request.unsubscribe)
                self._awake.set()
        except CardkeeperError as error:
            self.end(error)
        except ValueError:  # protobuf's DecodeError is one
            self.end(InvalidInput("the bytes are no cardkeeper.v1.WatchInvalidationsRequest"))

    async def _write_for_ever(self) -> None:
        """Write what is due until the goodbye."""
        while self._draining is None:
            await self._awake.wait()
            self._awake.clear()
            await self._write_what_is_due()
        await self._write(self._frames.draining(self._at(self._sent), self._draining), self._sent)

    async def _write_what_is_due(self) -> None:
        while True:
            batch = self._mailbox.take()
            for event in batch:
                await self._write(self._frames.event(event, self._needs, self._sent), event.sequence)
            if batch:
                # After several, and after merged ones, only a bookmark says that nothing before them is missing.
                self._bookmark_due = self._bookmark_due or len(batch) > 1
                continue
            if not self._steps.empty():
                await self._apply(self._steps.get_nowait())
                continue
            due, self._bookmark_due = self._bookmark_due and self._has_synced, False
            if not due:
                return
            head = self._registry.revisions.head
            await self._write(self._frames.bookmark(head), head.sequence)

    async def _apply(self, step: invalidation_pb2.Subscribe | invalidation_pb2.Unsubscribe) -> None:
        if isinstance(step, invalidation_pb2.Unsubscribe):
            self._fanout.unsubscribe(self._mailbox, step.subscription_id)
            self._needs = self._all_needs()
            return
        subscription = _subscription(step)
        self._check_quota(subscription)
        resume_from = decode.revision(step.resume_from) if step.HasField("resume_from") else None
        held = {decode.agent_id(item.agent): item.skill_fingerprint for item in step.held}
        self._fanout.subscribe(self._mailbox, subscription)
        self._needs = self._all_needs()
        missed = await load_missed(self._registry, subscription, resume_from, held)
        # One instant: what happens after this head waits in the mailbox until Synced is sent.
        head, count = self._registry.revisions.head, self._count(subscription)
        events = [*missed.events(self._registry, subscription), *self._mailbox.take()]
        if missed.gap is not None:
            reason = _GAPS[missed.gap]
            await self._write(self._frames.resync(self._at(self._sent), subscription.id, reason), self._sent)
        for event in sorted(events, key=lambda event: event.sequence):
            await self._write(self._frames.event(event, self._needs, self._sent), event.sequence)
        await self._write(self._frames.synced(head, subscription.id, count), head.sequence)
        self._has_synced = True

    async def _write(self, frame: bytes, sequence: int) -> None:
        await self._context.write(frame)
        self._sent = max(self._sent, sequence)
        self._lag.sent(self._sent)

    def _check_quota(self, added: Subscription) -> None:
        others = [item for item in self._mailbox.subscriptions.values() if item.id != added.id]
        agents = sum(len(item.agents) for item in others) + len(added.agents)
        limit = self._policy
        for what, asked, most in (
            ("subscriptions on one stream", len(others) + 1, limit.max_subscriptions),
            ("agents on one stream", agents, limit.max_subscribed_agents),
        ):
            if asked > most:
                raise Exhausted(f"at most {most} {what}", reason="QUOTA_EXCEEDED", metadata={"limit": str(most)})

    def _count(self, subscription: Subscription) -> int:
        if not subscription.agents:
            return len(self._registry)
        return sum(subscription.covers(state.record.id, state.record.agent_url) for state in self._registry)

    def _all_needs(self) -> tuple[Need, ...]:
        needs = (need for item in self._mailbox.subscriptions.values() for need in item.needs)
        return tuple(dict.fromkeys(needs))

    def _at(self, sequence: int) -> Revision:
        return Revision(self._registry.revisions.epoch, sequence)


class WatchEndpoint:
    """Admission, the pulse and the drain of all streams."""

    def __init__(self, make: Callable[[Context], WatchStream], policy: StreamPolicy) -> None:
        self._make = make
        self._policy = policy
        self._streams: set[WatchStream] = set()
        self._by_peer: Counter[str] = Counter()
        self._none_left = asyncio.Event()
        self._draining = False
        self._beat = 0

    def __len__(self) -> int:
        return len(self._streams)

    async def serve(self, context: Context) -> None:
        """Serve one stream. Raises CardkeeperError."""
        peer = peer_of(context)
        self._admit(peer)
        stream = self._make(context)
        self._streams.add(stream)
        self._by_peer[peer] += 1
        self._none_left.clear()
        try:
            await stream.run()
        finally:
            self._streams.discard(stream)
            self._by_peer[peer] -= 1
            if not self._by_peer[peer]:
                del self._by_peer[peer]
            if not self._streams:
                self._none_left.set()

    def _admit(self, peer: str) -> None:
        if self._draining:
            raise Unavailable("the service is shutting down", reason="DRAINING", retry_after=1.0)
        for open_now, most, whose in (
            (len(self._streams), self._policy.max_streams, "here"),
            (self._by_peer[peer], self._policy.max_streams_per_peer, "from this address"),
        ):
            if open_now >= most:
                raise Exhausted(
                    f"{most} streams are open {whose} already",
                    reason="QUOTA_EXCEEDED",
                    metadata={"limit": str(most)},
                    # Spread: those who are refused together must not come back together.
                    retry_after=random.uniform(2.0, 8.0),  # noqa: S311 - no secret
                )

    async def pulse_for_ever(self) -> None:
        """Give every stream its pulse once a bookmark interval, a tenth of them at a time."""
        while True:
            await asyncio.sleep(self._policy.bookmark_interval / 10)
            self._beat = (self._beat + 1) % 10
            for stream in list(self._streams):
                if id(stream) // 64 % 10 == self._beat:
                    stream.pulse()

    async def drain(self, timeout: float) -> None:
        """Say goodbye to every client, and wait for the streams to end; new ones are refused from now on."""
        self._draining = True
        if not self._streams:
            return
        # The more have to find a new home, the longer they spread their coming.
        within = min(1.0 + len(self._streams) / 500, 30.0)
        for stream in list(self._streams):
            stream.drain(within)
        try:
            async with asyncio.timeout(timeout):
                await self._none_left.wait()
        except TimeoutError:
            log.warning("%d streams did not end in time", len(self._streams))


def _subscription(message: invalidation_pb2.Subscribe) -> Subscription:
    refs = [decode.agent_ref(ref) for ref in message.agents]
    severity = message.min_severity
    known = severity in change_pb2.Severity.values()
    return Subscription(
        id=message.subscription_id,
        agents=frozenset(ref.id or ref.url for ref in refs),
        min_severity=Severity(severity) if known else Severity.BREAKING,
        skill_ids=frozenset(message.skill_ids),
        tags=frozenset(message.tags),
        needs=tuple(decode.need(item) for item in message.include_resolutions),
    )
