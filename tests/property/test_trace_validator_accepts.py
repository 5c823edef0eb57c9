"""The validator is silent about every trace that an ideal service makes."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from trace_ideal import Ideal
from trace_validator import judge


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32), steps=st.integers(0, 150))
def test_a_faultless_trace_has_no_violation(seed: int, steps: int) -> None:
    ideal = Ideal(random.Random(seed))  # noqa: S311 - no secret
    ideal.run(steps)
    assert judge(ideal.history, ideal.records) == []
