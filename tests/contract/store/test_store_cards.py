"""Cards and drift events: looking up, paging, and what is let go."""

from dataclasses import replace

from cardkeeper.store.base import Store
from store_records import change_to, drift_of, held_sequence, removal, stored_card, without_card


async def test_a_card_is_found_by_its_digest_and_by_its_skill_fingerprint(store: Store):
    await store.commit(change_to("a", "d1", expected=0, surface="s1", body=b"first"))
    expected = replace(stored_card("a", "d1", surface="s1", body=b"first"), sequence=1)
    assert await store.card("a", "d1") == expected
    assert await store.card("a", "s1") == expected


async def test_of_cards_with_one_fingerprint_the_newest_wins(store: Store):
    await store.commit(change_to("a", "d1", expected=0, surface="same", body=b"1"))
    await store.commit(change_to("a", "d2", expected=1, surface="same", body=b"2"))
    await store.commit(change_to("a", "d3", expected=2, surface="other", body=b"3"))
    assert (await store.card("a", "same")).body == b"2"
    assert (await store.card("a", "d1")).body == b"1"


async def test_a_card_that_comes_back_is_kept_again_and_is_the_newest(store: Store):
    for number, digest in enumerate(["d1", "d2", "d1"]):
        await store.commit(change_to("a", digest, expected=number, body=str(number).encode()))
    assert (await store.card("a", "d1")).sequence == 3
    assert [card.card_digest for card in await store.cards("a", before=0, limit=9)] == ["d1", "d2", "d1"]


async def test_cards_of_one_agent_are_not_found_for_another(store: Store):
    await store.commit(change_to("a", "d1", expected=0))
    assert await store.card("b", "d1") is None
    assert await store.cards("b", before=0, limit=9) == ()


async def test_an_unknown_or_empty_digest_finds_nothing(store: Store):
    await store.commit(change_to("a", "d1", expected=0))
    assert await store.card("a", "d2") is None
    assert await store.card("a", "") is None


async def test_cards_are_paged_newest_first_without_bodies(store: Store):
    for number in range(5):
        await store.commit(change_to("a", f"d{number}", expected=await held_sequence(store, "a")))
        await store.commit(change_to("b", f"d{number}", expected=await held_sequence(store, "b")))
    pages, before = [], 0
    while page := await store.cards("a", before=before, limit=2):
        assert all(card.body == b"" for card in page)
        pages.append([card.card_digest for card in page])
        before = page[-1].sequence
    assert pages == [["d4", "d3"], ["d2", "d1"], ["d0"]]


async def test_old_cards_are_evicted_beyond_the_bound(small_store: Store):
    for number in range(7):
        await small_store.commit(change_to("a", f"d{number}", expected=number))
    assert [card.card_digest for card in await small_store.cards("a", before=0, limit=9)] == ["d6", "d5", "d4"]
    assert await small_store.card("a", "d3") is None


async def test_the_bound_is_each_agents_own(small_store: Store):
    await small_store.commit(change_to("b", "only", expected=0))
    for number in range(5):
        await small_store.commit(change_to("a", f"d{number}", expected=await held_sequence(small_store, "a")))
    assert await small_store.card("b", "only") is not None


async def test_the_current_card_is_never_evicted(small_store: Store):
    """Its record may go on naming an older document while newer ones are kept for history."""
    await small_store.commit(change_to("a", "current", expected=0))
    for number in range(6):
        commit = change_to("a", f"d{number}", expected=await held_sequence(small_store, "a"))
        await small_store.commit(replace(commit, record=replace(commit.record, card_digest="current")))
    digests = [card.card_digest for card in await small_store.cards("a", before=0, limit=9)]
    assert digests == ["d5", "d4", "current"]


async def test_events_without_cards_evict_no_card(small_store: Store):
    await small_store.commit(change_to("a", "d1", expected=0))
    for number in range(1, 20):
        await small_store.commit(without_card(change_to("a", "d1", expected=number)))
    assert await small_store.card("a", "d1") is not None


async def test_cards_of_a_removed_agent_go_with_the_last_log_entry_that_names_it(small_store: Store):
    await small_store.commit(change_to("gone", "d1", expected=0))
    await small_store.commit(removal("gone", expected=1))
    for number in range(5):
        assert await small_store.card("gone", "d1") is not None
        await small_store.commit(change_to("b", f"d{number}", expected=await held_sequence(small_store, "b")))
    assert await small_store.card("gone", "d1") is not None  # its removal is the oldest entry
    await small_store.commit(change_to("b", "last", expected=await held_sequence(small_store, "b")))
    assert await small_store.card("gone", "d1") is None


async def test_an_agent_that_returned_keeps_the_cards_of_its_former_life(small_store: Store):
    await small_store.commit(change_to("a", "d1", expected=0))
    await small_store.commit(removal("a", expected=1))
    await small_store.commit(change_to("a", "d2", expected=0))
    for number in range(8):
        await small_store.commit(change_to("b", f"d{number}", expected=await held_sequence(small_store, "b")))
    assert await small_store.card("a", "d1") is not None
    assert await small_store.card("a", "d2") is not None


async def test_drift_events_are_numbered_in_order(store: Store):
    first = await store.add_drift(drift_of("a"))
    second = await store.add_drift(drift_of("b"))
    assert first == replace(drift_of("a"), number=1)
    assert second.number == 2
    assert await store.drift("", before=0, limit=9) == (second, first)


async def test_drift_events_are_paged_newest_first_of_one_agent_or_of_all(store: Store):
    for number in range(10):
        await store.add_drift(drift_of("a" if number % 2 else "b"))
    assert [record.number for record in await store.drift("", before=0, limit=3)] == [10, 9, 8]
    assert [record.number for record in await store.drift("", before=8, limit=3)] == [7, 6, 5]
    assert [record.number for record in await store.drift("a", before=0, limit=2)] == [10, 8]
    assert [record.number for record in await store.drift("a", before=8, limit=9)] == [6, 4, 2]
    assert await store.drift("c", before=0, limit=9) == ()


async def test_old_drift_events_are_evicted_and_their_numbers_not_used_again(small_store: Store):
    for _ in range(9):
        await small_store.add_drift(drift_of("a"))
    assert [record.number for record in await small_store.drift("", before=0, limit=9)] == [9, 8, 7, 6]
