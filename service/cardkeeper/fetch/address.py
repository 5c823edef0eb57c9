"""An agent's address: one canonical URL for each agent, and the id that follows from it. Pure."""

import hashlib
import re

from cardkeeper.errors import InvalidInput
from cardkeeper.fetch.url import parse_url

CARD_PATH = "/.well-known/agent-card.json"
"""Since A2A 0.3.0."""
LEGACY_CARD_PATH = "/.well-known/agent.json"
"""A2A 0.1.0 to 0.2.6."""

_FIELD = "agent.agent_url"
_ID_LENGTH = 63
_DIGEST_LENGTH = 8


def canonical_agent_url(text: str) -> str:
    """Return the one spelling of an agent's base URL; two URLs are the same agent if and only if theirs are equal.

    Scheme and host in lower case, the host as A-labels, no default port, no dot segments, no trailing slash. A URL of
    the well-known card itself stands for its base. Any other URL that ends in ".json" names the card's document and is
    kept. Raises InvalidInput that says what to fix.
    """
    for delimiter, part in (("#", "a fragment"), ("?", "a query")):
        if delimiter in text:
            raise InvalidInput(f"the agent's URL has {part}; remove {delimiter} and what follows it", field=_FIELD)
    try:
        url = parse_url(text)
    except ValueError as error:
        raise InvalidInput(f"the agent's URL {error}", field=_FIELD) from None
    path = url.path.rstrip("/")
    while path.endswith((CARD_PATH, LEGACY_CARD_PATH)):
        path = path.removesuffix(CARD_PATH).removesuffix(LEGACY_CARD_PATH).rstrip("/")
    return url.origin + path


def agent_id_for(canonical_url: str) -> str:
    """Return a readable, stable id for a canonical URL: the host, and eight hex digits of the URL's SHA-256."""
    digest = hashlib.sha256(canonical_url.encode()).hexdigest()[:_DIGEST_LENGTH]
    slug = re.sub(r"[^a-z0-9]+", "-", parse_url(canonical_url).host).strip("-")
    slug = slug[: _ID_LENGTH - _DIGEST_LENGTH - 1].rstrip("-") or "agent"
    return f"{slug}-{digest}"
