"""Modes that are looked up answer as modes that are searched do, and large cards cost no more than their size."""

from hypothesis import given
from hypothesis import strategies as st

from cardkeeper.card.compare import compare
from cardkeeper.card.media_type import Modes, matches
from cardkeeper.card.parse import normalise
from cardkeeper.clock import ManualClock
from cardkeeper.drift.artifact import judge_artifact, read_artifact
from cardkeeper.fleet.agent_state import agent_state
from cardkeeper.fleet.search import Question, find_skills
from cardkeeper.store.base import AgentRecord

TYPES = st.builds(
    lambda top, sub, parameters: (f"{top}/{sub}" if sub else top) + parameters,
    st.sampled_from(["text", "image", "application", "*", "x"]),
    st.sampled_from(["plain", "*", "json", "geo+json", "a+b+json", "*+json", "xml", "", "markdown"]),
    st.sampled_from(["", "; charset=utf-8", ";v=1", ";v=2"]),
) | st.sampled_from(["text", "json", "file", "nonsense", "*", ""])

MANY = 20_000


@given(st.lists(TYPES, max_size=4), TYPES)
def test_a_list_of_modes_covers_what_one_of_its_modes_matches(modes: list[str], media_type: str) -> None:
    assert Modes(modes).cover(media_type) == any(matches(mode, media_type) for mode in modes)


def card(skills: list[dict[str, object]]) -> object:
    return normalise({"name": "n", "version": "1", "url": "https://a.example", "skills": skills})


def test_thousands_of_modes_are_compared_and_judged_without_comparing_each_with_each() -> None:
    # 4 * 10^8 comparisons would not end within the time that a test has.
    old = card([{"id": "s", "tags": [], "outputModes": [f"a/b{number}" for number in range(MANY)]}])
    new = card([{"id": "s", "tags": [], "outputModes": [f"a/c{number}" for number in range(MANY)]}])
    assert len(compare(old, new).changes) == 2  # type: ignore[arg-type]
    parts = read_artifact(b'{"parts": [' + b",".join([b'{"text": "x", "mediaType": "a/x"}'] * 9000) + b"]}")
    assert judge_artifact(old, "s", parts).rejected  # type: ignore[arg-type]


def test_thousands_of_skills_are_compared_and_searched_without_looking_each_up_among_all() -> None:
    old = card([{"id": f"a{number}", "tags": []} for number in range(MANY)])
    new = card([{"id": f"b{number}", "tags": []} for number in range(MANY)])
    assert len(compare(old, new).changes) == 2 * MANY  # type: ignore[arg-type]
    record = AgentRecord(id="agent", agent_url="https://a.example")
    state = agent_state(record, new, ManualClock(), hard_lifetime=1.0)  # type: ignore[arg-type]
    assert find_skills([state], Question(text="b77"))[0].skill.id == "b77"
