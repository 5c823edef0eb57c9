import pytest

from cardkeeper.card.media_type import SHORTHANDS, matches, normalise_media_type, parse_media_type


@pytest.mark.parametrize(
    ("mode", "media_type"),
    [
        ("text/markdown", "text/markdown"),
        ("text/markdown", "TEXT/Markdown; charset=utf-8"),
        ("Text/Plain", "text/plain"),
        (" text/plain ", "text/plain"),
        ("*/*", "application/pdf"),
        ("*", "image/png"),
        ("image/*", "image/svg+xml"),
        ("IMAGE/*", "image/png"),
        ("text", "text/plain"),
        ("data", "application/json"),
        ("file", "application/pdf"),
        ("json", "application/json"),
        ("csv", "text/csv"),
        ("audio", "audio/mpeg"),
        ("application/json", "application/vnd.geo+json"),
        ("data", "application/geo+json"),
        ("application/xml", "image/svg+xml"),
        ("application/*+json", "application/geo+json"),
        ("application/json", "text/json"),
        ("image/jpeg", "image/jpg"),
        ("text/plain; charset=utf-8", "text/plain"),
        ("text/plain; charset=UTF-8", 'text/plain;charset="utf-8"'),
        ("text/plain;format=flowed", "text/plain; charset=utf-8; Format=flowed"),
        ("text/html;q=0.8", "text/html"),
        ("query", "Query"),
    ],
)
def test_a_mode_covers(mode: str, media_type: str) -> None:
    assert matches(mode, media_type)


@pytest.mark.parametrize(
    ("mode", "media_type"),
    [
        ("text/markdown", "text/plain"),
        ("text", "text/markdown"),
        ("image/png", "image/*"),
        ("image/*", "images/png"),
        ("image/*", "imagery"),
        ("application/geo+json", "application/json"),
        ("text/csv", "application/x+csv"),
        ("application/json", "application/jsonl"),
        ("text/plain;format=flowed", "text/plain"),
        ("text/plain; charset=utf-8", "text/plain; charset=latin-1"),
        ("text/plain; charset=latin-1", "text/plain"),
        ("query", "text/plain"),
        ("", "text/plain"),
        ("text/plain", ""),
    ],
)
def test_a_mode_does_not_cover(mode: str, media_type: str) -> None:
    assert not matches(mode, media_type)


def test_every_shorthand_stands_for_a_media_type_or_range() -> None:
    assert all(parse_media_type(text).is_valid for text in SHORTHANDS)


def test_normalising_drops_case_space_and_parameters() -> None:
    assert normalise_media_type(' Text/HTML ; charset="utf-8"') == "text/html"


def test_text_that_is_no_media_type_stays_itself() -> None:
    assert normalise_media_type("Query") == "query"
    assert not parse_media_type("query").is_valid


def test_long_text_is_read_in_bounded_time() -> None:
    assert matches("text/plain", "text/plain;" + "a" * 1_000_000 + "=" + '"\\' * 100_000)
    assert matches("text/plain", "text/plain;" + " ; " * 100_000)
