"""Rules of the near cache, one at a time; their combinations are tested against a model (tests/property)."""

import pytest

from cardkeeper_client.near_cache import NearCache
from cardkeeper_client.need import Need
from client_values import resolution

A, B = "agents/a", "agents/b"
NEED = Need("http://a.example", "s")


@pytest.fixture
def cache() -> NearCache:
    """In sync in epoch 1, and trusted until instant 12."""
    cache = NearCache()
    cache.synced("1")
    cache.trust_until(12.0)
    return cache


def ask(cache: NearCache, need: Need = NEED, sequence: int = 5, agent: str = A, until: float = 100.0) -> bool:
    return cache.keep(cache.ask(), need, resolution(agent, need.skill_id, "1", sequence), until)


def test_in_sync_an_answer_is_kept_under_the_words_of_its_question(cache: NearCache) -> None:
    assert ask(cache)
    assert cache.find(NEED, 1.0) == resolution(A, "s", "1", 5)
    assert cache.find(Need("agents/a", "s"), 1.0) is None
    assert cache.find(NEED._replace(output_modes=("text/plain",)), 1.0) is None


def test_an_invalidation_by_name_reaches_what_was_asked_for_by_url(cache: NearCache) -> None:
    ask(cache)
    cache.invalidate(A, 6)
    assert cache.find(NEED, 1.0) is None


def test_an_invalidation_leaves_other_agents_and_newer_answers_alone(cache: NearCache) -> None:
    ask(cache, sequence=6)
    cache.invalidate(A, 6)
    cache.invalidate(B, 9)
    assert cache.find(NEED, 1.0) is not None


def test_an_answer_that_an_invalidation_overtook_is_not_kept(cache: NearCache) -> None:
    ticket = cache.ask()
    cache.invalidate(A, 6)
    assert not cache.keep(ticket, NEED, resolution(A, "s", "1", 5), 100.0)
    assert cache.keep(ticket, NEED, resolution(A, "s", "1", 6), 100.0)


def test_an_answer_below_what_the_stream_told_before_the_question_is_not_kept(cache: NearCache) -> None:
    cache.invalidate(A, 6)
    assert not ask(cache, sequence=5)


def test_an_answer_that_was_asked_for_before_the_stream_was_in_sync_is_not_kept() -> None:
    cache = NearCache()
    ticket = cache.ask()
    cache.synced("1")  # the agent may have changed between the answer and the subscription: nobody tells of that
    assert not cache.keep(ticket, NEED, resolution(A, "s", "1", 5), 100.0)


@pytest.mark.parametrize("asked", ["before the stream broke", "while it was broken"])
def test_an_answer_that_was_not_asked_for_on_one_stream_in_sync_is_not_kept(cache: NearCache, asked: str) -> None:
    ticket = cache.ask()
    cache.lose()
    if asked == "while it was broken":
        ticket = cache.ask()
    cache.synced("1")
    assert not cache.keep(ticket, NEED, resolution(A, "s", "1", 5), 100.0)


def test_a_newer_answer_about_an_agent_outdates_its_other_answers(cache: NearCache) -> None:
    other = NEED._replace(skill_id="t")
    ask(cache, NEED, 5)
    ask(cache, other, 7)
    assert cache.find(NEED, 1.0) is None
    assert cache.find(other, 1.0) is not None
    assert not ask(cache, NEED, 6)


def test_nothing_is_answered_past_its_time_or_in_the_silence_of_the_stream(cache: NearCache) -> None:
    ask(cache, until=5.0)
    assert cache.find(NEED, 4.9) is not None
    assert cache.find(NEED, 5.0) is None
    ask(cache, until=100.0)
    assert cache.find(NEED, 11.9) is not None
    assert cache.find(NEED, 12.0) is None
    assert not cache.trusts(12.0)
    cache.trust_until(20.0)
    assert cache.find(NEED, 12.0) is not None


def test_what_the_service_cannot_vouch_for_is_not_kept(cache: NearCache) -> None:
    assert not cache.keep(cache.ask(), NEED, resolution(A, stale=True), 100.0)


def test_a_stream_that_resumes_without_a_gap_brings_back_what_is_still_true(cache: NearCache) -> None:
    other = Need("http://b.example", "s")
    ask(cache)
    ask(cache, other, agent=B)
    cache.lose()
    assert cache.find(NEED, 1.0) is None
    cache.invalidate(A, 8)
    cache.synced("1")
    assert cache.find(NEED, 1.0) is None
    assert cache.find(other, 1.0) is not None


@pytest.mark.parametrize("gap", ["resync", "epoch"])
def test_a_gap_or_another_epoch_leaves_nothing(cache: NearCache, gap: str) -> None:
    ask(cache)
    ticket = cache.ask()
    cache.lose()
    if gap == "resync":
        cache.resync()
    cache.synced("1" if gap == "resync" else "2")
    assert cache.find(NEED, 1.0) is None
    assert not cache.keep(ticket, NEED, resolution(A, "s", "1", 99), 100.0)


def test_revisions_of_another_epoch_do_not_compare(cache: NearCache) -> None:
    cache.invalidate(A, 90)
    cache.synced("2")
    assert cache.keep(cache.ask(), NEED, resolution(A, "s", "2", 3), 100.0)
    assert not ask(cache, sequence=99)  # of epoch 1


def test_an_agent_that_is_suspect_is_trusted_again_from_a_higher_revision_on(cache: NearCache) -> None:
    ask(cache, sequence=5)
    cache.distrust(A, 5)
    assert cache.find(NEED, 1.0) is None
    assert not ask(cache, sequence=5)
    assert ask(cache, sequence=6)


def test_who_doubts_an_agent_asks_again_and_believes_the_answer(cache: NearCache) -> None:
    ask(cache, sequence=5)
    under_way = cache.ask()
    cache.doubt(A, 5)
    assert cache.find(NEED, 1.0) is None
    assert not cache.keep(under_way, NEED, resolution(A, "s", "1", 5), 100.0)
    assert ask(cache, sequence=5)  # evidence that came to nothing takes no revision


def test_a_doubt_about_an_earlier_state_leaves_a_newer_answer_alone(cache: NearCache) -> None:
    ask(cache, sequence=8)
    cache.doubt(A, 5)
    assert cache.find(NEED, 1.0) is not None


def test_a_service_that_vouches_for_nothing_is_asked_for_everything(cache: NearCache) -> None:
    ask(cache)
    under_way = cache.ask()
    cache.distrust_all()
    assert cache.find(NEED, 1.0) is None
    assert not cache.keep(under_way, NEED, resolution(A, "s", "1", 5), 100.0)


def test_it_is_bounded_and_what_was_asked_for_longest_ago_goes_first() -> None:
    cache = NearCache(limit=2)
    cache.synced("1")
    cache.trust_until(12.0)
    first, second, third = (Need(f"http://{name}.example", "s") for name in "abc")
    for need in (first, second, first, third):
        ask(cache, need, agent=f"agents/{need.agent[7]}")
    assert set(cache.answers) == {first, third}


def test_forgetting_revisions_forgets_the_questions_that_they_would_judge() -> None:
    cache = NearCache(revisions=1)
    cache.synced("1")
    ticket = cache.ask()
    cache.invalidate(A, 6)
    cache.invalidate(B, 7)  # room for one: that A is at 6 is not known any more
    assert not cache.keep(ticket, NEED, resolution(A, "s", "1", 5), 100.0)


def test_a_gap_on_a_live_stream_ends_being_in_sync_until_the_next_claim(cache: NearCache) -> None:
    ask(cache)
    cache.resync()
    assert not cache.in_sync
    assert not ask(cache)
    cache.synced("1")
    assert ask(cache)


def test_an_agent_that_comes_back_under_another_name_leaves_no_trace_of_the_old_one(cache: NearCache) -> None:
    ask(cache, sequence=5, agent=A)
    ask(cache, sequence=9, agent=B)
    cache.invalidate(A, 20)
    assert cache.find(NEED, 1.0) == resolution(B, "s", "1", 9)
    cache.invalidate(B, 21)
    assert cache.find(NEED, 1.0) is None


def test_a_cache_for_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="near_cache=False"):
        NearCache(limit=0)
