"""From an agent's URL to its card: candidates in order, one deadline over all of them."""

import asyncio
import ssl

from cardkeeper.card.parse import parse_card
from cardkeeper.errors import CardInvalid, CardkeeperError, CardUnavailable, EgressRefused
from cardkeeper.fetch.base import CardRequest, CardResponse
from cardkeeper.fetch.candidate import candidates
from cardkeeper.fetch.client import Client
from cardkeeper.fetch.ip_policy import EgressPolicy
from cardkeeper.fetch.limits import FetchLimits
from cardkeeper.fetch.resolver import Resolver, SystemResolver
from cardkeeper.fetch.retrieval import Document, Retrieval, Validators
from cardkeeper.fetch.url import parse_url

NO_CARD_HERE = frozenset({"http-401", "http-403", "http-404", "http-405", "http-406", "http-410"})
"""Answers that say "not at this place": hosts answer with any of them for a path that they do not serve."""
NO_DOCUMENT = frozenset({"document.html", "document.empty", "document.not_json", "document.not_utf8"})
"""Findings on a page that a host serves for any path: there is no card in this place either."""


class HttpFetcher:
    """Fetches over HTTP under an egress policy."""

    def __init__(
        self,
        policy: EgressPolicy,
        limits: FetchLimits | None = None,
        *,
        resolver: Resolver | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        limits = limits or FetchLimits()
        self._resolver = resolver or SystemResolver(limits.resolver_threads)
        self._client = Client(policy, limits, self._resolver, tls)
        self._retrieval = Retrieval(self._client, policy, limits)

    async def fetch(self, request: CardRequest, *, timeout: float) -> CardResponse:
        """Try the candidates in order within `timeout` seconds.

        Raises EgressRefused, CardInvalid or CardUnavailable, as `base.py` says.
        """
        failures: list[CardkeeperError] = []
        try:
            async with asyncio.timeout(timeout):
                return await self._first_card(request, failures)
        except TimeoutError:
            failures.append(
                CardUnavailable(
                    f"{request.agent_url} gave no card within {timeout:g} seconds", metadata={"cause": "timeout"}
                )
            )
        raise _weightiest(failures)

    async def close(self) -> None:
        """Close connections."""
        await self._client.close()
        self._resolver.close()

    async def _first_card(self, request: CardRequest, failures: list[CardkeeperError]) -> CardResponse:
        unreachable: set[str] = set()
        for url in candidates(request.agent_url, request.card_url):
            origin = parse_url(url).origin
            if origin in unreachable:
                continue
            held = url == request.card_url
            validators = Validators(etag=request.etag, last_modified=request.last_modified) if held else Validators()
            try:
                return await _response(await self._retrieval.get(url, validators))
            except (CardUnavailable, EgressRefused) as error:
                failures.append(_located(error, url))
                if held and not _not_here(error):
                    # It is the right place, and in trouble: what stands elsewhere would be somebody else's.
                    break
                if isinstance(error, EgressRefused) or error.metadata.get("cause") in ("connection", "timeout"):
                    unreachable.add(origin)
        raise _weightiest(failures)


async def _response(document: Document) -> CardResponse:
    card = None
    if document.modified and len(document.body) <= LARGE:
        card = parse_card(document.body, document.url)
    elif document.modified:
        card = await asyncio.to_thread(parse_card, document.body, document.url)
    return CardResponse(
        card_url=document.url,
        card=card,
        body=document.body,
        etag=document.validators.etag,
        last_modified=document.validators.last_modified,
        max_age=document.max_age,
    )


LARGE = 64 * 1024
"""Bytes from which a card is parsed beside the event loop: one of 1 MiB takes a second."""


def _located(error: CardkeeperError, url: str) -> CardkeeperError:
    """Say in the message which place it is about."""
    if not error.message.startswith(("http://", "https://")):
        error.message = f"{url}: {error.message}"
        error.args = (error.message,)
    return error


def _not_here(error: CardkeeperError) -> bool:
    """Whether a failure says that the place has no card (any more), not that the card is in trouble."""
    if isinstance(error, CardInvalid):
        return any(finding.id in NO_DOCUMENT for finding in error.findings)
    cause = error.metadata.get("cause")
    return isinstance(error, EgressRefused) or cause in NO_CARD_HERE or cause in ("connection", "redirect")


def _weightiest(failures: list[CardkeeperError]) -> CardkeeperError:
    """What tells most: a document that is nearly a card, a refusal, trouble, and last that there is nothing."""

    def weight(error: CardkeeperError) -> int:
        if isinstance(error, CardInvalid):
            return 1 if _not_here(error) else 4
        if isinstance(error, EgressRefused):
            return 3
        return 0 if _not_here(error) and error.metadata.get("cause") != "connection" else 2

    return max(failures, key=weight)
