"""The negotiated answer, as a value that can be kept and shared."""

from dataclasses import dataclass
from typing import Self

from cardkeeper_client.v1 import observation_pb2, resolution_pb2


@dataclass(frozen=True, slots=True)
class Resolution:
    """Fields as in the protos' Resolution. Immutable: the near cache lends the same one to everybody."""

    agent: str
    """Resource name, "agents/ID"."""
    agent_url: str
    endpoint_url: str
    """Where to send the task."""
    protocol_binding: str
    protocol_version: str
    tenant: str
    skill_id: str
    input_modes: tuple[str, ...]
    """Effective modes; empty: nothing is promised."""
    output_modes: tuple[str, ...]
    streaming: bool
    push_notifications: bool
    skill_fingerprint: str
    """What the task is negotiated under: report it with the outcome."""
    per_skill_fingerprint: str
    card_digest: str
    card_version: str
    epoch: str
    sequence: int
    """Revision at which the agent became what this says; compares only within one epoch."""
    verified_at: float
    """When the card was last verified: seconds since the Unix epoch, by the service's clock."""
    expires_at: float
    """Until when this may be reused without asking, if no invalidation arrives; likewise."""
    stale: bool
    """The service cannot vouch for the card: it is past its soft lifetime, suspect, or the store is away."""

    @classmethod
    def of(cls, message: resolution_pb2.Resolution) -> Self:
        """Read the wire form."""
        return cls(
            agent=message.agent,
            agent_url=message.agent_url,
            endpoint_url=message.endpoint_url,
            protocol_binding=message.protocol_binding,
            protocol_version=message.protocol_version,
            tenant=message.tenant,
            skill_id=message.skill_id,
            input_modes=tuple(message.input_modes),
            output_modes=tuple(message.output_modes),
            streaming=message.streaming,
            push_notifications=message.push_notifications,
            skill_fingerprint=message.skill_fingerprint,
            per_skill_fingerprint=message.per_skill_fingerprint,
            card_digest=message.card_digest,
            card_version=message.card_version,
            epoch=message.revision.epoch,
            sequence=message.revision.sequence,
            verified_at=message.verify_time.seconds + message.verify_time.nanos / 1e9,
            expires_at=message.expire_time.seconds + message.expire_time.nanos / 1e9,
            stale=message.freshness != resolution_pb2.FRESHNESS_FRESH,
        )

    def lifetime_left(self, now: float) -> float:
        """Seconds for which this may still be reused, at a wall time of the caller.

        Never more than the whole lifetime, so that a caller's clock that is behind cannot stretch it.
        """
        return min(self.expires_at - now, self.expires_at - self.verified_at)

    def negotiated(self) -> observation_pb2.Negotiated:
        """What ties an observation to this."""
        return observation_pb2.Negotiated(
            agent=self.agent, skill_id=self.skill_id, skill_fingerprint=self.skill_fingerprint
        )
