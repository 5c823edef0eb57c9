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
class Missed:
    """What the store knows of the time that a client was away.

    Loading it takes time in which the fleet moves on. What moves comes through the client's mailbox; the rest is made from
    the state of one instant by `events`.
    """

    history: tuple[Event, ...]
    """Up to the revision at which the client's mailbox began to take events in; one an agent."""
    held: Mapping[str, Card | None]
    """The cards that the client holds of agents that had another one, or were gone, when they were looked up."""
    gap: Gap | None = None
    """The client must drop what it did not list as held."""

    def events(self, registry: Registry, subscription: Subscription) -> list[Event]:
        """Return what the client is to be told of beside its mailbox, so that it knows everything up to now."""
        told = list(self.history)
        known = {event.agent for event in told}
        for agent_id, card in self.held.items():
            if agent_id not in known:
                told += _against_held(registry, subscription, agent_id, card)
        told += (
            _event(state, EventKind.SUSPECTED)
            for state in registry
            if state.record.suspicion is not None and subscription.covers(state.record.id, state.record.agent_url)
        )
        return told


async def load_missed(
    registry: Registry,
    subscription: Subscription,
    resume_from: Revision | None,
    held: Mapping[str, str],
) -> Missed:
    """Load what happened after `resume_from` until now, and the cards of `held`: skill fingerprints by agent id.

    Raises StoreUnavailable.
    """
    upto = registry.revisions.sequence
    gap: Gap | None = None
    history: tuple[Event, ...] = ()
    if resume_from is not None:
        if resume_from.epoch != registry.revisions.epoch or resume_from.sequence > upto:
            gap = Gap.EPOCH_CHANGED
        else:
            try:
                missed = await registry.store.events_after(resume_from.sequence)
            except Compacted:
                gap = Gap.COMPACTED
            else:
                history = _coalesced(subscription, [event for event in missed if event.sequence <= upto])
    differing = {
        agent_id: fingerprint
        for agent_id, fingerprint in held.items()
        if (state := registry.by_id(agent_id)) is None or state.record.skill_fingerprint != fingerprint
    }
    cards = {agent_id: await _snapshot(registry, agent_id, fingerprint) for agent_id, fingerprint in differing.items()}
    return Missed(history=history, held=cards, gap=gap)


def _coalesced(subscription: Subscription, events: list[Event]) -> tuple[Event, ...]:
    box = Mailbox(wake=lambda: None)
    box.subscriptions[subscription.id] = subscription
    for event in events:
        box.offer(event)
    # Old suspicions are left to the present state: they may have been settled since.
    return tuple(event for event in box.take() if event.kind is not EventKind.SUSPECTED)


def _against_held(registry: Registry, subscription: Subscription, agent_id: str, card: Card | None) -> list[Event]:
    state = registry.by_id(agent_id)
    if state is not None:
        event = _event(state, EventKind.CHANGED, compare(card, state.card))
        return [event] if subscription.wants(event) else []
    if subscription.agents and agent_id not in subscription.agents:
        return []
    gone = Event(
        kind=EventKind.REMOVED,
        agent=agent_id,
        agent_url="",
        cause=Cause.OPERATOR,
        changes=compare(card, None),
        sequence=registry.revisions.sequence,
    )
    return [gone]


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
