"""The fetcher's contract: what is asked of it, and what it answers."""

from dataclasses import dataclass
from typing import Protocol

from cardkeeper.card.model import Card


@dataclass(frozen=True, slots=True, kw_only=True)
class CardRequest:
    """Ask for an agent's card."""

    agent_url: str
    """Canonical base URL."""
    card_url: str = ""
    """Where the card was last found: tried first."""
    etag: str = ""
    """Validator of the copy that is held; with both validators empty the request is unconditional."""
    last_modified: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardResponse:
    """A card, or the statement that the one held has not changed."""

    card_url: str
    """URL that answered, after redirects; what to remember."""
    card: Card | None
    """The card; None: not modified."""
    body: bytes = b""
    etag: str = ""
    last_modified: str = ""
    max_age: float | None = None
    """Lifetime that the source states (Cache-Control), in seconds; None: it is silent."""


class Fetcher(Protocol):
    """What the fleet needs of the network."""

    async def fetch(self, request: CardRequest, *, timeout: float) -> CardResponse:
        """Try the candidates in order within one deadline of `timeout` seconds.

        Raises EgressRefused where policy forbids it, CardInvalid where something answered that is no usable card, and
        CardUnavailable where nothing answered with a card. An unconditional request also asks caches on the way for a
        fresh copy.
        """
        ...

    async def close(self) -> None:
        """Close connections."""
        ...
