"""Resolutions that may be used without asking: the near cache. Pure: no I/O, no clock, no lock.

It answers only while the invalidation stream is in sync. Whatever the stream says goes before whatever a call returned: a
resolution that was on its way while its agent changed is not kept, and a lower revision never replaces a higher one.

The stream says for each change of an agent the revision of its state (`agent_revision`); each resolution carries the
revision of the state that it was made from. So the race between a call and the stream is decided by comparing two numbers.
That needs both to be seen on one stream in sync, from before the question to after the answer: see `ask`.
"""

from dataclasses import dataclass

from cardkeeper_client.need import Need
from cardkeeper_client.resolution import Resolution


@dataclass(frozen=True, slots=True)
class Kept:
    """A resolution, and the instant from which it has to be asked for again although nothing speaks against it."""

    resolution: Resolution
    until: float


class NearCache:
    """At most `limit` resolutions; those that were asked for longest ago go first. At most `revisions` agents' newest ones.

    Instants are seconds on whatever clock the caller has; only their order matters.
    """

    def __init__(self, limit: int = 10_000, *, revisions: int = 20_000) -> None:
        self.answers: dict[Need, Kept] = {}
        """What may be used now; empty while out of sync, so that a look-up needs no lock."""
        if limit < 1:
            raise ValueError("a near cache holds one resolution at least; near_cache=False does without")
        self._limit = limit
        self._revisions = revisions
        self._trusted_until = 0.0
        """The stream's silence is believed to mean "nothing new" until then."""
        self._parked: dict[Need, Kept] = {}
        """What was held when the stream was lost: good again if the stream resumes without a gap."""
        self._by_agent: dict[str, set[Need]] = {}
        self._epoch = ""
        self._in_sync = False
        self._generation = 0
        """Rises whenever an answer that is on its way can no longer be judged by the revisions that are known."""
        self._least: dict[str, int] = {}
        """The least revision that an answer about an agent must have: the highest that was seen of it."""

    @property
    def in_sync(self) -> bool:
        """Whether the stream is in sync."""
        return self._in_sync

    @property
    def epoch(self) -> str:
        """Epoch that the stream was last in sync in; empty: it never was."""
        return self._epoch

    def trusts(self, now: float) -> bool:
        """Whether answers may be used at an instant."""
        return self._in_sync and now < self._trusted_until

    def trust_until(self, instant: float) -> None:
        """The stream was heard; its silence means that nothing is new, until an instant."""
        self._trusted_until = instant

    def find(self, need: Need, now: float) -> Resolution | None:
        """Return what may be used at an instant. Safe beside all other methods, without a lock."""
        kept = self.answers.get(need)
        if kept is None or now >= kept.until or now >= self._trusted_until:
            return None
        return kept.resolution

    def ask(self) -> int:
        """Return a ticket for a question that goes out; its answer may be kept only under the same state of the stream."""
        return self._generation

    def keep(self, ticket: int, need: Need, resolution: Resolution, until: float) -> bool:
        """Keep an answer, if nothing speaks against it. Return whether it is kept."""
        if not self._in_sync or ticket != self._generation or resolution.epoch != self._epoch:
            return False
        least = self._least.get(resolution.agent, 0)
        if resolution.sequence < least:
            return False
        if resolution.sequence > least:
            # The answer knows of a change before the stream tells: the other answers about this agent are outdated.
            self.invalidate(resolution.agent, resolution.sequence)
        if resolution.stale:
            return False  # the service itself could not vouch for it
        self._put(need, Kept(resolution, until))
        return True

    def invalidate(self, agent: str, agent_revision: int) -> None:
        """The agent's state is that of a revision now: what was made from an earlier one is not true any more."""
        if agent not in self._least and len(self._least) >= self._revisions:
            # Revisions are forgotten only together with the questions that they would judge.
            self._least.clear()
            self._generation += 1
        self._least[agent] = max(agent_revision, self._least.get(agent, 0))
        self._drop_before(agent, agent_revision)

    def distrust(self, agent: str, agent_revision: int) -> None:
        """The service cannot vouch for the agent's state of that revision, nor for any before; for a later one it can."""
        self.invalidate(agent, agent_revision + 1)

    def distrust_all(self) -> None:
        """The service cannot vouch for anything that it said so far."""
        self._generation += 1
        self._drop_all()

    def doubt(self, agent: str, sequence: int) -> None:
        """The caller saw evidence against a state: ask again before using it, and believe the answer."""
        self._generation += 1
        self._drop_before(agent, sequence + 1)

    def lose(self) -> None:
        """The stream is not in sync any more: nothing may be used until it is."""
        if self._in_sync:
            self._parked, self.answers = self.answers, {}
        self._in_sync = False

    def resync(self) -> None:
        """There is a gap in what the stream told: nothing that is held, or known of revisions, survives it."""
        self._in_sync = False
        self._generation += 1
        self._least.clear()
        self._drop_all()

    def synced(self, epoch: str) -> None:
        """Everything up to now has been told: what is left of what was held is true."""
        if epoch != self._epoch:
            self.resync()
            self._epoch = epoch
        if not self._in_sync:
            # What was asked for before was not asked on one stream in sync: of changes meanwhile, nobody need tell.
            self._generation += 1
            self.answers, self._parked = self._parked, {}
            self._in_sync = True

    def _put(self, need: Need, kept: Kept) -> None:
        if need in self.answers:
            self._drop(need)
        elif len(self.answers) >= self._limit:
            self._drop(next(iter(self.answers)))
        self.answers[need] = kept
        self._by_agent.setdefault(kept.resolution.agent, set()).add(need)

    def _drop_before(self, agent: str, sequence: int) -> None:
        for holder in (self.answers, self._parked):
            for need in list(self._by_agent.get(agent, ())):
                held = holder.get(need)
                if held is not None and held.resolution.sequence < sequence:
                    self._drop(need)

    def _drop(self, need: Need) -> None:
        held = self.answers.pop(need, None) or self._parked.pop(need, None)
        if held is not None:
            needs = self._by_agent[held.resolution.agent]
            needs.discard(need)
            if not needs:
                del self._by_agent[held.resolution.agent]

    def _drop_all(self) -> None:
        self.answers = {}
        self._parked = {}
        self._by_agent = {}
