"""Which cards are let go."""

import pytest

from cardkeeper.store.base import History
from cardkeeper.store.retention import surplus_cards


@pytest.mark.parametrize(
    ("kept", "current", "limit", "surplus"),
    [
        ([], "", 1, []),
        ([(1, "a"), (2, "b")], "b", 2, []),
        ([(1, "a"), (2, "b"), (3, "c")], "c", 2, [1]),
        ([(1, "a"), (2, "b"), (3, "c")], "a", 2, [2]),
        ([(1, "a"), (2, "b"), (3, "a")], "a", 1, [1, 2]),
        ([(1, "a"), (2, "b")], "", 1, [1]),
        ([(1, "a"), (2, "b")], "unknown", 1, [1]),
    ],
)
def test_the_oldest_go_and_the_current_stays(kept, current, limit, surplus):
    assert surplus_cards(kept, current, limit) == surplus


@pytest.mark.parametrize("bound", ["events", "cards_per_agent", "drift_records"])
def test_a_history_that_keeps_nothing_is_refused(bound: str):
    with pytest.raises(ValueError, match="at least 1"):
        History(**{bound: 0})
