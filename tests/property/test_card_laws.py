"""Laws of cards: what a fingerprint depends on, what a comparison satisfies, and that no input whatever breaks anything."""

import copy
import hashlib
import json
import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cardkeeper.card.change import ChangeKind
from cardkeeper.card.compare import compare
from cardkeeper.card.fingerprint import fingerprint_document, skill_fingerprint
from cardkeeper.card.model import Card
from cardkeeper.card.parse import normalise, parse_card
from cardkeeper.card.read import read_document
from cardkeeper.errors import CardInvalid

MODES = st.lists(
    st.sampled_from(
        ["text/plain", "text", "text/markdown", "image/*", "image/png", "application/json", "*/*", "Ä/ö", "x"]
    ),
    max_size=3,
)
SKILLS = st.fixed_dictionaries(
    {"id": st.sampled_from(["a", "b", "c", "ü", "😀", "a!", ""]), "tags": st.just(["t"])},
    optional={
        "name": st.text(max_size=5),
        "description": st.text(max_size=5),
        "inputModes": MODES,
        "outputModes": MODES,
        "output_modes": MODES,
    },
)
CARDS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "name": st.just("n"),
        "url": st.sampled_from(["https://a.example", "https://b.example"]),
        "skills": st.lists(SKILLS, max_size=4),
    },
    optional={
        "version": st.sampled_from(["1", "2", ""]),
        "defaultInputModes": MODES,
        "defaultOutputModes": MODES,
        "capabilities": st.fixed_dictionaries(
            {},
            optional={
                "streaming": st.booleans() | st.sampled_from(["true", 1, None]),
                "pushNotifications": st.booleans(),
                "extensions": st.lists(
                    st.fixed_dictionaries({"uri": st.sampled_from(["e:1", "e:2"]), "required": st.booleans()}),
                    max_size=2,
                ),
            },
        ),
        "securitySchemes": st.sampled_from([{}, {"a": {"type": "http"}}]),
        "signatures": st.sampled_from([[], [{"signature": "x"}]]),
        "provider": st.sampled_from([{"organization": "o"}, None]),
    },
)
KEYS = st.sampled_from(
    ["skills", "id", "capabilities", "url", "name", "version", "streaming", "supportedInterfaces", "inputModes"]
) | st.sampled_from(
    ["defaultOutputModes", "extensions", "uri", "signatures", "security", "tags", "params", "authentication"]
)
LEAVES = st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.floats(allow_nan=False, allow_infinity=False)
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES | st.text(max_size=8) | st.sampled_from(["http://[", "localhost:1", "https://a.example", "1.0", "\ud800"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=4), inner, max_size=6),
    max_leaves=25,
)
MIRRORED = {
    ChangeKind.SKILL_REMOVED: ChangeKind.SKILL_ADDED,
    ChangeKind.SKILL_ADDED: ChangeKind.SKILL_REMOVED,
    ChangeKind.SKILL_NARROWED: ChangeKind.SKILL_WIDENED,
    ChangeKind.SKILL_WIDENED: ChangeKind.SKILL_NARROWED,
    ChangeKind.CAPABILITY_LOST: ChangeKind.CAPABILITY_GAINED,
    ChangeKind.CAPABILITY_GAINED: ChangeKind.CAPABILITY_LOST,
}


def reference(document: dict[str, Any]) -> str:
    """The surface by the letter of design section 4, with a JSON encoder."""

    def modes(holder: dict[str, Any], camel: str, snake: str) -> list[str]:
        value = holder.get(camel) if holder.get(camel) is not None else holder.get(snake)
        return sorted(value) if isinstance(value, list) else []

    defaults = modes(document, "defaultInputModes", "_"), modes(document, "defaultOutputModes", "_")
    skills = sorted(
        (
            {
                "id": skill["id"],
                "inputModes": modes(skill, "inputModes", "input_modes") or defaults[0],
                "outputModes": modes(skill, "outputModes", "output_modes") or defaults[1],
            }
            for skill in document["skills"]
        ),
        key=lambda skill: (skill["id"], skill["inputModes"], skill["outputModes"]),
    )
    flags = document.get("capabilities") or {}
    surface = {
        "skills": skills,
        "streaming": flags.get("streaming") is True,
        "pushNotifications": flags.get("pushNotifications") is True,
    }
    return hashlib.sha256(json.dumps(surface, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@given(CARDS)
def test_the_fingerprint_is_that_of_the_definition_however_it_is_computed(document: dict[str, Any]) -> None:
    assert fingerprint_document(document) == reference(document)
    assert skill_fingerprint(normalise(document)) == reference(document)


@given(CARDS, st.randoms(use_true_random=False))
def test_order_wording_version_and_what_is_unknown_are_no_part_of_it(
    document: dict[str, Any], chance: random.Random
) -> None:
    other = copy.deepcopy(document)
    chance.shuffle(other["skills"])
    for skill in other["skills"]:
        skill["description"], skill["x-foreign"] = "reworded", 1
        for key in ("inputModes", "outputModes", "output_modes"):
            chance.shuffle(skill.get(key, []))
    other |= {"version": "another", "description": "reworded", "x-foreign": {"skills": []}}
    items = list(other.items())
    chance.shuffle(items)
    assert fingerprint_document(dict(items)) == fingerprint_document(document)


@given(CARDS, CARDS)
def test_it_moves_with_every_change_of_the_surface_and_with_nothing_else(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    assert (fingerprint_document(old) == fingerprint_document(new)) == (reference(old) == reference(new))


@given(CARDS)
def test_a_card_does_not_differ_from_itself(document: dict[str, Any]) -> None:
    card = normalise(document)
    same = compare(card, normalise(copy.deepcopy(document)))
    assert same.changes == ()
    assert (same.surface_changed, same.version_changed, same.silent) == (False, False, False)


@given(CARDS, CARDS)
def test_comparing_the_other_way_round_mirrors(old: dict[str, Any], new: dict[str, Any]) -> None:
    there, back = compare(normalise(old), normalise(new)), compare(normalise(new), normalise(old))
    mirrored = {
        (MIRRORED.get(item.kind, item.kind), item.skill_id, item.pointer, item.after, item.before)
        for item in there.changes
    }
    assert mirrored == {(item.kind, item.skill_id, item.pointer, item.before, item.after) for item in back.changes}
    assert (there.surface_changed, there.version_changed) == (back.surface_changed, back.version_changed)


@given(CARDS, CARDS)
def test_what_differs_is_classed_and_a_changed_surface_never_without_its_place(
    old: dict[str, Any], new: dict[str, Any]
) -> None:
    before, after = normalise(old), normalise(new)
    found = compare(before, after)
    assert bool(found.changes) == (before.card_digest != after.card_digest)
    if found.surface_changed:
        assert any(item.skill_id or item.pointer.startswith(("/capabilities", "/skills")) for item in found.changes)
    assert found.silent == (found.surface_changed and before.version == after.version)
    severities = [item.severity for item in found.changes]
    assert severities == sorted(severities, reverse=True)


@given(VALUES)
@settings(max_examples=300, deadline=None)
def test_any_json_value_is_a_card_or_refused_with_reasons(value: Any) -> None:
    body = json.dumps(value).encode()
    card = _checked(body)
    if card is not None:
        document, findings = read_document(body)
        assert normalise(document, "https://a.example/x", findings) == card  # the same, however often
        assert fingerprint_document(document) == card.skill_fingerprint == skill_fingerprint(card)


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_a_card_or_refused_with_reasons(body: bytes) -> None:
    _checked(body)


def _checked(body: bytes) -> Card | None:
    try:
        card = parse_card(body, "https://a.example/x")
    except CardInvalid as error:
        error.message.encode()
        if not error.findings:
            raise AssertionError("refused without a reason") from error
        return None
    for finding in card.findings:
        finding.message.encode()  # goes on the wire
        finding.pointer.encode()
    return card
