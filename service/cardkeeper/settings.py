"""What an operator may set. Read once, at the start, from flags and CARDKEEPER_* variables (see `cli/serve.py`)."""

from dataclasses import dataclass, field
from pathlib import Path

from cardkeeper.drift.model import ArtifactPolicy
from cardkeeper.fetch.ip_policy import EgressPolicy
from cardkeeper.fleet.policy import FleetPolicy
from cardkeeper.rpc.stream_policy import StreamPolicy
from cardkeeper.store.base import History


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything the service is assembled from. Durations are in seconds."""

    listen: str = "127.0.0.1:50051"
    """"host:port"; port 0: any free one."""
    data: Path | None = None
    """SQLite file; None: memory only, forgotten at the end."""
    egress: EgressPolicy = field(default_factory=EgressPolicy)
    fleet: FleetPolicy = field(default_factory=FleetPolicy)
    streams: StreamPolicy = field(default_factory=StreamPolicy)
    history: History = field(default_factory=History)
    artifact_policy: ArtifactPolicy = ArtifactPolicy.CONFIRM
    patterns: Path | None = None
    """Operator's text patterns, beside the built-in ones."""
    output_schemas: Path | None = None
    """Operator's output schemas, for agents whose cards state none."""
    admin_token: str = field(default="", repr=False)
    """Needed by the methods that change the fleet; empty: they are open to whoever reaches the port."""
    tls_certificate: Path | None = None
    """PEM chain; with tls_key."""
    tls_key: Path | None = None
    drain_timeout: float = 10.0
