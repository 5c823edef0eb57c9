"""Lifetimes that sources state, and bodies that nobody can be trusted about."""

import gzip
import tracemalloc
import zlib
from collections.abc import AsyncIterator

import pytest

from cardkeeper.errors import CardInvalid, CardUnavailable, EgressRefused
from cardkeeper.fetch.body import read_body
from cardkeeper.fetch.freshness import stated_lifetime
from cardkeeper.fetch.redirect import redirect_target
from cardkeeper.fetch.url import parse_url

DATE = "Tue, 01 Dec 2026 12:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"cache-control": "max-age=60"}, 60.0),
        ({"cache-control": "public, MAX-AGE=60"}, 60.0),
        ({"cache-control": 'max-age="60"'}, 60.0),
        ({"cache-control": "max-age=60, s-maxage=10"}, 10.0),
        ({"cache-control": "max-age=60, max-age=30"}, 30.0),
        ({"cache-control": "max-age=60", "age": "50"}, 10.0),
        ({"cache-control": "max-age=60", "age": "70"}, 0.0),
        ({"cache-control": "no-store, max-age=60"}, 0.0),
        ({"cache-control": "no-cache"}, 0.0),
        ({"cache-control": "max-age=x"}, None),
        ({"cache-control": "max-age=-5"}, None),
        ({"cache-control": "max-age=" + "9" * 40}, 2.0**31),
        ({"expires": "Tue, 01 Dec 2026 12:01:00 GMT", "date": DATE}, 60.0),
        ({"expires": "0", "date": DATE}, 0.0),
        ({"expires": "Tue, 01 Dec 2026 11:00:00 GMT", "date": DATE}, 0.0),
        ({"expires": "Tue, 01 Dec 2026 12:01:00 GMT"}, None),
    ],
)
def test_a_stated_lifetime_is_read_as_rfc_9111_says(headers: dict[str, str], seconds: float | None) -> None:
    assert stated_lifetime(headers) == seconds


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("", b"{}"),
        ("identity", b"{}"),
        ("gzip", gzip.compress(b"{}")),
        ("x-gzip", gzip.compress(b"{}")),
        ("GZIP", gzip.compress(b"{}")),
        ("deflate", zlib.compress(b"{}")),
        ("deflate", zlib.compress(b"{}")[2:-4]),
    ],
)
async def test_a_coded_body_is_read(coding: str, body: bytes) -> None:
    halves = chunks(body[:3], b"", body[3:])
    assert await read_body(halves, {"content-encoding": coding}, limit=100) == b"{}"


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"content-length": "101"}, b""),
        ({"content-length": "9" * 30}, b""),
        ({}, b"x" * 101),
        ({"content-encoding": "gzip"}, gzip.compress(b"x" * 101)),
        ({"content-encoding": "br"}, b"x"),
        ({"content-encoding": "gzip, gzip"}, b"x"),
        ({"content-encoding": "gzip"}, b"no gzip"),
        ({"content-encoding": "gzip"}, gzip.compress(b"{}")[:-3]),
        ({"content-encoding": "gzip"}, gzip.compress(b"{}") + b"more"),
        ({"content-encoding": "deflate"}, b""),
    ],
)
async def test_a_body_that_is_too_large_or_broken_is_refused(headers: dict[str, str], body: bytes) -> None:
    with pytest.raises(CardInvalid):
        await read_body(chunks(body), headers, limit=100)


async def test_a_bomb_costs_no_more_memory_than_the_limit() -> None:
    bomb = gzip.compress(b"\0" * 200_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(CardInvalid):
            await read_body(chunks(bomb), {"content-encoding": "gzip"}, limit=1 << 20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize(
    ("source", "location", "target"),
    [
        ("https://a.example/x/y", "z", "https://a.example/x/z"),
        ("https://a.example/x", "/z", "https://a.example/z"),
        ("https://a.example/x", "//b.example/z", "https://b.example/z"),
        ("http://a.example/x", "https://a.example/x", "https://a.example/x"),
    ],
)
def test_a_redirect_is_resolved_against_where_it_came_from(source: str, location: str, target: str) -> None:
    assert str(redirect_target(parse_url(source), location)) == target


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://a.example", "https://u:p@a.example", "http://["])
def test_a_redirect_to_what_is_no_web_address_is_refused(location: str) -> None:
    with pytest.raises(CardUnavailable):
        redirect_target(parse_url("https://a.example"), location)


def test_a_redirect_never_gives_up_tls() -> None:
    with pytest.raises(EgressRefused):
        redirect_target(parse_url("https://a.example"), "http://a.example/")
