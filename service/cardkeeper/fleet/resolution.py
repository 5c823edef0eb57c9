"""The negotiated answer, as a value: what a client keeps with its task."""

from dataclasses import dataclass

from cardkeeper.fleet.agent_state import AgentState, Freshness
from cardkeeper.fleet.negotiation import Need, negotiate


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """Fields as in the proto's Resolution; times are seconds since the Unix epoch."""

    agent: str
    agent_url: str
    endpoint_url: str
    protocol_binding: str
    protocol_version: str
    tenant: str
    skill_id: str
    input_modes: tuple[str, ...]
    output_modes: tuple[str, ...]
    streaming: bool
    push_notifications: bool
    skill_fingerprint: str
    per_skill_fingerprint: str
    card_digest: str
    card_version: str
    sequence: int
    verified_at: float
    expires_at: float
    freshness: Freshness


def resolve(state: AgentState, need: Need, monotonic: float) -> Resolution:
    """Negotiate a need with an agent that has a card, at a monotonic instant.

    Raises SkillNotAdvertised or NotOffered; ValueError where the state has no card.
    """
    card, record = state.card, state.record
    if card is None:
        raise ValueError(f"{state.name} has no card")
    offer = negotiate(card, need, state.name)
    return Resolution(
        agent=state.name,
        agent_url=record.agent_url,
        endpoint_url=offer.interface.url,
        protocol_binding=offer.interface.binding,
        protocol_version=offer.interface.protocol_version,
        tenant=offer.interface.tenant,
        skill_id=offer.skill.id,
        input_modes=offer.skill.input_modes,
        output_modes=offer.skill.output_modes,
        streaming=card.streaming,
        push_notifications=card.push_notifications,
        skill_fingerprint=card.skill_fingerprint,
        per_skill_fingerprint=offer.skill.fingerprint,
        card_digest=card.card_digest,
        card_version=card.version,
        sequence=record.sequence,
        verified_at=record.verified_at,
        expires_at=record.verified_at + record.lifetime,
        freshness=state.freshness(monotonic),
    )
