"""From evidence to a settled verdict: at most one bounded re-fetch, shared by all who report the same."""

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from cardkeeper.card.change import ChangeSet
from cardkeeper.clock import Clock
from cardkeeper.drift.model import Evidence, Verdict
from cardkeeper.errors import CardkeeperError, DeadlineTooShort
from cardkeeper.fleet.agent_state import AgentState
from cardkeeper.fleet.budget import Budget
from cardkeeper.fleet.policy import FleetPolicy
from cardkeeper.fleet.refetch import NOTHING, Fetched, Refetcher, record_drift
from cardkeeper.fleet.registry import Registry
from cardkeeper.fleet.single_flight import wait_for
from cardkeeper.fleet.statistics import Statistics
from cardkeeper.store.base import Cause, Commit, Conflict, DriftRecord, Event, EventKind, Suspicion

MAX_REMEMBERED = 10_000
"""Settled pieces of evidence that are remembered at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What the evidence came to."""

    verdict: Verdict
    state: AgentState | None
    """The agent as it is now; None: it is not kept any more."""
    retry_after: float = 0.0
    """With UNCONFIRMED: seconds until asking again may help."""


@dataclass(frozen=True, slots=True)
class _Remembered:
    verdict: Verdict
    until: float


class Investigator:
    """Settles evidence against agents that are kept."""

    def __init__(
        self, registry: Registry, refetcher: Refetcher, clock: Clock, policy: FleetPolicy, statistics: Statistics
    ) -> None:
        self._registry = registry
        self._refetcher = refetcher
        self._clock = clock
        self._policy = policy
        self._statistics = statistics
        self._remembered: OrderedDict[tuple[str, ...], _Remembered] = OrderedDict()
        self.agent_budget = Budget(clock, burst=policy.agent_refetch_burst, interval=policy.agent_refetch_interval)
        self._reporter_budget = Budget(
            clock, burst=policy.reporter_refetch_burst, interval=policy.reporter_refetch_interval
        )

    async def settle(
        self,
        agent_id: str,
        fingerprint: str,
        skill_id: str,
        evidence: Sequence[Evidence],
        *,
        reporter: str,
        timeout: float,
    ) -> Settlement:
        """Settle evidence against the snapshot of that fingerprint, within `timeout` seconds."""
        self._statistics.evidence += 1
        state = self._registry.by_id(agent_id)
        if state is None or state.record.skill_fingerprint != fingerprint:
            return Settlement(verdict=Verdict.CARD_CHANGED, state=state)
        key = (agent_id, fingerprint, skill_id, *sorted({item.kind for item in evidence}))
        verdict = self._recall(key)
        if verdict is Verdict.UNCONFIRMED and state.record.failure is not None:
            return self._unconfirmed(state)
        if verdict is Verdict.AGENT_CONTRADICTS_CARD:
            return Settlement(verdict=verdict, state=state)
        fetched = await self._refetch(state, reporter, timeout)
        if fetched is None:
            return self._refused(state, reporter)
        return await self._conclude(key, fetched, fingerprint, skill_id, tuple(evidence))

    async def _refetch(self, state: AgentState, reporter: str, timeout: float) -> Fetched | None:
        """Fetch unconditionally, or join who does; None where the budgets allow no fetch now."""
        url, agent_id = state.record.agent_url, state.record.id
        deadline = self._clock.monotonic() + timeout
        while True:
            flight = self._refetcher.in_the_air(url)
            if flight is None:
                if self._reporter_budget.wait(reporter) or not self.agent_budget.take(agent_id):
                    return None
                self._reporter_budget.take(reporter)
                self._statistics.refetches_on_evidence += 1
                flight = self._refetcher.flight(url, Cause.EVIDENCE, conditional=False)
            try:
                fetched = await wait_for(flight, deadline - self._clock.monotonic(), state.name)
            except DeadlineTooShort as error:
                return Fetched(state=self._registry.by_id(agent_id), error=error)
            if not fetched.conditional or fetched.sequence or fetched.error is not None:
                return fetched
            # What was in the air was a conditional fetch that says "not modified": no answer to evidence.

    async def _conclude(
        self, key: tuple[str, ...], fetched: Fetched, fingerprint: str, skill_id: str, evidence: tuple[Evidence, ...]
    ) -> Settlement:
        agent_id = key[0]
        state = self._registry.by_id(agent_id)
        if state is None or state.record.skill_fingerprint != fingerprint:
            verdict, changes = Verdict.CARD_CHANGED, fetched.changes if fetched.sequence else None
        elif fetched.error is not None:
            verdict, changes = Verdict.UNCONFIRMED, None
        else:
            verdict, changes = Verdict.AGENT_CONTRADICTS_CARD, None
        first = self._recall(key) is None
        if not isinstance(fetched.error, DeadlineTooShort):
            self._remember(key, verdict)
        # What an agent has always done is no event, however often it is seen.
        habit = verdict is Verdict.AGENT_CONTRADICTS_CARD and all(item.untyped for item in evidence)
        if first and not habit:
            await self._record(agent_id, fingerprint, skill_id, evidence, verdict, changes, fetched.sequence)
        if verdict is not Verdict.UNCONFIRMED or state is None:
            return Settlement(verdict=verdict, state=state)
        if first and _about_the_agent(fetched.error):
            state = await self._suspect(state, skill_id, evidence) or state
        return self._unconfirmed(state)

    async def _suspect(self, state: AgentState, skill_id: str, evidence: tuple[Evidence, ...]) -> AgentState | None:
        """Mark the agent as one that the service cannot vouch for, and tell everyone; once."""
        record = state.record
        if record.suspicion is not None:
            return state
        suspicion = Suspicion(since=self._clock.now(), skill_id=skill_id, evidence=evidence[:8])
        event = Event(
            kind=EventKind.SUSPECTED,
            agent=record.id,
            agent_url=record.agent_url,
            cause=Cause.EVIDENCE,
            changes=_unchanged(record.skill_fingerprint),
            occurred_at=self._clock.now(),
        )
        commit = Commit(expected=record.sequence, event=event, record=replace(record, suspicion=suspicion))
        with suppress(Conflict):  # somebody else's commit came first: another report's suspicion, or a newer card
            await self._registry.commit(commit, state.card)
        return self._registry.by_id(record.id)

    async def _record(
        self,
        agent_id: str,
        fingerprint: str,
        skill_id: str,
        evidence: tuple[Evidence, ...],
        verdict: Verdict,
        changes: ChangeSet | None,
        sequence: int,
    ) -> None:
        record = DriftRecord(
            agent=agent_id,
            occurred_at=self._clock.now(),
            cause=Cause.EVIDENCE,
            verdict=verdict,
            skill_id=skill_id,
            skill_fingerprint=fingerprint,
            evidence=evidence[:8],
            changes=changes,
            sequence=sequence,
        )
        await record_drift(self._registry.store, record)

    def _unconfirmed(self, state: AgentState) -> Settlement:
        wait = state.retry_at - self._clock.monotonic() if state.record.failure else self._policy.first_backoff
        return Settlement(verdict=Verdict.UNCONFIRMED, state=state, retry_after=max(wait, 0.1))

    def _refused(self, state: AgentState, reporter: str) -> Settlement:
        """No fetch is allowed now: the last whole one answers, if it is no older than the fetches are apart.

        Else nothing is known, and nothing is held against the agent: a reporter who lies must not make it suspect.
        """
        if self._clock.monotonic() - state.fetched <= 1.5 * self._policy.agent_refetch_interval:
            return Settlement(verdict=Verdict.AGENT_CONTRADICTS_CARD, state=state)
        wait = max(self._reporter_budget.wait(reporter), self.agent_budget.wait(state.record.id), 0.1)
        return Settlement(verdict=Verdict.UNCONFIRMED, state=state, retry_after=wait)

    def _recall(self, key: tuple[str, ...]) -> Verdict | None:
        remembered = self._remembered.get(key)
        if remembered is None or remembered.until <= self._clock.monotonic():
            return None
        return remembered.verdict

    def _remember(self, key: tuple[str, ...], verdict: Verdict) -> None:
        if self._recall(key) is None:
            self._remembered[key] = _Remembered(verdict, self._clock.monotonic() + self._policy.evidence_memory)
            self._remembered.move_to_end(key)
            if len(self._remembered) > MAX_REMEMBERED:
                self._remembered.popitem(last=False)


def _about_the_agent(error: CardkeeperError | None) -> bool:
    """Whether a failed fetch says something about the agent, not about the caller's patience or our own store."""
    return error is not None and error.reason in ("CARD_UNREACHABLE", "CARD_INVALID", "EGRESS_REFUSED")


def _unchanged(fingerprint: str) -> ChangeSet:
    return replace(NOTHING, previous_skill_fingerprint=fingerprint, skill_fingerprint=fingerprint)
