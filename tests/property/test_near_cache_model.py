"""The near cache against a model (near_cache_world): whatever the order of calls, answers and frames, it never answers with
what the stream, or an answer, has already shown to be outdated, and answers nothing while the stream is not in sync.
"""

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from near_cache_world import STEPS, Step, World

START: tuple[Step, ...] = (("return", 0, 1),)
LIMITS, REVISIONS = (1, 2, 100), (1, 2, 100, 100)
HISTORIES = st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 2), st.integers(0, 7)), min_size=25, max_size=80)


@given(
    history=HISTORIES,
    limit=st.sampled_from(LIMITS),
    revisions=st.sampled_from(REVISIONS),
    replicas_lag=st.booleans(),
    in_sync=st.booleans(),
)
@settings(max_examples=600, deadline=None)
def test_no_history_makes_it_answer_with_what_was_shown_to_be_outdated(
    history: list[Step], limit: int, revisions: int, replicas_lag: bool, in_sync: bool
) -> None:
    world = World(limit=limit, revisions=revisions, replicas_lag=replicas_lag)
    world.take([*START, *history] if in_sync else history)


def test_such_histories_put_it_to_everything_that_matters() -> None:
    chance = random.Random(1)  # noqa: S311 - no secret
    happened: Counter[str] = Counter()
    for number in range(300):
        world = World(limit=chance.choice(LIMITS), revisions=chance.choice(REVISIONS), replicas_lag=number % 2 == 0)
        world.take([(chance.choice(STEPS), chance.randrange(3), chance.randrange(8)) for _ in range(80)])
        happened += world.happened
    for event in ("kept", "overtaken", "refused", "invalidated", "invalidated while parked", "resumed", "brought back"):
        assert happened[event] >= 20, happened
