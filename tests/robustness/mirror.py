"""What a client holds, kept as the contract says: nothing older overwrites anything newer."""

from trace_history import Point
from trace_record import Invalidated, Resynced, Synced


class Mirror:
    """Skill fingerprints by agent id, each with the revision that it is of."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[str, Point]] = {}
        self._told: dict[tuple[str, str], int] = {}

    @property
    def fingerprints(self) -> dict[str, str]:
        """What is held now."""
        return {agent: fingerprint for agent, (fingerprint, _) in self._held.items()}

    def forget(self) -> None:
        """Drop everything."""
        self._held.clear()

    def told(self, agent: str, epoch: str) -> Point | None:
        """The newest state that the stream told of an agent."""
        sequence = self._told.get((epoch, agent))
        return None if sequence is None else Point(epoch, sequence)

    def resolved(self, agent: str, fingerprint: str, at: Point) -> None:
        """Hold an answer, unless it is older than what is known."""
        held = self._held.get(agent)
        older = held is not None and held[1].epoch == at.epoch and at.sequence < held[1].sequence
        if not older and at.sequence >= self._told.get((at.epoch, agent), 0):
            self._held[agent] = (fingerprint, at)

    def invalidated(self, frame: Invalidated) -> None:
        """Take an invalidation in."""
        key = (frame.agent_at.epoch, frame.agent)
        self._told[key] = max(self._told.get(key, 0), frame.agent_at.sequence)
        held = self._held.get(frame.agent)
        if held is None or (held[1].epoch == frame.agent_at.epoch and held[1].sequence > frame.agent_at.sequence):
            return
        if frame.removed:
            del self._held[frame.agent]
        else:
            self._held[frame.agent] = (frame.fingerprint, frame.agent_at)

    def resynced(self, listed: dict[str, str], frame: Resynced) -> None:
        """Drop what was not listed in the Subscribe."""
        del frame
        self._held = {agent: held for agent, held in self._held.items() if agent in listed}

    def synced(self, frame: Synced) -> None:
        """What is held from another epoch was compared by its fingerprint: its old revision says nothing here.

        It is older than anything that this epoch tells: a subscription that filters by tags has not vouched for it.
        """
        for agent, (fingerprint, at) in self._held.items():
            if at.epoch != frame.at.epoch:
                self._held[agent] = (fingerprint, Point(frame.at.epoch, 0))
