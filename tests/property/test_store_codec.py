"""The codec loses nothing, takes nothing odd for a record, and reads other releases' text."""

import json
from dataclasses import fields, is_dataclass, replace
from typing import get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardkeeper.store.base import AgentRecord, DriftRecord, Event, StoredCard
from cardkeeper.store.codec import FORMAT, Undecodable, decode, encode
from store_records import change_to, drift_of

TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=20)
"""Any code point, lone surrogates and NUL included."""
NUMBER = st.floats(allow_nan=False)
PLAIN = {str: TEXT, float: NUMBER, int: st.integers(), bool: st.booleans(), bytes: st.binary(max_size=40)}


def values(hint) -> st.SearchStrategy:
    """Values of an annotation, independent of how the codec reads it."""
    if is_dataclass(hint):
        return st.builds(hint, **{name: values(inner) for name, inner in get_type_hints(hint).items()})
    if get_origin(hint) is tuple:
        return st.lists(values(get_args(hint)[0]), max_size=3).map(tuple)
    if get_args(hint):
        return st.none() | values(get_args(hint)[0])
    return PLAIN[hint] if hint in PLAIN else st.sampled_from(hint)


KINDS = [AgentRecord, Event, DriftRecord, StoredCard]
RECORDS = st.one_of([values(kind) for kind in KINDS])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | NUMBER | TEXT, lambda inner: st.lists(inner, max_size=3)
)


@given(RECORDS)
def test_every_record_comes_back_as_it_was(record):
    assert decode(type(record), encode(record)) == record


@given(RECORDS)
def test_the_text_is_one_line_of_ascii_json(record):
    text = encode(record)
    assert text.isascii()
    assert text.isprintable()
    assert json.loads(text)["v"] == FORMAT


@given(RECORDS, JSON)
def test_a_field_of_another_release_is_ignored(record, value):
    document = json.loads(encode(record)) | {"field_of_tomorrow": value}
    assert decode(type(record), json.dumps(document)) == record


def test_a_field_that_an_older_release_did_not_have_takes_its_default():
    record = change_to("a", "d", expected=0).record
    document = json.loads(encode(replace(record, fetched_at=5.0)))
    del document["fetched_at"]
    assert decode(AgentRecord, json.dumps(document)) == record


@given(st.data())
def test_a_record_with_any_field_replaced_is_read_or_refused_never_mistyped(data):
    kind = data.draw(st.sampled_from(KINDS))
    document = json.loads(encode(data.draw(values(kind))))
    name = data.draw(st.sampled_from(sorted(document)))
    document[name] = data.draw(JSON)
    try:
        record = decode(kind, json.dumps(document))
    except Undecodable:
        return
    assert decode(kind, encode(record)) == record  # what was let through is of the right types


@given(TEXT, st.sampled_from(KINDS))
def test_text_that_is_no_record_is_refused(text, kind):
    with pytest.raises(Undecodable):
        decode(kind, text)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"v": true}', '{"v": "1"}', '{"v": 1}', "[" * 100_000, '{"v":1,"id":NaN}']
)
def test_json_that_is_no_record_is_refused(kind, text):
    with pytest.raises(Undecodable, match=kind.__name__):
        decode(kind, text)


def test_a_newer_format_is_refused_and_says_what_to_run():
    document = json.loads(encode(drift_of("a"))) | {"v": FORMAT + 1}
    with pytest.raises(Undecodable, match="newer release"):
        decode(DriftRecord, json.dumps(document))


def test_no_field_is_called_as_the_format_is():
    assert all(field.name != "v" for kind in KINDS for field in fields(kind))
