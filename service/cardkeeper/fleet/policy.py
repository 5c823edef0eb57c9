"""The numbers that the fleet is run by. All durations are in seconds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPolicy:
    """Lifetimes, budgets and bounds; the defaults suit a fleet of up to some ten thousand agents."""

    soft_lifetime: float = 300.0
    """How long a card counts as fresh where its source says nothing."""
    min_lifetime: float = 30.0
    """Least lifetime that is granted to a source that states one."""
    max_lifetime: float = 3600.0
    """Longest lifetime that is granted to a source that states one."""
    hard_lifetime: float = 24 * 3600.0
    """How long a card may still be served while its source does not answer."""
    trust_validators: float = 3600.0
    """How long "not modified" is believed after a whole fetch: sources may derive validators from an unmoved version."""
    refresh_jitter: float = 0.2
    """Share of the lifetime by which background refreshes are spread, so that they never come in step."""
    fetch_timeout: float = 10.0
    """Deadline of one fetch over all candidates, whoever waits for it."""
    first_backoff: float = 1.0
    """Wait after the first failed fetch; doubles with each further one."""
    max_backoff: float = 300.0
    evidence_memory: float = 5.0
    """How long a re-fetch answers for the same evidence, so that a thousand reports of one failure cause one."""
    agent_refetch_burst: int = 5
    """Re-fetches on evidence or on request that one agent may be put to at once; one more each agent_refetch_interval."""
    agent_refetch_interval: float = 10.0
    reporter_refetch_burst: int = 100
    """Re-fetches on evidence that one reporter may cause at once; one more each reporter_refetch_interval."""
    reporter_refetch_interval: float = 1.0
    max_agents: int = 10_000
    discover: bool = True
    """Keep agents that a ResolveSkill names by URL and that nobody registered."""
    max_refresh_concurrency: int = 16
    """Background refreshes under way at once."""
