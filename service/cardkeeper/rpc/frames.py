"""Frames of the invalidation stream, as bytes: one encoding serves every subscriber of an event."""

from collections import OrderedDict
from collections.abc import Sequence

from google.protobuf import duration_pb2

from cardkeeper.clock import Clock
from cardkeeper.errors import NotOffered, SkillNotAdvertised
from cardkeeper.fleet.agent_state import AgentState
from cardkeeper.fleet.negotiation import Need
from cardkeeper.fleet.registry import Registry
from cardkeeper.fleet.resolution import resolve
from cardkeeper.fleet.revision_log import Revision
from cardkeeper.rpc import encode
from cardkeeper.store.base import Event, EventKind
from cardkeeper.v1 import agent_pb2, change_pb2, invalidation_pb2, resolution_pb2, revision_pb2
from cardkeeper.v1.discovery_service_pb2 import WatchInvalidationsResponse

CACHED = 1024
"""Encoded events that are kept, at most."""
MAX_FINDINGS = 32
"""Remarks on a card that go along with an event; GetCard has all of them."""


class Frames:
    """Encodes frames; events are cached by their revision and by the resolutions that go along."""

    def __init__(self, registry: Registry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._encoded: OrderedDict[tuple[int, int, tuple[Need, ...]], tuple[Event, bytes]] = OrderedDict()

    def event(self, event: Event, needs: tuple[Need, ...], at_least: int = 0) -> bytes:
        """The frame of an event, with the fresh resolutions of these needs.

        Its revision is the event's, or `at_least` where that is higher: in a difference, frames must not go backwards.
        """
        sequence = max(event.sequence, at_least)
        key = (event.sequence, sequence, needs)
        known = self._encoded.get(key)
        # A merged event has the revision of its newest part, but another span: only the very same event will do.
        if known is not None and known[0] is event:
            return known[1]
        encoded = self._encode(event, needs, sequence)
        self._encoded[key] = (event, encoded)
        if len(self._encoded) > CACHED:
            self._encoded.popitem(last=False)
        return encoded

    def synced(self, at: Revision, subscription_id: int, agent_count: int) -> bytes:
        """The end of a difference."""
        synced = invalidation_pb2.Synced(subscription_id=subscription_id, agent_count=agent_count)
        return WatchInvalidationsResponse(revision=encode.revision(at), synced=synced).SerializeToString()

    def bookmark(self, at: Revision) -> bytes:
        """Nothing new up to here."""
        bookmark = invalidation_pb2.Bookmark()
        return WatchInvalidationsResponse(revision=encode.revision(at), bookmark=bookmark).SerializeToString()

    def resync(self, at: Revision, subscription_id: int, reason: "invalidation_pb2.Resync.Reason.ValueType") -> bytes:
        """There is a gap."""
        resync = invalidation_pb2.Resync(subscription_id=subscription_id, reason=reason)
        return WatchInvalidationsResponse(revision=encode.revision(at), resync=resync).SerializeToString()

    def draining(self, at: Revision, within: float) -> bytes:
        """Goodbye."""
        span = duration_pb2.Duration()
        span.FromMilliseconds(int(within * 1000))
        draining = invalidation_pb2.Draining(reconnect_within=span)
        return WatchInvalidationsResponse(revision=encode.revision(at), draining=draining).SerializeToString()

    def _encode(self, event: Event, needs: Sequence[Need], sequence: int) -> bytes:
        epoch = self._registry.revisions.epoch
        at = revision_pb2.Revision(epoch=epoch, sequence=sequence)
        state_at = revision_pb2.Revision(epoch=epoch, sequence=event.sequence)
        agent = f"agents/{event.agent}"
        if event.kind is EventKind.SUSPECTED:
            revalidate = invalidation_pb2.Revalidate(agents=[agent], reason="suspect", agent_revision=state_at)
            return WatchInvalidationsResponse(revision=at, revalidate=revalidate).SerializeToString()
        invalidation = invalidation_pb2.Invalidation(
            agent=agent,
            agent_url=event.agent_url,
            removed=event.kind is EventKind.REMOVED,
            cause=change_pb2.Cause.Value(f"CAUSE_{event.cause.name}"),
            changes=encode.change_set(event.changes),
            skill_ids=encode.texts(event.changes.skill_ids),
            resolutions=self._resolutions(event, needs),
            findings=self._findings(event),
            agent_revision=state_at,
        )
        return WatchInvalidationsResponse(revision=at, invalidation=invalidation).SerializeToString()

    def _told(self, event: Event) -> AgentState | None:
        """The agent's state, if the state of now is the one that the event tells of."""
        state = self._registry.by_id(event.agent)
        return state if state is not None and state.record.sequence == event.sequence else None

    def _findings(self, event: Event) -> list[agent_pb2.Finding]:
        """Remarks on the card that the event tells of."""
        state = self._told(event)
        return encode.remarks(state.card.findings, MAX_FINDINGS) if state is not None and state.card is not None else []

    def _resolutions(self, event: Event, needs: Sequence[Need]) -> list[resolution_pb2.Resolution]:
        """What the agent offers now of what the client uses, if the state of now is the one that the event tells of."""
        state = self._told(event)
        if state is None or state.card is None:
            return []
        offered = []
        for need in needs:
            try:
                offered.append(resolve(state, need, self._clock.monotonic()))
            except (SkillNotAdvertised, NotOffered):
                continue
        return [encode.resolution(item, self._registry.revisions.epoch) for item in offered]
