"""Client of Cardkeeper, the discovery service of an A2A fleet."""

from cardkeeper_client.aio import CardkeeperAsync
from cardkeeper_client.client import Cardkeeper
from cardkeeper_client.errors import (
    AgentContradictsCardError,
    ArtifactSchemaDriftError,
    CardkeeperError,
    ClosedError,
    DriftError,
    ForkedError,
    NotJudgedError,
    ServiceError,
    ServiceUnavailableError,
    SkillRefusedError,
    StaleAgentCardError,
)
from cardkeeper_client.resolution import Resolution

__all__ = [
    "AgentContradictsCardError",
    "ArtifactSchemaDriftError",
    "Cardkeeper",
    "CardkeeperAsync",
    "CardkeeperError",
    "ClosedError",
    "DriftError",
    "ForkedError",
    "NotJudgedError",
    "Resolution",
    "ServiceError",
    "ServiceUnavailableError",
    "SkillRefusedError",
    "StaleAgentCardError",
]
__version__ = "0.1.0"
