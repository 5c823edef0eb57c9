"""What a client that (re)subscribes has missed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from cardkeeper.card.change import Change, ChangeKind, ChangeSet, Severity
from cardkeeper.card.compare import compare
from cardkeeper.card.model import Card
from cardkeeper.card.parse import parse_card
from cardkeeper.errors import CardInvalid
from cardkeeper.fleet.agent_state import AgentState
from cardkeeper.fleet.mailbox import Mailbox
from cardkeeper.fleet.refetch import NOTHING, touched_tags
from cardkeeper.fleet.registry import Registry
from cardkeeper.fleet.revision_log import Revision
from cardkeeper.fleet.subscription import Subscription
from cardkeeper.store.base import Cause, Compacted, Event, EventKind

MOST_CARDS = 1000
"""Kept cards of one agent that are looked through at most."""


class Gap(Enum):
    """Why history cannot fill the time that a client was away."""

    COMPACTED = "compacted"
    EPOCH_CHANGED = "epoch changed"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a client holds of one agent."""

    fingerprint: str
    card: Card | None
    """A card of that fingerprint; None: it is not kept any more, or never was."""

    def difference(self, now: Card | None) -> ChangeSet | None:
        """Return what changed since; None where that cannot be told any more."""
        changes = None if self.card is None else compare(self.card, now)
        # The newest card of the fingerprint may be a later one than the client's: then it differs from nothing.
        return changes if changes is not None and changes.changes else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """What the store knows of the time that a client was away.

    Loading it takes time in which the fleet moves on. What moves comes through the client's mailbox; the rest is made from
    the state of one instant by `events`.
    """

    history: tuple[Event, ...]
    """Up to the revision at which the client's mailbox began to take events in; one an agent."""
    held: Mapping[str, Snapshot]
    """What the client holds of agents that had changed, or were gone, when they were looked up."""
    gap: Gap | None = None
    """The client must drop what it did not list as held."""

    def events(self, registry: Registry, subscription: Subscription) -> list[Event]:
        """Return what the client is to be told of beside its mailbox, so that it knows everything up to now."""
        told = list(self.history)
        known = {event.agent for event in told}
        for agent_id, snapshot in self.held.items():
            if agent_id not in known:
                told += _against_held(registry, subscription, agent_id, snapshot)
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
        if (state := registry.by_id(agent_id)) is None
        or state.record.skill_fingerprint != fingerprint
        or (gap is Gap.COMPACTED and await _changed_beneath(registry, state, resume_from))
    }
    snapshots = {
        agent_id: Snapshot(fingerprint, await _stored_card(registry, agent_id, fingerprint))
        for agent_id, fingerprint in differing.items()
    }
    return Missed(history=history, held=snapshots, gap=gap)


def _coalesced(subscription: Subscription, events: list[Event]) -> tuple[Event, ...]:
    box = Mailbox(wake=lambda: None)
    box.subscriptions[subscription.id] = subscription
    for event in events:
        box.offer(event)
    # Old suspicions are left to the present state: they may have been settled since.
    return tuple(event for event in box.take() if event.kind is not EventKind.SUSPECTED)


def _against_held(registry: Registry, subscription: Subscription, agent_id: str, held: Snapshot) -> list[Event]:
    state = registry.by_id(agent_id)
    if state is None:
        return [_gone(registry, agent_id, held)] if _may_cover(subscription, agent_id) else []
    changes = held.difference(state.card)
    if changes is None:
        # Whether a filter would let it pass is not known any more: it is told.
        covered = subscription.covers(agent_id, state.record.agent_url)
        return [_event(state, EventKind.CHANGED, _unknown(held, state.card))] if covered else []
    event = _event(state, EventKind.CHANGED, changes, touched_tags(changes, held.card, state.card))
    return [event] if subscription.wants(event) else []


def _may_cover(subscription: Subscription, agent_id: str) -> bool:
    """Whether a subscription may be about an agent that is gone: nobody knows its URL any more."""
    return subscription.covers(agent_id, "") or any("://" in agent for agent in subscription.agents)


def _gone(registry: Registry, agent_id: str, held: Snapshot) -> Event:
    changes = compare(held.card, None)
    return Event(
        kind=EventKind.REMOVED,
        agent=agent_id,
        agent_url="",
        cause=Cause.OPERATOR,
        changes=replace(changes, previous_skill_fingerprint=held.fingerprint),
        sequence=registry.revisions.sequence,
    )


def _unknown(held: Snapshot, now: Card | None) -> ChangeSet:
    """Something changed, and what it was is forgotten: the client must take it for the worst."""
    return ChangeSet(
        previous_skill_fingerprint=held.fingerprint,
        skill_fingerprint=now.skill_fingerprint if now else "",
        changes=(Change(kind=ChangeKind.OTHER_CHANGED, severity=Severity.BREAKING),),
        version_changed=False,
    )


async def _changed_beneath(registry: Registry, state: AgentState, since: Revision | None) -> bool:
    """Whether the card may have changed and its skill fingerprint not: its endpoint, say, or a wording."""
    if since is None or state.record.sequence <= since.sequence:
        return False
    cards = await registry.store.cards(state.record.id, before=0, limit=MOST_CARDS)
    alike = {card.card_digest for card in cards if card.skill_fingerprint == state.record.skill_fingerprint}
    # Where all that is kept is newer than what the client saw, what it saw may have been evicted.
    return len(alike) > 1 or (len(cards) > 1 and cards[-1].sequence > since.sequence)


async def _stored_card(registry: Registry, agent_id: str, fingerprint: str) -> Card | None:
    stored = await registry.store.card(agent_id, fingerprint) if fingerprint else None
    if stored is None:
        return None
    try:
        return parse_card(stored.body, stored.card_url)
    except CardInvalid:
        return None


def _event(state: AgentState, kind: EventKind, changes: ChangeSet = NOTHING, tags: tuple[str, ...] = ()) -> Event:
    record = state.record
    return Event(
        kind=kind,
        agent=record.id,
        agent_url=record.agent_url,
        cause=Cause.REFRESH,
        changes=changes,
        tags=tags,
        sequence=record.sequence,
    )
