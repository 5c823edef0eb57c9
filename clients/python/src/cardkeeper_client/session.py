"""The client's half of the invalidation stream, without the stream: frames in, steps out. Pure.

One subscription to everything: what the service changes, the client hears, whatever it holds. So whatever is resolved is
covered before it is asked for. What is held is not listed (`Subscribe.held`): the service compares that by skill
fingerprint, and a moved endpoint has the same one. After a gap, everything is asked for anew.
"""

from dataclasses import dataclass

from cardkeeper_client.near_cache import NearCache
from cardkeeper_client.v1 import discovery_service_pb2 as pb
from cardkeeper_client.v1 import invalidation_pb2, revision_pb2

SUBSCRIPTION = 1
SILENCE = 12.0
"""Seconds without a frame after which the server is taken for gone; it promises one at least every ten."""


@dataclass(frozen=True, slots=True)
class Reaction:
    """What a frame asks for."""

    steps: tuple[pb.WatchInvalidationsRequest, ...] = ()
    """To send."""
    reconnect_within: float | None = None
    """The stream ends: come back after a random part of this many seconds."""


class Session:
    """Follows the stream across connections, and keeps the near cache in step with it. Instants are monotonic seconds."""

    def __init__(self, cache: NearCache, *, silence: float = SILENCE) -> None:
        self.silence = silence
        self._cache = cache
        self._heard = 0.0
        self._reached: revision_pb2.Revision | None = None
        """Where a new stream may go on from; everything up to it was applied."""

    @property
    def in_sync(self) -> bool:
        """Whether everything up to the last claim of the stream is applied."""
        return self._cache.in_sync

    def opened(self, now: float) -> pb.WatchInvalidationsRequest:
        """Return the first step on a new stream."""
        self._heard = now
        return self._subscribe()

    def heard(self, now: float) -> None:
        """Note that a frame arrived, whatever it says."""
        self._heard = now
        self._cache.trust_until(now + self.silence)

    def is_silent(self, now: float) -> bool:
        """Whether the server has been silent for longer than one that lives ever is."""
        return now - self._heard > self.silence

    def lost(self) -> None:
        """Note that the stream ended, or that its server fell silent."""
        self._cache.lose()

    def apply(self, frame: pb.WatchInvalidationsResponse) -> Reaction:
        """Apply a frame to the near cache."""
        if self._cache.in_sync and frame.HasField("revision") and frame.revision.epoch != self._cache.epoch:
            # Revisions of two epochs do not compare: begin again, on this stream.
            self._cache.resync()
            return Reaction(steps=(self._subscribe(),))
        match frame.WhichOneof("event"):
            case "invalidation":
                told = frame.invalidation
                self._cache.invalidate(told.agent, _sequence(told.agent_revision, frame))
            case "revalidate":
                for agent in frame.revalidate.agents:
                    self._cache.distrust(agent, _sequence(frame.revalidate.agent_revision, frame))
                if not frame.revalidate.agents:
                    self._cache.distrust_all()
            case "resync":
                self._cache.resync()
            case "synced":
                self._cache.synced(frame.revision.epoch)
                return self._complete(frame)
            case "bookmark":
                # Before its difference is complete, a stream has no progress to speak of.
                return self._complete(frame) if self._cache.in_sync else Reaction()
            case "draining":
                within = frame.draining.reconnect_within
                return Reaction(reconnect_within=max(within.seconds + within.nanos / 1e9, 0.1))
            case _:
                # A kind of frame that this release does not know may tell of a loss: trust nothing from before it.
                self._cache.distrust_all()
        return Reaction()

    def _subscribe(self) -> pb.WatchInvalidationsRequest:
        return pb.WatchInvalidationsRequest(
            subscribe=invalidation_pb2.Subscribe(subscription_id=SUBSCRIPTION, resume_from=self._reached)
        )

    def _complete(self, frame: pb.WatchInvalidationsResponse) -> Reaction:
        """Everything up to the frame's revision is applied: remember it, and acknowledge it."""
        self._reached = frame.revision
        ack = invalidation_pb2.Ack(revision=frame.revision)
        return Reaction(steps=(pb.WatchInvalidationsRequest(ack=ack),))


def _sequence(revision: revision_pb2.Revision, frame: pb.WatchInvalidationsResponse) -> int:
    """The state's revision; the frame's where a server does not say."""
    return revision.sequence or frame.revision.sequence
