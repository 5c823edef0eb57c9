"""HttpFetcher against real servers on loopback, most of them hostile: a card or a typed error, in time, and nothing leaks."""

import asyncio
import gzip
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import pytest
import trustme

from card_server import CARD, LEGACY_CARD, CardServer, Reply, card_server
from cardkeeper.errors import CardInvalid, CardUnavailable, EgressRefused
from cardkeeper.fetch.base import CardRequest, CardResponse
from cardkeeper.fetch.fetcher import HttpFetcher
from cardkeeper.fetch.ip_policy import EgressPolicy
from cardkeeper.fetch.limits import FetchLimits
from scripted_fetcher import card_document

LOCAL = EgressPolicy(allow_loopback=True)
QUICK = FetchLimits(connect_timeout=0.5, read_timeout=0.5)
GOOD = card_document("summarize")
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
async def served() -> AsyncIterator[CardServer]:
    async with card_server() as server:
        yield server


@pytest.fixture
async def fetcher() -> AsyncIterator[HttpFetcher]:
    fetcher = HttpFetcher(LOCAL, QUICK)
    yield fetcher
    await fetcher.close()


async def fetch(fetcher: HttpFetcher, url: str, timeout: float = 3.0, **fields: str) -> CardResponse:
    return await fetcher.fetch(CardRequest(agent_url=url, **fields), timeout=timeout)


@asynccontextmanager
async def raw_server(handle: Handler) -> AsyncIterator[str]:
    """A server that says whatever it likes."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await handle(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def test_a_card_is_found_at_each_place_in_order(fetcher: HttpFetcher, served: CardServer) -> None:
    agent = served.url + "/a"
    places = [f"/a{CARD}", f"/a{LEGACY_CARD}", CARD, LEGACY_CARD]
    for index in reversed(range(4)):
        served.serve(GOOD, places[index])
        served.counts.clear()
        response = await fetch(fetcher, agent)
        assert response.card_url == served.url + places[index]
        assert response.card is not None
        assert list(served.counts) == places[: index + 1]


async def test_what_is_sent_says_the_version_and_asks_caches_for_a_fresh_copy(
    fetcher: HttpFetcher, served: CardServer
) -> None:
    served.serve(GOOD, ETag='"1"', Last_Modified="Tue, 01 Dec 2026 12:00:00 GMT", Cache_Control="max-age=77")
    first = await fetch(fetcher, served.url)
    assert (first.etag, first.max_age) == ('"1"', 77.0)
    headers = served.seen[-1][1]
    assert (headers["a2a-version"], headers["accept"], headers["cache-control"]) == (
        "1.0",
        "application/json",
        "no-cache",
    )
    assert "if-none-match" not in headers
    held = {"card_url": first.card_url, "etag": first.etag, "last_modified": first.last_modified}
    served.replies[CARD] = Reply(b"", 304, {"etag": '"1"'})
    second = await fetch(fetcher, served.url, **held)
    assert second.card is None
    headers = served.seen[-1][1]
    assert (headers["if-none-match"], "cache-control" in headers) == ('"1"', False)


async def test_not_modified_without_being_asked_is_no_card(fetcher: HttpFetcher, served: CardServer) -> None:
    served.replies[CARD] = Reply(b"", 304)
    with pytest.raises(CardUnavailable):
        await fetch(fetcher, served.url)


@pytest.mark.parametrize("status", [401, 403, 404, 405, 406, 410])
async def test_an_answer_that_means_not_here_leads_to_the_next_place(
    fetcher: HttpFetcher, served: CardServer, status: int
) -> None:
    served.replies[CARD] = Reply(b"no", status)
    served.serve(GOOD, LEGACY_CARD)
    assert (await fetch(fetcher, served.url)).card_url.endswith(LEGACY_CARD)


async def test_a_page_for_any_path_is_not_the_card(fetcher: HttpFetcher, served: CardServer) -> None:
    served.replies[CARD] = Reply(b"<!doctype html><p>app", 200, {"content-type": "text/html"})
    served.serve(GOOD, LEGACY_CARD)
    assert (await fetch(fetcher, served.url)).card is not None


async def test_trouble_where_the_card_was_is_not_answered_by_what_stands_elsewhere(
    fetcher: HttpFetcher, served: CardServer
) -> None:
    served.serve(GOOD, LEGACY_CARD)
    held = served.url + CARD
    for reply, error in ((Reply(b"", 503, {"retry-after": "7"}), CardUnavailable), (Reply(b"[]"), CardInvalid)):
        served.replies[CARD] = reply
        with pytest.raises(error) as caught:
            await fetch(fetcher, served.url, card_url=held)
        if reply.status == 503:
            assert caught.value.retry_after == 7.0
    del served.replies[CARD]  # moved
    assert (await fetch(fetcher, served.url, card_url=held)).card_url.endswith(LEGACY_CARD)


async def test_redirects_are_followed_and_only_permanent_ones_remembered(
    fetcher: HttpFetcher, served: CardServer
) -> None:
    served.serve(GOOD, "/moved.json")
    for status, remembered in ((301, "/moved.json"), (308, "/moved.json"), (302, CARD), (307, CARD)):
        served.replies[CARD] = Reply(b"", status, {"location": "/moved.json"})
        assert (await fetch(fetcher, served.url)).card_url == served.url + remembered


async def test_a_redirect_loop_ends(fetcher: HttpFetcher, served: CardServer) -> None:
    served.replies[CARD] = Reply(b"", 302, {"location": CARD})
    with pytest.raises(CardUnavailable):
        await fetch(fetcher, served.url)
    assert served.counts[CARD] == 4


@pytest.mark.parametrize(
    "location", ["http://169.254.169.254/", "http://[::ffff:127.0.0.1]/", "http://10.0.0.1/x", "file:///etc/passwd"]
)
async def test_a_redirect_to_a_forbidden_place_is_refused_without_a_connection(
    fetcher: HttpFetcher, served: CardServer, location: str
) -> None:
    served.replies[CARD] = Reply(b"", 302, {"location": location})
    with pytest.raises((EgressRefused, CardUnavailable)):
        await fetch(fetcher, served.url)


async def test_validators_stay_with_their_origin(fetcher: HttpFetcher, served: CardServer) -> None:
    async with card_server() as other:
        other.serve(GOOD, "/card.json")
        served.replies[CARD] = Reply(b"", 302, {"location": other.url + "/card.json"})
        await fetch(fetcher, served.url, card_url=served.url + CARD, etag='"secret"')
        assert served.seen[0][1]["if-none-match"] == '"secret"'
        assert "if-none-match" not in other.seen[0][1]


async def test_any_content_type_and_coding_that_parses_is_a_card(fetcher: HttpFetcher, served: CardServer) -> None:
    body = gzip.compress(b"\xef\xbb\xbf" + json.dumps(GOOD).encode())
    served.replies[CARD] = Reply(body, 200, {"content-type": "text/html", "content-encoding": "gzip"})
    assert (await fetch(fetcher, served.url)).card is not None


async def test_cookies_are_neither_kept_nor_sent(fetcher: HttpFetcher, served: CardServer) -> None:
    served.serve(GOOD, Set_Cookie="a=b")
    await fetch(fetcher, served.url)
    await fetch(fetcher, served.url)
    assert "cookie" not in served.seen[-1][1]


async def slow_headers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    for _ in range(100):
        writer.write(b"HTTP/1.1 200 OK\r\n"[:1])
        await writer.drain()
        await asyncio.sleep(0.2)


async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(30)


async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        writer.write(b" " * 65536)
        await writer.drain()


async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
    for _ in range(100):
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.2)


async def bomb(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n" + gzip.compress(b" " * 50_000_000))
    await writer.drain()


async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{")
    await writer.drain()


async def garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH\r\n\r\n\0\0\0")
    await writer.drain()


async def bad_chunks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n")
    await writer.drain()


async def huge_headers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\n" + b"x-a: " + b"y" * 1_000_000 + b"\r\n\r\n{}")
    await writer.drain()


async def nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    return


@pytest.mark.parametrize(
    "hostile", [slow_headers, silence, endless, drip, bomb, cut, garbage, bad_chunks, huge_headers, nothing]
)
async def test_a_hostile_server_costs_a_typed_error_in_time_and_leaks_nothing(
    fetcher: HttpFetcher, hostile: Handler
) -> None:
    loop = asyncio.get_running_loop()
    before = len(asyncio.all_tasks())
    async with raw_server(hostile) as url:
        started = loop.time()
        with pytest.raises((CardUnavailable, CardInvalid)) as caught:
            await fetch(fetcher, url, timeout=2.0)
        assert loop.time() - started < 4.0  # the deadline, and room for a busy machine
        assert caught.value.metadata or isinstance(caught.value, CardInvalid)
    async with asyncio.timeout(5):
        while len(asyncio.all_tasks()) > before + 1:
            await asyncio.sleep(0.05)


async def test_a_cancelled_fetch_gives_its_place_back(fetcher: HttpFetcher, served: CardServer) -> None:
    async with raw_server(silence) as url:
        for _ in range(10):
            task = asyncio.create_task(fetch(fetcher, url))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
    served.serve(GOOD)
    assert (await fetch(fetcher, served.url)).card is not None


async def test_a_stalled_host_holds_nobody_else_up(fetcher: HttpFetcher, served: CardServer) -> None:
    served.serve(GOOD)
    async with raw_server(silence) as url:
        stuck = [asyncio.create_task(fetch(fetcher, url, timeout=2.0)) for _ in range(20)]
        await asyncio.sleep(0.1)
        assert (await fetch(fetcher, served.url, timeout=1.5)).card is not None
        await asyncio.gather(*stuck, return_exceptions=True)


# Names


class ScriptedResolver:
    """Answers by script, and counts."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if not answer:
            raise OSError("unknown")
        return answer

    def close(self) -> None:
        return


async def with_names(policy: EgressPolicy, resolver: ScriptedResolver, url: str) -> CardResponse:
    fetcher = HttpFetcher(policy, QUICK, resolver=resolver)
    try:
        return await fetch(fetcher, url)
    finally:
        await fetcher.close()


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["93.184.216.34", "::ffff:10.0.0.1"], ["0.0.0.0"]],  # noqa: S104
)
async def test_a_name_with_any_forbidden_address_is_refused(addresses: list[str], served: CardServer) -> None:
    port = served.url.rpartition(":")[2]
    with pytest.raises(EgressRefused) as caught:
        await with_names(EgressPolicy(), ScriptedResolver(addresses), f"http://agent.test:{port}")
    assert not served.counts
    assert not any(address in caught.value.message for address in addresses)


async def test_a_name_that_answers_otherwise_the_second_time_is_judged_again(served: CardServer) -> None:
    port = served.url.rpartition(":")[2]
    resolver = ScriptedResolver(["127.0.0.1"], ["10.0.0.1"])
    fetcher = HttpFetcher(LOCAL, QUICK, resolver=resolver)
    served.replies[CARD] = Reply(json.dumps(GOOD).encode(), 200, {"connection": "close"})
    await fetch(fetcher, f"http://agent.test:{port}")
    assert resolver.asked == 1
    # The source asked to close the connection after each answer: the next request looks the name up anew.
    with pytest.raises(EgressRefused):
        await fetch(fetcher, f"http://agent.test:{port}")
    assert resolver.asked == 2
    await fetcher.close()


async def test_an_unknown_name_and_a_closed_port_are_unreachable() -> None:
    with pytest.raises(CardUnavailable) as caught:
        await with_names(LOCAL, ScriptedResolver([]), "http://agent.test")
    assert caught.value.metadata["cause"] == "connection"
    with pytest.raises(CardUnavailable):
        await with_names(LOCAL, ScriptedResolver(["127.0.0.1"]), "http://agent.test:1")


async def test_tls_is_checked_against_the_name_although_the_connection_goes_to_the_address() -> None:
    authority = trustme.CA()
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("agent.test").configure_cert(serving)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    names: list[str | None] = []
    serving.sni_callback = lambda connection, name, context: names.append(name)
    served = CardServer()
    served.serve(GOOD)
    server = await asyncio.start_server(served.answer, "127.0.0.1", 0, ssl=serving)
    port = server.sockets[0].getsockname()[1]
    async with server:
        fetcher = HttpFetcher(LOCAL, QUICK, resolver=ScriptedResolver(["127.0.0.1"]), tls=trusting)
        assert (await fetch(fetcher, f"https://agent.test:{port}")).card is not None
        assert names == ["agent.test"]
        with pytest.raises(CardUnavailable):
            await fetch(fetcher, f"https://other.test:{port}")
        await fetcher.close()
        untrusting = HttpFetcher(LOCAL, QUICK, resolver=ScriptedResolver(["127.0.0.1"]))
        with pytest.raises(CardUnavailable):
            await fetch(untrusting, f"https://agent.test:{port}")
        await untrusting.close()
