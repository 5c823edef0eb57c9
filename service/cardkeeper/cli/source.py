"""Documents for the commands that work without a service: a file, a URL, or standard input."""

import asyncio
import sys
from pathlib import Path

from cardkeeper.cli.connection import USAGE, stop
from cardkeeper.errors import CardkeeperError, InvalidInput
from cardkeeper.fetch.address import canonical_agent_url
from cardkeeper.fetch.base import CardRequest, CardResponse
from cardkeeper.fetch.fetcher import HttpFetcher
from cardkeeper.fetch.ip_policy import EgressPolicy

TIMEOUT = 15.0
"""Seconds for a fetch."""


def load(where: str) -> tuple[bytes, str]:
    """Return a card's document and the URL that it came from, "" for a file; "-" is standard input.

    Ends the command with exit code 2 where there is nothing to read. A person at a terminal may fetch from wherever the
    machine can; only addresses at which clouds hand out credentials stay refused.
    """
    if where.startswith(("http://", "https://")):
        try:
            response = asyncio.run(_fetch(where))
        except CardkeeperError as error:
            stop(f"{error.message}", USAGE)
        return response.body, response.card_url
    return read(where), ""


def read(where: str) -> bytes:
    """Return the bytes of a file, or of standard input for "-". Ends the command with exit code 2 where that fails."""
    try:
        return sys.stdin.buffer.read() if where == "-" else Path(where).read_bytes()
    except OSError as error:
        stop(f"cannot read {where}: {error.strerror}", USAGE)


async def _fetch(url: str) -> CardResponse:
    try:
        agent_url = canonical_agent_url(url)
    except InvalidInput as error:
        stop(error.message, USAGE)
    fetcher = HttpFetcher(EgressPolicy(allow_loopback=True, allow_private=True))
    try:
        return await fetcher.fetch(CardRequest(agent_url=agent_url), timeout=TIMEOUT)
    finally:
        await fetcher.close()
