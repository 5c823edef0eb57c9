"""The values that everything above speaks of: a card, its skills, its interfaces.

They are the same for every dialect; `normalise.py` makes them. All are frozen and hashable, so that they can be shared
between tasks and compared.
"""

from dataclasses import dataclass
from enum import StrEnum

from cardkeeper.card.finding import Finding


class Dialect(StrEnum):
    """The A2A generation that a document is written in."""

    V0_1 = "0.1"
    V0_2 = "0.2"
    V0_3 = "0.3"
    V1_0 = "1.0"
    HYBRID = "hybrid"
    """1.0 interfaces and the 0.x fields in one document."""
    UNKNOWN = "unknown"
    """An object that shows no generation: used for fingerprints, refused as a card unless it has skills."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """One way to reach the agent, in the card's order of preference."""

    url: str
    binding: str
    """"JSONRPC", "GRPC", "HTTP+JSON", or what the card says."""
    protocol_version: str
    """"Major.Minor"; what the dialect implies where the card is silent."""
    tenant: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """A protocol extension that the agent offers or demands (capabilities.extensions)."""

    uri: str
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """One skill, with its effective modes: its own where it states any, else the card's defaults.

    Modes stand as the card writes them, in its order; fingerprints sort them, matching normalises them.
    """

    id: str
    name: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    input_modes: tuple[str, ...] = ()
    output_modes: tuple[str, ...] = ()
    fingerprint: str = ""
    """Hex SHA-256 of this skill's entry in the negotiation surface: the per-skill fingerprint."""
    description_digest: str = ""
    """Hex SHA-256 of name, description, tags and examples: moves for variant C, which proves nothing."""
    output_schema: str = ""
    """JSON text of the output JSON Schema that a card extension states for the skill; empty: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One Agent Card, normalised. `findings` holds no ERROR: a document with one is refused instead."""

    dialect: Dialect
    name: str
    description: str
    version: str
    """Free text, never an identity; empty where the card has none."""
    interfaces: tuple[Interface, ...]
    skills: tuple[Skill, ...]
    """In the card's order, duplicates kept."""
    streaming: bool
    push_notifications: bool
    extended_card: bool
    """The agent offers an authenticated extended card."""
    extensions: tuple[Extension, ...]
    skill_fingerprint: str
    """Hex SHA-256 of the negotiation surface (design section 4)."""
    card_digest: str
    """Hex SHA-256 of the whole document's canonical JSON (RFC 8785)."""
    interface_digest: str
    """Hex SHA-256 of endpoint URLs, transports and tenants, in order of preference."""
    security_digest: str
    """Hex SHA-256 of security schemes and requirements."""
    signature_digest: str
    """Hex SHA-256 of `signatures`; empty where the card has none."""
    findings: tuple[Finding, ...] = ()

    def skill(self, skill_id: str) -> Skill | None:
        """Return the first skill of that id, or None."""
        for skill in self.skills:
            if skill.id == skill_id:
                return skill
        return None
