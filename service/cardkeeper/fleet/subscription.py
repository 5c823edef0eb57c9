"""What a client asked to be told of. Pure."""

from dataclasses import dataclass

from cardkeeper.card.change import ChangeKind, Severity
from cardkeeper.fleet.negotiation import Need
from cardkeeper.store.base import Event, EventKind

WHOLE_AGENT = frozenset(
    {
        ChangeKind.CAPABILITY_LOST,
        ChangeKind.CAPABILITY_GAINED,
        ChangeKind.ENDPOINT_CHANGED,
        ChangeKind.SECURITY_CHANGED,
        ChangeKind.EXTENSION_CHANGED,
        ChangeKind.SIGNATURE_CHANGED,
    }
)
"""Changes that touch every skill of the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A filter. Removals and loss of authority pass every filter but the one by agent."""

    id: int
    agents: frozenset[str] = frozenset()
    """Agent ids and canonical URLs; empty: all."""
    min_severity: Severity = Severity.NONE
    skill_ids: frozenset[str] = frozenset()
    tags: frozenset[str] = frozenset()
    needs: tuple[Need, ...] = ()
    """Needs whose fresh resolutions go along with an invalidation."""

    def covers(self, agent: str, agent_url: str) -> bool:
        """Whether the subscription is about this agent."""
        return not self.agents or agent in self.agents or agent_url in self.agents

    def wants(self, event: Event) -> bool:
        """Whether the client asked to be told of this event."""
        if not self.covers(event.agent, event.agent_url) or event.kind is EventKind.CLEARED:
            return False
        if event.kind in (EventKind.REMOVED, EventKind.SUSPECTED):
            return True
        if event.changes.severity < self.min_severity:
            return False
        whole = any(change.kind in WHOLE_AGENT for change in event.changes.changes)
        if self.skill_ids and not whole and self.skill_ids.isdisjoint(event.changes.skill_ids):
            return False
        return not self.tags or not self.tags.isdisjoint(event.tags)
