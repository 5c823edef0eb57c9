"""Bounds and intervals of invalidation streams. Durations are in seconds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPolicy:
    """The defaults let a frozen peer be noticed within 12 s on both sides."""

    bookmark_interval: float = 8.0
    """The contract promises a frame at least every 10 s; this leaves room for a busy loop."""
    ack_timeout: float = 30.0
    max_streams: int = 10_000
    max_streams_per_peer: int = 5_000
    """From one transport address: a client needs one stream a process, but many processes may share an address."""
    max_subscriptions: int = 100
    """On one stream."""
    max_subscribed_agents: int = 20_000
    """On one stream, over all its subscriptions."""
