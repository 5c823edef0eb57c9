"""Where a redirect leads, and what may go along. Pure."""

from urllib.parse import urljoin

from cardkeeper.errors import CardUnavailable, EgressRefused
from cardkeeper.fetch.url import Url, parse_url

REDIRECTS = frozenset({301, 302, 303, 307, 308})
PERMANENT = frozenset({301, 308})
"""What may be remembered (RFC 9110 section 15.4)."""


def redirect_target(source: Url, location: str) -> Url:
    """Return where an answer of `source` redirects to. Raises CardUnavailable, or EgressRefused from https to http."""
    try:
        target = parse_url(urljoin(str(source), location))
    except ValueError as error:
        raise CardUnavailable(f"{source} redirects to a URL that {error}", metadata={"cause": "redirect"}) from None
    if source.scheme == "https" and target.scheme == "http":
        raise EgressRefused(f"{source} redirects from https to http", metadata={"rule": "downgrade"})
    return target
