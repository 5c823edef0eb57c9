"""Frames of the contract to steps of a record, and filters to messages."""

from cardkeeper_client.v1 import agent_ref_pb2, change_pb2, invalidation_pb2, revision_pb2
from cardkeeper_client.v1.discovery_service_pb2 import WatchInvalidationsRequest, WatchInvalidationsResponse
from trace_history import Point
from trace_record import (
    Bookmarked,
    Draining,
    Filter,
    Frame,
    Gap,
    Invalidated,
    Resynced,
    Revalidated,
    Subscribed,
    Synced,
)


def point(revision: revision_pb2.Revision) -> Point:
    """A revision."""
    return Point(revision.epoch, revision.sequence)


def revision(at: Point) -> revision_pb2.Revision:
    """A point as the contract writes it."""
    return revision_pb2.Revision(epoch=at.epoch, sequence=at.sequence)


def agent_id(name: str) -> str:
    """The id in a resource name."""
    return name.removeprefix("agents/")


def step_of(frame: WatchInvalidationsResponse) -> Frame | None:
    """The step that a frame is; None for one that this release does not know."""
    at = point(frame.revision)
    match frame.WhichOneof("event"):
        case "invalidation":
            told = frame.invalidation
            return Invalidated(
                at=at,
                agent=agent_id(told.agent),
                agent_at=point(told.agent_revision),
                removed=told.removed,
                fingerprint=told.changes.skill_fingerprint,
                severity=told.changes.severity,
                skill_ids=frozenset(told.skill_ids),
            )
        case "revalidate":
            (agent,) = frame.revalidate.agents
            return Revalidated(at, agent_id(agent), point(frame.revalidate.agent_revision))
        case "synced":
            return Synced(at, frame.synced.subscription_id, frame.synced.agent_count)
        case "bookmark":
            return Bookmarked(at)
        case "resync":
            reason = invalidation_pb2.Resync.Reason.Name(frame.resync.reason).removeprefix("REASON_")
            return Resynced(at, frame.resync.subscription_id, Gap(reason))
        case "draining":
            return Draining(at)
    return None


def subscribe_request(step: Subscribed) -> WatchInvalidationsRequest:
    """The message of a Subscribe."""
    wanted = step.filter
    return WatchInvalidationsRequest(
        subscribe=invalidation_pb2.Subscribe(
            subscription_id=wanted.id,
            agents=[_ref(agent) for agent in sorted(wanted.agents)],
            min_severity=change_pb2.Severity.ValueType(wanted.min_severity),
            skill_ids=sorted(wanted.skill_ids),
            tags=sorted(wanted.tags),
            resume_from=revision(step.resume_from) if step.resume_from is not None else None,
            held=[
                invalidation_pb2.Held(agent=f"agents/{agent}", skill_fingerprint=fingerprint)
                for agent, fingerprint in step.held.items()
            ],
        )
    )


def ack_request(at: Point) -> WatchInvalidationsRequest:
    """The message of an Ack."""
    return WatchInvalidationsRequest(ack=invalidation_pb2.Ack(revision=revision(at)))


def unsubscribe_request(wanted: Filter) -> WatchInvalidationsRequest:
    """The message of an Unsubscribe."""
    return WatchInvalidationsRequest(unsubscribe=invalidation_pb2.Unsubscribe(subscription_id=wanted.id))


def _ref(agent: str) -> agent_ref_pb2.AgentRef:
    if "://" in agent:
        return agent_ref_pb2.AgentRef(agent_url=agent)
    return agent_ref_pb2.AgentRef(name=f"agents/{agent}")
