"""Fetching one agent's card and making its answer the agent's state.

Single flight per agent: whoever asks while a fetch is in the air gets that one's answer.
"""

import asyncio
import logging
from dataclasses import dataclass, replace

from cardkeeper.card.change import ChangeSet
from cardkeeper.card.compare import compare
from cardkeeper.card.model import Card
from cardkeeper.clock import Clock
from cardkeeper.drift.model import Verdict
from cardkeeper.errors import CardkeeperError, CardUnavailable, EgressRefused, Exhausted
from cardkeeper.fetch.address import agent_id_for
from cardkeeper.fetch.base import CardRequest, CardResponse, Fetcher
from cardkeeper.fleet.agent_state import AgentState
from cardkeeper.fleet.policy import FleetPolicy
from cardkeeper.fleet.registry import Registry
from cardkeeper.fleet.single_flight import SingleFlight
from cardkeeper.fleet.statistics import Statistics
from cardkeeper.fleet.task_scope import TaskScope
from cardkeeper.store.base import (
    AgentRecord,
    Cause,
    Commit,
    Conflict,
    DriftRecord,
    Event,
    EventKind,
    Failure,
    Store,
    StoredCard,
    StoreUnavailable,
)

log = logging.getLogger(__name__)

NOTHING = ChangeSet(previous_skill_fingerprint="", skill_fingerprint="", changes=(), version_changed=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What a flight came to."""

    state: AgentState | None
    """The agent after it; None: it is not kept (removed meanwhile, or never reached)."""
    changes: ChangeSet = NOTHING
    sequence: int = 0
    """The revision that the change took; 0: nothing changed."""
    error: CardkeeperError | None = None
    """Why there is no verified card now."""
    conditional: bool = False


class Refetcher:
    """Flights by canonical agent URL."""

    def __init__(
        self,
        registry: Registry,
        fetcher: Fetcher,
        clock: Clock,
        policy: FleetPolicy,
        scope: TaskScope,
        statistics: Statistics,
    ) -> None:
        self._registry = registry
        self._fetcher = fetcher
        self._clock = clock
        self._policy = policy
        self._statistics = statistics
        self._flights: SingleFlight[Fetched] = SingleFlight(scope)

    def flight(self, agent_url: str, cause: Cause, *, conditional: bool) -> "asyncio.Task[Fetched]":
        """Return the fetch of that agent that is in the air, or start one."""
        return self._flights.start(agent_url, lambda: self._fetch(agent_url, cause, conditional=conditional))

    def in_the_air(self, agent_url: str) -> "asyncio.Task[Fetched] | None":
        """Return the fetch of that agent that is in the air, or None."""
        return self._flights.current(agent_url)

    async def _fetch(self, agent_url: str, cause: Cause, *, conditional: bool) -> Fetched:
        request = self._request(agent_url, conditional=conditional)
        self._statistics.fetches += 1
        try:
            response = await self._fetcher.fetch(request, timeout=self._policy.fetch_timeout)
            fetched = await self._succeeded(agent_url, response, cause)
        except (CardUnavailable, EgressRefused) as error:
            self._statistics.failed_fetches += 1
            fetched = await self._failed(agent_url, error)
        except CardkeeperError as error:  # a full registry, a store that is away: nothing about the agent
            fetched = Fetched(state=self._registry.by_url(agent_url), error=error)
        return replace(fetched, conditional=bool(request.etag or request.last_modified))

    def _request(self, agent_url: str, *, conditional: bool) -> CardRequest:
        state = self._registry.by_url(agent_url)
        if state is None:
            return CardRequest(agent_url=agent_url)
        record = state.record
        believed = self._clock.monotonic() - state.fetched < self._policy.trust_validators
        if not conditional or not believed or record.validators_lie or state.card is None:
            return CardRequest(agent_url=agent_url, card_url=record.card_url)
        return CardRequest(
            agent_url=agent_url, card_url=record.card_url, etag=record.etag, last_modified=record.last_modified
        )

    async def _succeeded(self, agent_url: str, response: CardResponse, cause: Cause) -> Fetched:
        before = self._registry.by_url(agent_url)
        try:
            if before is None:
                return await self._discovered(agent_url, response, cause)
            fetched = await self._verified(before, response, cause)
        except Conflict:
            # Removed or replaced while the fetch was under way: what is there now is newer than the answer.
            return Fetched(state=self._registry.by_url(agent_url))
        if fetched.changes.surface_changed and before.card is not None and cause is not Cause.EVIDENCE:
            # Evidence is recorded with what was observed, by whoever settles it.
            await record_drift(self._registry.store, _found(before.record.id, fetched, cause, self._clock.now()))
        return fetched

    async def _discovered(self, agent_url: str, response: CardResponse, cause: Cause) -> Fetched:
        """Keep an agent that nobody registered, now that its card is known."""
        if len(self._registry) >= self._policy.max_agents:
            raise Exhausted(
                f"{self._policy.max_agents} agents are kept already",
                reason="QUOTA_EXCEEDED",
                metadata={"limit": str(self._policy.max_agents)},
                retry_after=60.0,
            )
        record = AgentRecord(id=agent_id_for(agent_url), agent_url=agent_url)
        return await self._changed(record, None, response, cause, EventKind.ADDED)

    async def _verified(self, before: AgentState, response: CardResponse, cause: Cause) -> Fetched:
        card, record = response.card, before.record
        if card is None or (before.card is not None and card.card_digest == before.card.card_digest):
            verified = self._freshened(record, response, before.card)
            if record.suspicion is None:
                await self._registry.touch(verified, before.card)
                return Fetched(state=self._registry.by_url(record.agent_url))
            event = self._event(verified, EventKind.CLEARED, cause, compare(before.card, before.card))
            cleared = replace(verified, suspicion=None)
            await self._registry.commit(Commit(expected=record.sequence, event=event, record=cleared), before.card)
            return Fetched(state=self._registry.by_url(record.agent_url))
        return await self._changed(record, before.card, response, cause, EventKind.CHANGED)

    async def _changed(
        self, record: AgentRecord, old: Card | None, response: CardResponse, cause: Cause, kind: EventKind
    ) -> Fetched:
        card = response.card
        if card is None:
            raise CardUnavailable(
                "the source says 'not modified' although no card is held", metadata={"cause": "http-304"}
            )
        changes = compare(old, card)
        counted = old is not None and changes.surface_changed
        record = replace(
            self._freshened(record, response, card),
            card_digest=card.card_digest,
            skill_fingerprint=card.skill_fingerprint,
            suspicion=None,
            validators_lie=record.validators_lie or _lied(record, response),
            change_count=record.change_count + counted,
            silent_change_count=record.silent_change_count + changes.silent,
        )
        stored = StoredCard(
            agent=record.id,
            skill_fingerprint=card.skill_fingerprint,
            card_digest=card.card_digest,
            body=response.body,
            card_url=response.card_url,
            fetched_at=self._clock.now(),
            cause=cause,
            dialect=card.dialect,
            version=card.version,
        )
        event = self._event(record, kind, cause, changes, touched_tags(changes, old, card))
        event = await self._registry.commit(
            Commit(expected=record.sequence, event=event, record=record, card=stored), card
        )
        self._statistics.changes += counted
        self._statistics.silent_changes += changes.silent
        return Fetched(state=self._registry.by_url(record.agent_url), changes=changes, sequence=event.sequence)

    async def _failed(self, agent_url: str, error: CardkeeperError) -> Fetched:
        state = self._registry.by_url(agent_url)
        if state is None:
            return Fetched(state=None, error=error)
        count = state.record.failure.count + 1 if state.record.failure else 1
        wait = min(self._policy.first_backoff * 2.0 ** min(count - 1, 32), self._policy.max_backoff)
        now = self._clock.now()
        failure = Failure(reason=error.reason, message=error.message, count=count, failed_at=now, retry_at=now + wait)
        await self._registry.touch(replace(state.record, failure=failure), state.card)
        return Fetched(state=self._registry.by_url(agent_url), error=error)

    def _freshened(self, record: AgentRecord, response: CardResponse, card: Card | None) -> AgentRecord:
        """The record after its card was verified."""
        policy = self._policy
        stated = response.max_age
        lifetime = (
            policy.soft_lifetime if stated is None else min(max(stated, policy.min_lifetime), policy.max_lifetime)
        )
        unmodified = response.card is None
        return replace(
            record,
            card_url=response.card_url,
            etag=response.etag or (record.etag if unmodified else ""),
            last_modified=response.last_modified or (record.last_modified if unmodified else ""),
            verified_at=self._clock.now(),
            fetched_at=record.fetched_at if unmodified else self._clock.now(),
            lifetime=lifetime,
            failure=None,
        )

    def _event(
        self, record: AgentRecord, kind: EventKind, cause: Cause, changes: ChangeSet, tags: tuple[str, ...] = ()
    ) -> Event:
        return Event(
            kind=kind,
            agent=record.id,
            agent_url=record.agent_url,
            cause=cause,
            changes=changes,
            tags=tags,
            occurred_at=self._clock.now(),
        )


async def record_drift(store: Store, record: DriftRecord) -> None:
    """Append to the log of drift events; what cannot be stored is logged and does not fail the answer."""
    try:
        await store.add_drift(record)
    except StoreUnavailable as error:
        log.warning("a drift event of %s is not stored: %s", record.agent, error)


def _found(agent_id: str, fetched: Fetched, cause: Cause, now: float) -> DriftRecord:
    return DriftRecord(
        agent=agent_id,
        occurred_at=now,
        cause=cause,
        verdict=Verdict.CARD_CHANGED,
        skill_fingerprint=fetched.changes.previous_skill_fingerprint,
        changes=fetched.changes,
        sequence=fetched.sequence,
    )


def _lied(record: AgentRecord, response: CardResponse) -> bool:
    """Whether the source gave a new document under the validator of the old one."""
    if response.etag or record.etag:
        return bool(response.etag) and response.etag == record.etag
    return bool(response.last_modified) and response.last_modified == record.last_modified


def touched_tags(changes: ChangeSet, old: Card | None, new: Card | None) -> tuple[str, ...]:
    """Tags of the skills touched, before or after, sorted."""
    touched = set(changes.skill_ids)
    skills = (*(old.skills if old else ()), *(new.skills if new else ()))
    return tuple(sorted({tag for skill in skills if skill.id in touched for tag in skill.tags}))
