"""Resolutions that may be used without asking: the near cache. Pure: no I/O, no clock, no lock.

It answers only while the invalidation stream is in sync. Whatever the stream says goes before whatever a call returned: a
resolution that was on its way while its agent changed is not kept, and a lower revision never replaces a higher one.

The stream says for each change of an agent the revision of its state (`agent_revision`); each resolution carries the
revision of the state that it was made from. So the race between a call and the stream is decided by comparing two numbers.
"""

from dataclasses import dataclass

from cardkeeper_client.need import Need
from cardkeeper_client.resolution import Resolution


@dataclass(frozen=True, slots=True)
class Ticket:
    """A question that is on its way: when it was asked decides whether its answer may be kept."""

    generation: int


class NearCache:
    """At most `limit` resolutions; the oldest go first."""

    def __init__(self, limit: int = 10_000) -> None:
        self.answers: dict[Need, Resolution] = {}
        """What may be used now; empty while out of sync, so that a look-up needs no other check."""
        self._limit = limit
        self._parked: dict[Need, Resolution] = {}
        """What was held when the stream was lost: good again if the stream resumes without a gap."""
        self._by_agent: dict[str, set[Need]] = {}
        self._epoch = ""
        self._in_sync = False
        self._generation = 0
        self._open = 0
        """Tickets that are out."""
        self._told: dict[str, int] = {}
        """While tickets are out: the least revision that an answer about an agent must have."""

    @property
    def in_sync(self) -> bool:
        """Whether answers may be used."""
        return self._in_sync

    def ask(self) -> Ticket:
        """Note that a question goes out. Every ticket must come back through `keep` or `give_up`."""
        self._open += 1
        return Ticket(self._generation)

    def give_up(self, ticket: Ticket) -> None:
        """Note that no answer came."""
        del ticket
        self._open -= 1
        if not self._open:
            self._told.clear()

    def keep(self, ticket: Ticket, need: Need, resolution: Resolution) -> bool:
        """Keep an answer, if nothing speaks against it. Return whether it is kept."""
        least = self._told.get(resolution.agent, 0)
        self.give_up(ticket)
        if not self._in_sync or ticket.generation != self._generation or resolution.epoch != self._epoch:
            return False
        held = self.answers.get(need)
        if resolution.sequence < least or (held is not None and held.sequence > resolution.sequence):
            return False
        self._put(need, resolution)
        return True

    def invalidate(self, agent: str, agent_revision: int) -> None:
        """The agent's state is that of a revision now: what was made from an earlier one is not true any more."""
        if self._open:
            self._told[agent] = max(agent_revision, self._told.get(agent, 0))
        for holder in (self.answers, self._parked):
            for need in list(self._by_agent.get(agent, ())):
                held = holder.get(need)
                if held is not None and held.sequence < agent_revision:
                    self._drop(need)

    def distrust(self, agent: str, agent_revision: int) -> None:
        """The service cannot vouch for the agent's state of that revision, nor for any before."""
        self.invalidate(agent, agent_revision + 1)

    def distrust_all(self) -> None:
        """The service cannot vouch for anything that it said so far."""
        self._generation += 1
        self._clear()

    def lose(self) -> None:
        """The stream is not in sync any more: nothing may be used until it is."""
        if self._in_sync:
            self._parked, self.answers = self.answers, {}
        self._in_sync = False
        self._generation += 1

    def resync(self) -> None:
        """There is a gap in what the stream told: nothing that is held survives it."""
        self._clear()

    def synced(self, epoch: str) -> None:
        """Everything up to now has been told: what is left of what was held is true."""
        if epoch != self._epoch:
            self._clear()
            self._epoch = epoch
        if not self._in_sync:
            self.answers, self._parked = self._parked, {}
            self._in_sync = True

    def _put(self, need: Need, resolution: Resolution) -> None:
        if need in self.answers:
            self._drop(need)
        elif len(self.answers) >= self._limit:
            self._drop(next(iter(self.answers)))
        self.answers[need] = resolution
        self._by_agent.setdefault(resolution.agent, set()).add(need)

    def _drop(self, need: Need) -> None:
        held = self.answers.pop(need, None) or self._parked.pop(need, None)
        if held is not None:
            needs = self._by_agent[held.agent]
            needs.discard(need)
            if not needs:
                del self._by_agent[held.agent]

    def _clear(self) -> None:
        self.answers = {}
        self._parked = {}
        self._by_agent = {}
