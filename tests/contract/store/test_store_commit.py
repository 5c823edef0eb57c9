"""Revisions: compare and set, order, the log, and callers that go away."""

import asyncio
from dataclasses import replace

import pytest

from cardkeeper.store.base import Compacted, Conflict, EventKind, Failure, History, Store, StoreUnavailable, Suspicion
from store_records import EVIDENCE, change_to, held_sequence, removal, stored_card, without_card


async def test_a_new_store_is_empty_and_has_an_epoch(make_store):
    engine = make_store(History())
    image = await engine.open()
    await engine.close()
    assert image.epoch
    assert image.sequence == 0
    assert image.agents == ()


async def test_a_commit_sets_its_sequence_in_event_record_and_card(store: Store):
    commit = change_to("a", "d1", expected=0, kind=EventKind.ADDED)
    event = await store.commit(commit)
    assert event == replace(commit.event, sequence=1)
    assert await store.agent("a") == replace(commit.record, sequence=1)
    assert await store.card("a", "d1") == replace(commit.card, sequence=1)
    assert await store.events_after(0) == (event,)


async def test_every_field_of_a_record_comes_back(store: Store):
    odd = '\ud800 \x00 \u2028 \U0001f600 "'
    commit = change_to("a", "d1", expected=0)
    record = replace(
        commit.record,
        etag=odd,
        verified_at=1.5,
        validators_lie=True,
        failure=Failure(reason="CARD_INVALID", message=odd, count=2, failed_at=3.25, retry_at=4.0),
        suspicion=Suspicion(since=5.0, skill_id=odd, evidence=(EVIDENCE, EVIDENCE)),
        change_count=9,
    )
    card = replace(commit.card, body=bytes(range(256)), version=odd)
    await store.commit(replace(commit, record=record, card=card))
    assert await store.agent("a") == replace(record, sequence=1)
    assert await store.card("a", "d1") == replace(card, sequence=1)


@pytest.mark.parametrize("expected", [0, 2, 99])
async def test_a_commit_at_another_sequence_conflicts_and_changes_nothing(store: Store, expected: int):
    await store.commit(change_to("a", "d1", expected=0))
    before = await store.agent("a"), await store.events_after(0), await store.cards("a", before=0, limit=9)
    with pytest.raises(Conflict):
        await store.commit(change_to("a", "d2", expected=expected))
    assert before == (await store.agent("a"), await store.events_after(0), await store.cards("a", before=0, limit=9))


async def test_a_commit_to_an_agent_that_is_not_kept_conflicts_where_one_is_expected(store: Store):
    with pytest.raises(Conflict):
        await store.commit(change_to("a", "d1", expected=1))
    assert await store.events_after(0) == ()


async def test_one_log_orders_the_changes_of_all_agents(store: Store):
    names = [f"agent-{number}" for number in range(40)]
    events = await asyncio.gather(*(store.commit(change_to(name, "d1", expected=0)) for name in names))
    assert sorted(event.sequence for event in events) == list(range(1, 41))
    log = await store.events_after(0)
    assert [event.sequence for event in log] == list(range(1, 41))
    assert {event.agent: event.sequence for event in log} == {event.agent: event.sequence for event in events}
    assert {await held_sequence(store, name) for name in names} == set(range(1, 41))


async def test_of_concurrent_commits_on_one_state_exactly_one_wins(store: Store):
    await store.commit(change_to("a", "d0", expected=0))
    commits = (store.commit(change_to("a", f"d{number}", expected=1)) for number in range(1, 20))
    results = await asyncio.gather(*commits, return_exceptions=True)
    winners = [result for result in results if not isinstance(result, Exception)]
    assert len(winners) == 1
    assert all(isinstance(result, Conflict) for result in results if result not in winners)
    assert await held_sequence(store, "a") == winners[0].sequence == 2


async def test_events_after_the_last_revision_are_none(store: Store):
    await store.commit(change_to("a", "d1", expected=0))
    assert await store.events_after(1) == ()
    assert await store.events_after(99) == ()


async def test_a_log_that_does_not_reach_back_says_so_and_serves_what_it_has(small_store: Store):
    for number in range(10):
        await small_store.commit(change_to("a", f"d{number}", expected=number))
    for sequence in range(4):
        with pytest.raises(Compacted):
            await small_store.events_after(sequence)
    for sequence in range(4, 11):
        assert [event.sequence for event in await small_store.events_after(sequence)] == list(range(sequence + 1, 11))


async def test_a_removed_agent_is_gone_and_its_cards_stay(store: Store):
    await store.commit(change_to("a", "d1", expected=0))
    event = await store.commit(removal("a", expected=1))
    assert event.sequence == 2
    assert await store.agent("a") is None
    assert (await store.card("a", "d1")) is not None
    assert [event.kind for event in await store.events_after(0)] == [EventKind.CHANGED, EventKind.REMOVED]


async def test_a_removal_at_another_sequence_conflicts(store: Store):
    await store.commit(change_to("a", "d1", expected=0))
    with pytest.raises(Conflict):
        await store.commit(removal("a", expected=2))
    assert await held_sequence(store, "a") == 1


async def test_an_agent_that_returns_takes_a_higher_sequence_and_its_old_one_conflicts(store: Store):
    await store.commit(change_to("a", "d1", expected=0))
    await store.commit(removal("a", expected=1))
    with pytest.raises(Conflict):
        await store.commit(change_to("a", "d2", expected=1))
    event = await store.commit(change_to("a", "d2", expected=0))
    assert event.sequence == await held_sequence(store, "a") == 3


async def test_touch_replaces_a_record_without_a_revision(store: Store):
    await store.commit(change_to("a", "d1", expected=0))
    touched = replace(await store.agent("a"), verified_at=12.5, etag='"x"')
    await store.touch(touched)
    assert await store.agent("a") == touched
    assert [event.sequence for event in await store.events_after(0)] == [1]


async def test_touch_is_ignored_at_another_sequence_and_for_an_agent_that_is_gone(store: Store):
    await store.commit(change_to("a", "d1", expected=0))
    old = await store.agent("a")
    await store.commit(change_to("a", "d2", expected=1))
    new = await store.agent("a")
    await store.touch(replace(old, etag="old"))
    assert await store.agent("a") == new
    await store.commit(removal("a", expected=2))
    await store.touch(new)
    assert await store.agent("a") is None


async def test_a_cancelled_commit_is_there_whole_or_not_at_all(store: Store):
    """Cancelled at every point that a caller can reach, with others in the queue before it."""
    kept = 0
    for turn in range(30):
        names = [f"{turn}-{number}" for number in range(4)]
        tasks = [asyncio.create_task(store.commit(change_to(name, "d1", expected=0))) for name in names]
        for _ in range(turn % 6):
            await asyncio.sleep(0)
        if turn % 3 == 2:
            await asyncio.sleep(0.0002 * turn)
        tasks[-1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        record, card = await store.agent(names[-1]), await store.card(names[-1], "d1")
        named = [event.sequence for event in await store.events_after(kept) if event.agent == names[-1]]
        if record is None:
            assert (card, named) == (None, [])
        else:
            assert card is not None
            assert [record.sequence] == [card.sequence] == named
        log = await store.events_after(0)
        kept = len(log)
        assert [event.sequence for event in log] == list(range(1, kept + 1))
    assert await store.commit(change_to("after", "d1", expected=0))


async def test_close_may_be_called_twice_and_a_closed_store_refuses(store: Store):
    await store.commit(change_to("a", "d1", expected=0))
    await store.close()
    await store.close()
    for call in (
        store.commit(change_to("a", "d2", expected=1)),
        store.agent("a"),
        store.events_after(0),
        store.card("a", "d1"),
        store.cards("a", before=0, limit=1),
        store.drift("", before=0, limit=1),
    ):
        with pytest.raises(StoreUnavailable, match="not open"):
            await call


async def test_a_commit_without_a_card_keeps_the_cards_that_are_there(store: Store):
    await store.commit(change_to("a", "d1", expected=0))
    await store.commit(without_card(change_to("a", "d1", expected=1, kind=EventKind.SUSPECTED)))
    assert await store.card("a", "d1") == replace(stored_card("a", "d1"), sequence=1)
    assert len(await store.cards("a", before=0, limit=9)) == 1
