"""Freshness, consistency and budgets, on a clock that only moves when told."""

from dataclasses import replace

import pytest

from cardkeeper.card.parse import parse_card
from cardkeeper.clock import ManualClock
from cardkeeper.errors import RevisionMismatch
from cardkeeper.fleet.agent_state import AgentState, Freshness, agent_state
from cardkeeper.fleet.budget import Budget
from cardkeeper.fleet.consistency import CACHED, Consistency, Step, check_revision, step_for
from cardkeeper.fleet.revision_log import Revision
from cardkeeper.rpc.lag import Lag
from cardkeeper.store.base import AgentRecord, Failure, Suspicion

CARD = parse_card(b'{"name":"n","url":"http://x.example","version":"1","skills":[{"id":"s","name":"s"}]}')


def state(clock: ManualClock, **fields: object) -> AgentState:
    record = AgentRecord(id="a", agent_url="http://x.example", verified_at=clock.now(), lifetime=100.0, **fields)  # type: ignore[arg-type]
    return agent_state(record, CARD, clock, hard_lifetime=1000.0)


def step(held: AgentState, clock: ManualClock, consistency: Consistency = CACHED) -> Step:
    return step_for(held, consistency, clock.monotonic())


def test_a_card_is_fresh_then_stale_then_unusable() -> None:
    clock = ManualClock()
    held = state(clock)
    assert (step(held, clock), held.freshness(clock.monotonic())) == (Step.SERVE, Freshness.FRESH)
    clock.advance(101)
    assert (step(held, clock), held.freshness(clock.monotonic())) == (Step.SERVE_AND_REVALIDATE, Freshness.STALE)
    clock.advance(900)
    assert step(held, clock) is Step.REVALIDATE


def test_a_stale_card_whose_source_failed_is_served_without_hammering_the_source() -> None:
    clock = ManualClock()
    failure = Failure(
        reason="CARD_UNREACHABLE", message="m", count=1, failed_at=clock.now(), retry_at=clock.now() + 200
    )
    held = state(clock, failure=failure)
    clock.advance(101)
    assert step(held, clock) is Step.SERVE
    clock.advance(100)
    assert step(held, clock) is Step.SERVE_AND_REVALIDATE


@pytest.mark.parametrize("seconds", [-86_400.0, 86_400.0])
def test_a_step_of_wall_time_neither_ages_nor_rejuvenates(seconds: float) -> None:
    clock = ManualClock()
    held = state(clock)
    clock.advance(50)
    clock.step_wall(seconds)
    assert step(held, clock) is Step.SERVE
    clock.advance(51)
    assert step(held, clock) is Step.SERVE_AND_REVALIDATE


@pytest.mark.parametrize("seconds", [-86_400.0, 86_400.0])
def test_a_step_of_wall_time_neither_hurries_nor_delays_a_retry(seconds: float) -> None:
    clock = ManualClock()
    failure = Failure(
        reason="CARD_UNREACHABLE", message="m", count=1, failed_at=clock.now(), retry_at=clock.now() + 200
    )
    held = state(clock, failure=failure)
    clock.advance(101)
    clock.step_wall(seconds)
    held = agent_state(held.record, CARD, clock, hard_lifetime=1000.0, previous=held)
    assert step(held, clock) is Step.SERVE
    clock.advance(100)
    assert step(held, clock) is Step.SERVE_AND_REVALIDATE


def test_a_backoff_that_seems_to_end_in_a_year_ends_after_its_own_length() -> None:
    clock = ManualClock()
    failure = Failure(reason="CARD_UNREACHABLE", message="m", count=1, failed_at=4e9, retry_at=4e9 + 7)
    assert state(clock, failure=failure).retry_at == clock.monotonic() + 7


@pytest.mark.parametrize("seconds", [-86_400.0, 86_400.0])
def test_a_failure_after_a_step_of_wall_time_leaves_the_card_its_age(seconds: float) -> None:
    clock = ManualClock()
    held = state(clock)
    clock.advance(50)
    clock.step_wall(seconds)
    failure = Failure(reason="CARD_UNREACHABLE", message="m", count=1, failed_at=clock.now(), retry_at=clock.now() + 1)
    after = agent_state(replace(held.record, failure=failure), CARD, clock, hard_lifetime=1000.0, previous=held)
    assert (after.fresh_until, after.usable_until) == (held.fresh_until, held.usable_until)


def test_a_verification_in_the_future_counts_as_one_of_now() -> None:
    clock = ManualClock()
    record = AgentRecord(id="a", agent_url="u", verified_at=clock.now() + 9e9, lifetime=100.0)
    assert agent_state(record, CARD, clock, hard_lifetime=1000.0).fresh_until == clock.monotonic() + 100.0


def test_max_age_asks_for_a_revalidation_of_what_is_older() -> None:
    clock = ManualClock()
    held = state(clock)
    clock.advance(10)
    assert step(held, clock, Consistency(max_age=11.0)) is Step.SERVE
    assert step(held, clock, Consistency(max_age=9.0)) is Step.REVALIDATE


def test_a_suspect_card_is_never_served_unchecked() -> None:
    clock = ManualClock()
    held = state(clock, suspicion=Suspicion(since=0.0, skill_id="s", evidence=()))
    assert step(held, clock) is Step.REFETCH
    assert held.freshness(clock.monotonic()) is Freshness.SUSPECT


def test_a_revision_of_another_epoch_or_of_the_future_is_refused() -> None:
    head = Revision("e", 5)
    check_revision(Revision("e", 5), head)
    check_revision(None, head)
    with pytest.raises(RevisionMismatch) as other:
        check_revision(Revision("f", 1), head)
    assert other.value.reason == "EPOCH_CHANGED"
    with pytest.raises(RevisionMismatch) as future:
        check_revision(Revision("e", 6), head)
    assert (future.value.reason, future.value.metadata) == ("REVISION_NOT_REACHED", {"epoch": "e", "sequence": "5"})


def test_a_budget_gives_its_burst_and_then_one_an_interval() -> None:
    clock = ManualClock()
    budget = Budget(clock, burst=3, interval=10.0)
    assert [budget.take("k") for _ in range(4)] == [True, True, True, False]
    assert budget.wait("k") == pytest.approx(10.0)
    clock.advance(10.0)
    assert [budget.take("k") for _ in range(2)] == [True, False]
    assert budget.take("other")


def test_a_budget_is_bounded_in_keys() -> None:
    budget = Budget(ManualClock(), burst=1, interval=10.0, max_keys=10)
    for number in range(100):
        budget.take(str(number))
    assert len(budget._buckets) == 10


def test_only_a_client_that_acknowledges_can_be_overdue() -> None:
    clock = ManualClock()
    lag = Lag(clock, timeout=30.0)
    lag.sent(5)
    clock.advance(100)
    assert not lag.overdue()
    lag.acknowledge(5)
    clock.advance(100)
    assert not lag.overdue()
    lag.sent(6)
    clock.advance(29)
    assert not lag.overdue()
    clock.advance(2)
    assert lag.overdue()


def test_progress_counts_and_an_acknowledgement_of_the_future_does_not() -> None:
    clock = ManualClock()
    lag = Lag(clock, timeout=30.0)
    lag.sent(5)
    lag.acknowledge(3)
    clock.advance(29)
    lag.acknowledge(4)
    clock.advance(29)
    assert not lag.overdue()
    lag.acknowledge(2**60)
    lag.sent(6)
    clock.advance(31)
    assert lag.overdue()
    assert lag.acknowledged == 5
