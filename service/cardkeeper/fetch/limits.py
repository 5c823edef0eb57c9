"""The bounds of fetching."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    """Bounds of one fetch and of all together. Times are in seconds."""

    body: int = 1 << 20
    """Bytes of a card, after decompression and before. The largest of 357 cards seen in public has 29 kB."""
    redirects: int = 3
    connect_timeout: float = 3.0
    """One attempt to connect, to one address; and one name lookup."""
    read_timeout: float = 5.0
    """Silence in the middle of an answer."""
    addresses: int = 16
    """Of one name; what a name server says beyond that is not looked at."""
    connect_attempts: int = 4
    per_host: int = 2
    """Requests to one host and port at a time."""
    total: int = 32
    """Requests at a time."""
    resolver_threads: int = 8
    keep_alive: float = 4.0
    """Idle connections are closed before the five seconds after which common servers close them."""
