"""Where an agent's card may be, most promising place first. Pure.

The specification knows only the origin's root (RFC 8615); SDKs append to the base path, and both file names are alive.
"""

from cardkeeper.fetch.address import CARD_PATH, LEGACY_CARD_PATH
from cardkeeper.fetch.url import parse_url


def candidates(agent_url: str, card_url: str = "") -> tuple[str, ...]:
    """Return the URLs to try, in order, without repetition.

    `card_url` is where the card was found last. An agent URL that names a document is its only other candidate: what
    stands elsewhere on that host may be another agent's card.
    """
    remembered = (card_url,) if card_url else ()
    if agent_url.lower().endswith(".json"):
        return tuple(dict.fromkeys((*remembered, agent_url)))
    origin = parse_url(agent_url).origin
    probed = (base + path for base in (agent_url, origin) for path in (CARD_PATH, LEGACY_CARD_PATH))
    return tuple(dict.fromkeys((*remembered, *probed)))
