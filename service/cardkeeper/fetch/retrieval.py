"""One document at one URL: redirects, validators, and the body within its bounds."""

import asyncio
from dataclasses import dataclass
from weakref import WeakValueDictionary

import httpx

from cardkeeper import __version__
from cardkeeper.errors import CardUnavailable
from cardkeeper.fetch.body import read_body
from cardkeeper.fetch.client import NETWORK_ERRORS, Client
from cardkeeper.fetch.freshness import stated_lifetime
from cardkeeper.fetch.ip_policy import EgressPolicy
from cardkeeper.fetch.limits import FetchLimits
from cardkeeper.fetch.redirect import PERMANENT, REDIRECTS, redirect_target
from cardkeeper.fetch.url import Url, parse_url

HEADERS = {
    "accept": "application/json",
    # Some servers answer by it; always the same, so that answers compare (a2a-facts 8.2).
    "a2a-version": "1.0",
    "user-agent": f"cardkeeper/{__version__}",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    """What a copy that is held can be revalidated with (RFC 9110 section 8.8)."""

    etag: str = ""
    last_modified: str = ""

    def __bool__(self) -> bool:
        """Whether there is one."""
        return bool(self.etag or self.last_modified)

    def headers(self) -> dict[str, str]:
        """The conditions of a request; without any, one that caches on the way must not answer from memory."""
        if not self:
            return {"cache-control": "no-cache"}
        conditions = {"if-none-match": self.etag, "if-modified-since": self.last_modified}
        return {name: value for name, value in conditions.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """An answer of 200, or of 304 where that was asked for."""

    url: str
    """What to remember: where it is, past permanent redirects."""
    modified: bool
    body: bytes = b""
    validators: Validators
    max_age: float | None


class Retrieval:
    """Gets documents, a few at a time from one host."""

    def __init__(self, client: Client, policy: EgressPolicy, limits: FetchLimits) -> None:
        self._client = client
        self._policy = policy
        self._limits = limits
        self._total = asyncio.Semaphore(limits.total)
        self._hosts: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def get(self, text: str, validators: Validators) -> Document:
        """Return the document. Raises CardUnavailable, CardInvalid (too large, bad coding), EgressRefused."""
        url = remembered = parse_url(text)
        for _ in range(self._limits.redirects + 1):
            # Validators belong to the origin that gave them.
            conditions = validators if url.origin == remembered.origin else Validators()
            found = await self._get(url, conditions, str(remembered))
            if isinstance(found, Document):
                return found
            status, location = found
            target = redirect_target(url, location)
            if status in PERMANENT and url == remembered:
                remembered = target
            url = target
        raise CardUnavailable(
            f"{text} redirects more than {self._limits.redirects} times", metadata={"cause": "redirect"}
        )

    async def _get(self, url: Url, validators: Validators, remembered: str) -> Document | tuple[int, str]:
        """One hop: the document, or the status and location of a redirect."""
        self._policy.check_url(url)
        host = self._hosts.setdefault(url.origin, asyncio.Semaphore(self._limits.per_host))
        async with host, self._total:
            try:
                async with self._client.get(str(url), HEADERS | validators.headers()) as answer:
                    if answer.status_code in REDIRECTS and (location := answer.headers.get("location")):
                        return answer.status_code, location
                    return await self._document(url, answer, validators, remembered)
            except NETWORK_ERRORS as error:
                raise CardUnavailable(f"{url}: {_said(error)}", metadata={"cause": _cause(error)}) from error

    async def _document(self, url: Url, answer: httpx.Response, validators: Validators, remembered: str) -> Document:
        unmodified = answer.status_code == httpx.codes.NOT_MODIFIED and bool(validators)
        if answer.status_code != httpx.codes.OK and not unmodified:
            raise CardUnavailable(
                f"{url} answers {answer.status_code}",
                metadata={"cause": f"http-{answer.status_code}"},
                retry_after=_retry_after(answer),
            )
        return Document(
            url=remembered,
            modified=not unmodified,
            body=b"" if unmodified else await read_body(answer.aiter_raw(), answer.headers, limit=self._limits.body),
            validators=Validators(
                etag=answer.headers.get("etag", "")[:_LONGEST_VALIDATOR],
                last_modified=answer.headers.get("last-modified", "")[:_LONGEST_VALIDATOR],
            ),
            max_age=stated_lifetime(answer.headers),
        )


_LONGEST_VALIDATOR = 1024
_LONGEST_WAIT = 3600.0
"""Seconds of Retry-After that are believed."""


def _retry_after(answer: httpx.Response) -> float | None:
    """`Retry-After` in seconds, as its date form needs a clock that both sides agree on."""
    text = answer.headers.get("retry-after", "").strip()
    return min(float(text), _LONGEST_WAIT) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _cause(error: Exception) -> str:
    """A stable word for what went wrong on the wire."""
    name = type(error).__name__
    if name.endswith("Timeout"):
        return "timeout"
    return "connection" if name.startswith("Connect") else "broken-answer"


def _said(error: Exception) -> str:
    words = {
        "timeout": "no answer in time",
        "connection": "no connection",
        "broken-answer": "the connection broke, or what came is no HTTP",
    }[_cause(error)]
    return f"{words} ({str(error)[:120]})" if str(error) else words
