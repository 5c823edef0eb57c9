"""Options of the channel: what was measured to be needed (grpcio 1.85), and which calls are tried again."""

import json

SERVICE = "cardkeeper.v1.DiscoveryService"
REPEATABLE = ("ResolveSkill", "FindSkills", "ReportTaskOutcome", "ValidateArtifact")
"""All but the stream: the contract calls them idempotent, and a report carries an id that lets it count once."""

_SERVICE_CONFIG = {
    "methodConfig": [
        {
            "name": [{"service": SERVICE, "method": method} for method in REPEATABLE],
            # UNAVAILABLE means "this server, now". An agent's outage has another code, and is not tried again.
            "retryPolicy": {
                "maxAttempts": 4,
                "initialBackoff": "0.1s",
                "maxBackoff": "1s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ],
    # Where most calls fail, trying again makes it worse.
    "retryThrottling": {"maxTokens": 20, "tokenRatio": 0.5},
}

OPTIONS = (
    # All three are needed: without ping_timeout_ms a frozen server is noticed after 64 s, with it after 7 s.
    ("grpc.keepalive_time_ms", 6_000),
    ("grpc.keepalive_timeout_ms", 4_000),
    ("grpc.http2.ping_timeout_ms", 4_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # Connections come back within seconds of the server, not minutes.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 5_000),
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),
    ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
)
