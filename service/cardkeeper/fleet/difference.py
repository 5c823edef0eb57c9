"""What a client that (re)subscribes has missed."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from cardkeeper.card.change import ChangeSet
from cardkeeper.card.compare import compare
from cardkeeper.card.model import Card
from cardkeeper.card.parse import parse_card
from cardkeeper.errors import CardInvalid
from cardkeeper.fleet.agent_state import AgentState
from cardkeeper.fleet.mailbox import Mailbox
from cardkeeper.fleet.refetch import NOTHING
from cardkeeper.fleet.registry import Registry
from cardkeeper.fleet.revision_log import Revision
from cardkeeper.fleet.subscription import Subscription
from cardkeeper.store.base import Cause, Compacted, Event, EventKind


class Gap(Enum):
    """Why history cannot fill the time that a client was away."""

    COMPACTED = "compacted"
    EPOCH_CHANGED = "epoch changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Finite, whether or not history reaches back."""

    events: tuple[Event, ...]
    """In the order of revisions, one an agent (and one more where it is suspect)."""
    gap: Gap | None = None
    """The client must drop what it did not list as held."""


async def difference(
    registry: Registry,
    subscription: Subscription,
    resume_from: Revision | None,
    held: Mapping[str, str],
    upto: int,
) -> Difference:
    """Return what a client is to be told of so that it knows everything up to revision `upto`.

    `held` maps agent ids to the skill fingerprints that the client holds. Raises StoreUnavailable.
    """
    told: dict[tuple[str, bool], Event] = {}
    gap = None
    if resume_from is not None:
        if resume_from.epoch != registry.revisions.epoch or resume_from.sequence > upto:
            gap = Gap.EPOCH_CHANGED
        else:
            try:
                missed = await registry.store.events_after(resume_from.sequence)
            except Compacted:
                gap = Gap.COMPACTED
            else:
                told = _coalesced(subscription, [event for event in missed if event.sequence <= upto])
    for agent_id, fingerprint in held.items():
        if (agent_id, False) not in told:
            event = await _against_held(registry, subscription, agent_id, fingerprint, upto)
            if event is not None:
                told[agent_id, False] = event
    for state in registry:
        record = state.record
        if record.suspicion is not None and subscription.covers(record.id, record.agent_url):
            told[record.id, True] = _event(state, EventKind.SUSPECTED)
    return Difference(events=tuple(sorted(told.values(), key=lambda event: event.sequence)), gap=gap)


def _coalesced(subscription: Subscription, events: list[Event]) -> dict[tuple[str, bool], Event]:
    box = Mailbox(wake=lambda: None)
    box.subscriptions[subscription.id] = subscription
    for event in events:
        box.offer(event)
    # Old suspicions are left to the present state: they may have been settled since.
    return {(event.agent, False): event for event in box.take() if event.kind is not EventKind.SUSPECTED}


async def _against_held(
    registry: Registry, subscription: Subscription, agent_id: str, fingerprint: str, upto: int
) -> Event | None:
    state = registry.by_id(agent_id)
    if state is None:
        gone = Event(
            kind=EventKind.REMOVED,
            agent=agent_id,
            agent_url="",
            cause=Cause.OPERATOR,
            changes=compare(await _snapshot(registry, agent_id, fingerprint), None),
            sequence=upto,
        )
        return gone if not subscription.agents or agent_id in subscription.agents else None
    if state.record.skill_fingerprint == fingerprint:
        return None
    changes = compare(await _snapshot(registry, agent_id, fingerprint), state.card)
    event = _event(state, EventKind.CHANGED, changes)
    return event if subscription.wants(event) else None


async def _snapshot(registry: Registry, agent_id: str, fingerprint: str) -> Card | None:
    stored = await registry.store.card(agent_id, fingerprint)
    if stored is None:
        return None
    try:
        return parse_card(stored.body, stored.card_url)
    except CardInvalid:
        return None


def _event(state: AgentState, kind: EventKind, changes: ChangeSet = NOTHING) -> Event:
    record = state.record
    return Event(
        kind=kind,
        agent=record.id,
        agent_url=record.agent_url,
        cause=Cause.REFRESH,
        changes=changes,
        sequence=record.sequence,
    )
