"""The keeper: answers from the cards that are held, and sees to it that they are held and fresh."""

from dataclasses import dataclass, replace

from cardkeeper.card.change import ChangeSet
from cardkeeper.card.compare import compare
from cardkeeper.clock import Clock
from cardkeeper.errors import (
    AlreadyExists,
    CardInvalid,
    CardkeeperError,
    CardUnavailable,
    EgressRefused,
    Exhausted,
    NotFound,
)
from cardkeeper.fetch.address import agent_id_for
from cardkeeper.fleet.agent_state import AgentState
from cardkeeper.fleet.budget import Budget
from cardkeeper.fleet.consistency import CACHED, Consistency, Step, check_revision, step_for
from cardkeeper.fleet.negotiation import Need
from cardkeeper.fleet.policy import FleetPolicy
from cardkeeper.fleet.refetch import Fetched, Refetcher
from cardkeeper.fleet.registry import Registry
from cardkeeper.fleet.resolution import Resolution, resolve
from cardkeeper.fleet.single_flight import wait_for
from cardkeeper.store.base import AgentRecord, Cause, Commit, Conflict, Event, EventKind, Failure
from cardkeeper.store.cache import BoundedCache

MAX_UNREACHABLE = 10_000
"""URLs that are remembered for not answering with a card, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRef:
    """How a caller names an agent: by id or by canonical URL; exactly one is set."""

    id: str = ""
    url: str = ""

    def __str__(self) -> str:
        return f"agents/{self.id}" if self.id else self.url


class Keeper:
    """Resolve, register, refresh. Everything it holds is in the registry."""

    def __init__(
        self, registry: Registry, refetcher: Refetcher, clock: Clock, policy: FleetPolicy, requested: Budget
    ) -> None:
        self._registry = registry
        self._refetcher = refetcher
        self._clock = clock
        self._policy = policy
        self._requested = requested
        """Re-fetches that callers ask for outright."""
        self._unreachable: BoundedCache[CardkeeperError] = BoundedCache(
            max_entries=MAX_UNREACHABLE, ttl=policy.first_backoff
        )

    def lookup(self, ref: AgentRef) -> AgentState:
        """Return an agent that is kept. Raises NotFound."""
        state = self.find(ref)
        if state is None:
            raise NotFound(f"{ref} is not kept here", resource=str(ref), agent=str(ref))
        return state

    def find(self, ref: AgentRef) -> AgentState | None:
        """Return an agent that is kept, or None."""
        return self._registry.by_id(ref.id) if ref.id else self._registry.by_url(ref.url)

    async def resolve(
        self, ref: AgentRef, need: Need, consistency: Consistency = CACHED, *, timeout: float
    ) -> tuple[Resolution, AgentState]:
        """Negotiate a need within `timeout` seconds; also return the state that was answered from.

        Raises NotFound, SkillNotAdvertised, NotOffered, CardUnavailable, CardInvalid, EgressRefused, RevisionMismatch,
        Exhausted, DeadlineTooShort.
        """
        state = await self.state(ref, consistency, timeout=timeout)
        return resolve(state, need, self._clock.monotonic()), state

    async def state(self, ref: AgentRef, consistency: Consistency = CACHED, *, timeout: float) -> AgentState:
        """Return an agent with a card that may be answered from, fetched first where it must be."""
        check_revision(consistency.at_least, self._registry.revisions.head)
        state = self.find(ref)
        if state is None:
            return await self._discover(ref, timeout)
        step = step_for(state, consistency, self._clock.monotonic())
        if step is Step.SERVE:
            return state
        if step is Step.SERVE_AND_REVALIDATE:
            self._refetcher.flight(state.record.agent_url, Cause.REFRESH, conditional=True)
            return state
        return await self._fetched_first(ref, state, consistency, step, timeout)

    async def register(self, agent_url: str, agent_id: str, *, timeout: float) -> AgentState:
        """Keep an agent from now on, and fetch its card before the answer if it has none.

        A fetch that fails is not an error: the state says so. Raises AlreadyExists where the id or the URL is taken.
        """
        state = self._registry.by_url(agent_url)
        agent_id = agent_id or (state.record.id if state else agent_id_for(agent_url))
        holder = self._registry.by_id(agent_id)
        if (state is None) != (holder is None) or state is not holder:
            taken = holder or state
            raise AlreadyExists(
                f"{taken.name if taken else agent_id} is registered with {taken.record.agent_url if taken else ''}",
                metadata={"agent": taken.name if taken else agent_id},
            )
        if state is None:
            self._check_room()
            await self._add(AgentRecord(id=agent_id, agent_url=agent_url, registered=True))
        elif not state.record.registered:
            await self._registry.touch(replace(state.record, registered=True), state.card)
        if state is None or state.card is None:
            await wait_for(self._refetcher.flight(agent_url, Cause.OPERATOR, conditional=False), timeout, agent_url)
        return self.lookup(AgentRef(id=agent_id))

    async def unregister(self, ref: AgentRef) -> Event:
        """Stop keeping an agent and tell every subscriber. Raises NotFound."""
        while True:
            state = self.lookup(ref)
            event = self._event(state.record, EventKind.REMOVED, compare(state.card, None))
            try:
                return await self._registry.commit(
                    Commit(expected=state.record.sequence, event=event, record=None), None
                )
            except Conflict:
                continue  # a fetch changed it in between: remove what it is now

    async def refresh(self, ref: AgentRef, *, timeout: float) -> tuple[AgentState, ChangeSet]:
        """Fetch a card now, unconditionally, and say what that changed.

        Raises what the fetch failed with, NotFound, and Exhausted where the agent was refreshed too often.
        """
        state = self.lookup(ref)
        fetched = await self._requested_fetch(state, timeout)
        if fetched.error is not None:
            raise fetched.error
        return self.lookup(ref), fetched.changes

    async def _discover(self, ref: AgentRef, timeout: float) -> AgentState:
        """Meet an agent that nobody registered."""
        if not ref.url or not self._policy.discover:
            return self.lookup(ref)
        known = await self._unreachable.get(ref.url)
        if known is not None:
            raise known
        self._check_room()
        flight = self._refetcher.flight(ref.url, Cause.REFRESH, conditional=False)
        fetched = await wait_for(flight, timeout, ref.url)
        if fetched.state is None:
            error = self._with_retry(fetched.error or CardUnavailable(f"{ref.url} gave no card"))
            if isinstance(error, CardUnavailable | EgressRefused):
                await self._unreachable.set(ref.url, error)
            raise error
        return self._with_card(fetched.state)

    async def _fetched_first(
        self, ref: AgentRef, state: AgentState, consistency: Consistency, step: Step, timeout: float
    ) -> AgentState:
        record = state.record
        if record.failure is not None and self._clock.monotonic() < state.retry_at and not consistency.refetch:
            raise self._refusal(state, record.failure)
        if consistency.refetch:
            fetched = await self._requested_fetch(state, timeout)
        else:
            flight = self._refetcher.flight(record.agent_url, Cause.REFRESH, conditional=step is Step.REVALIDATE)
            fetched = await wait_for(flight, timeout, state.name)
        if fetched.error is not None:
            after = self._registry.by_id(record.id)
            if after is not None and after.record.failure is not None:
                raise self._refusal(after, after.record.failure, fetched.error)
            raise fetched.error
        # The fetch was of a URL: what is kept under the caller's reference may be another agent by now, or none.
        return self._with_card(self.lookup(ref))

    def _with_card(self, state: AgentState) -> AgentState:
        """The state, unless the agent was removed and registered anew while its card was fetched."""
        current = self._registry.by_id(state.record.id) if state.card is None else state
        if current is None or current.card is None:
            raise CardUnavailable(
                f"{state.name} was registered anew while its card was fetched: ask again",
                metadata={"agent": state.name, "cause": "replaced"},
                retry_after=self._policy.first_backoff,
            )
        return current

    async def _requested_fetch(self, state: AgentState, timeout: float) -> Fetched:
        url = state.record.agent_url
        flight = self._refetcher.in_the_air(url)
        if flight is None:
            if not self._requested.take(state.record.id):
                raise Exhausted(
                    f"{state.name} was re-fetched too often on request",
                    metadata={"agent": state.name},
                    retry_after=self._requested.wait(state.record.id),
                )
            flight = self._refetcher.flight(url, Cause.REQUESTED, conditional=False)
        fetched = await wait_for(flight, timeout, state.name)
        # What was in the air may have been conditional, and older than the caller's wish.
        return await self._requested_fetch(state, timeout) if fetched.conditional else fetched

    async def _add(self, record: AgentRecord) -> None:
        event = self._event(record, EventKind.ADDED, compare(None, None))
        try:
            await self._registry.commit(Commit(expected=0, event=event, record=record), None)
        except Conflict as error:
            raise AlreadyExists(f"agents/{record.id} was registered just now", metadata={"agent": record.id}) from error

    def _event(self, record: AgentRecord, kind: EventKind, changes: ChangeSet) -> Event:
        return Event(
            kind=kind,
            agent=record.id,
            agent_url=record.agent_url,
            cause=Cause.OPERATOR,
            changes=changes,
            occurred_at=self._clock.now(),
        )

    def _check_room(self) -> None:
        if len(self._registry) >= self._policy.max_agents:
            raise Exhausted(
                f"{self._policy.max_agents} agents are kept already; unregister some or raise the limit",
                reason="QUOTA_EXCEEDED",
                metadata={"limit": str(self._policy.max_agents)},
                retry_after=60.0,
            )

    def _refusal(self, state: AgentState, failure: Failure, error: CardkeeperError | None = None) -> CardkeeperError:
        """Why an agent that is kept cannot be answered for."""
        wait = max(state.retry_at - self._clock.monotonic(), 0.1)
        metadata = {"agent": state.name, **(error.metadata if error else {})}
        if state.record.suspicion is not None:
            kinds = ",".join(sorted({item.kind for item in state.record.suspicion.evidence}))
            return CardUnavailable(
                f"there is unsettled evidence against the card of {state.name}, and it cannot be fetched: {failure.message}",
                reason="CARD_SUSPECT",
                metadata={**metadata, "evidence": kinds},
                retry_after=wait,
            )
        if failure.reason == "CARD_INVALID":
            findings = error.findings if isinstance(error, CardInvalid) else ()
            return CardInvalid(failure.message, findings=findings, metadata=metadata, retry_after=wait)
        if failure.reason == "EGRESS_REFUSED":
            return EgressRefused(failure.message, metadata=metadata)
        return CardUnavailable(failure.message, metadata=metadata, retry_after=wait)

    def _with_retry(self, error: CardkeeperError) -> CardkeeperError:
        if isinstance(error, CardUnavailable) and error.retry_after is None:
            error.retry_after = self._policy.first_backoff
        return error
