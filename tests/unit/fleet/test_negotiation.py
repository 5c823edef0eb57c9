"""Whether a card serves a need, and what the refusal says."""

import json

import pytest

from cardkeeper.card.model import Card
from cardkeeper.card.parse import parse_card
from cardkeeper.errors import NotOffered, SkillNotAdvertised
from cardkeeper.fleet.negotiation import Need, negotiate
from scripted_fetcher import card_document


def card(*skills: object, **fields: object) -> Card:
    return parse_card(json.dumps(card_document(*skills, **fields)).encode())  # type: ignore[arg-type]


SUMMARIZE = {"id": "summarize", "name": "s", "inputModes": ["text/plain"], "outputModes": ["text/markdown"]}


def test_the_effective_modes_are_negotiated() -> None:
    offer = negotiate(card("summarize"), Need(skill_id="summarize", input_modes=("text/plain",)), "agents/a")
    assert offer.skill.output_modes == ("text/markdown",)
    assert offer.interface.url == "https://peer.example.com/a2a"


def test_an_unknown_skill_is_refused_with_near_matches_and_what_is_advertised() -> None:
    with pytest.raises(SkillNotAdvertised) as refusal:
        negotiate(card("summarize-v2", "translate"), Need(skill_id="summarize-v1"), "agents/a")
    assert refusal.value.near[0] == "summarize-v2"
    assert refusal.value.advertised == ("summarize-v2", "translate")
    assert refusal.value.metadata == {"agent": "agents/a", "skill_id": "summarize-v1"}


@pytest.mark.parametrize(
    ("need", "direction"),
    [
        (Need(skill_id="summarize", input_modes=("text/plain", "image/png")), "input"),
        (Need(skill_id="summarize", output_modes=("text/plain",)), "output"),
    ],
)
def test_a_mode_that_is_not_offered_is_refused_with_those_that_are(need: Need, direction: str) -> None:
    with pytest.raises(NotOffered) as refusal:
        negotiate(card(SUMMARIZE), need, "agents/a")
    assert refusal.value.reason == "MODE_NOT_OFFERED"
    assert refusal.value.metadata["direction"] == direction
    assert refusal.value.offered == tuple(SUMMARIZE[f"{direction}Modes"])


def test_one_acceptable_output_is_enough_but_every_input_is_needed() -> None:
    need = Need(skill_id="summarize", output_modes=("text/html", "text/*"))
    assert negotiate(card(SUMMARIZE), need, "a").skill.id == "summarize"


def test_a_skill_that_promises_no_modes_refuses_none() -> None:
    silent = card({"id": "s", "name": "s"}, defaultInputModes=[], defaultOutputModes=[])
    assert negotiate(silent, Need(skill_id="s", input_modes=("a/b",), output_modes=("c/d",)), "a").skill.id == "s"


def test_a_capability_that_is_absent_is_refused() -> None:
    with pytest.raises(NotOffered) as refusal:
        negotiate(card(SUMMARIZE), Need(skill_id="summarize", push_notifications=True), "a")
    assert refusal.value.reason == "CAPABILITY_ABSENT"
    assert refusal.value.metadata["capability"] == "push_notifications"


def test_of_two_skills_with_one_id_the_one_that_serves_is_taken() -> None:
    other = {**SUMMARIZE, "outputModes": ["application/json"]}
    need = Need(skill_id="summarize", output_modes=("application/json",))
    assert negotiate(card(SUMMARIZE, other), need, "a").skill.output_modes == ("application/json",)
