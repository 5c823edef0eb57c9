"""What really happened: the service's own log of revisions, epoch by epoch. Pure; imports nothing of the service."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """What a revision did to an agent."""

    ADDED = "ADDED"
    CHANGED = "CHANGED"
    REMOVED = "REMOVED"
    SUSPECTED = "SUSPECTED"
    CLEARED = "CLEARED"


SURFACE = frozenset({Kind.ADDED, Kind.CHANGED, Kind.REMOVED})
"""Kinds that a client is told of by an Invalidation."""


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """A revision; compares only within one epoch."""

    epoch: str
    sequence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One revision of the log."""

    sequence: int
    kind: Kind
    agent: str
    agent_url: str = ""
    previous: str = ""
    """Skill fingerprint before; of ADDED, CHANGED and REMOVED."""
    fingerprint: str = ""
    """Skill fingerprint after; of ADDED and CHANGED."""
    severity: int = 0
    skill_ids: frozenset[str] = frozenset()
    whole_agent: bool = False
    """Some change touches every skill."""
    tags: frozenset[str] = frozenset()


@dataclass(slots=True)
class Epoch:
    """One revision log, from its first entry on."""

    id: str
    entries: list[Entry] = field(default_factory=list)
    _of_agent: dict[str, list[Entry]] = field(default_factory=dict)

    def append(self, entry: Entry) -> None:
        """Add what happened next."""
        self.entries.append(entry)
        self._of_agent.setdefault(entry.agent, []).append(entry)

    @property
    def head(self) -> int:
        """The last revision taken."""
        return self.entries[-1].sequence if self.entries else 0

    def between(self, after: int, upto: int) -> Sequence[Entry]:
        """Entries of revisions after one and up to another."""
        return self.entries[max(after, 0) : max(upto, 0)]

    def of_agent(self, agent: str, after: int, upto: int) -> Iterator[Entry]:
        """One agent's entries after a revision and up to another."""
        entries = self._of_agent.get(agent, [])
        for index in range(bisect_right(entries, after, key=lambda item: item.sequence), len(entries)):
            if entries[index].sequence > upto:
                return
            yield entries[index]

    def fingerprint(self, agent: str, at: int) -> str | None:
        """The skill fingerprint that an agent had at a revision; None: it was not kept."""
        for entry in self._back(agent, at):
            if entry.kind in SURFACE:
                return None if entry.kind is Kind.REMOVED else entry.fingerprint
        return None

    def suspected_at(self, agent: str, at: int) -> int:
        """The revision at which the suspicion that stands at a revision began; 0: none stands."""
        last = next(self._back(agent, at), None)
        return last.sequence if last is not None and last.kind is Kind.SUSPECTED else 0

    @property
    def ever_kept(self) -> int:
        """How many agents the log names."""
        return len(self._of_agent)

    def covered(self, agent: str) -> tuple[str, str]:
        """An agent's id and the URL that the log knows for it, empty where it knows none."""
        entries = self._of_agent.get(agent)
        return agent, entries[0].agent_url if entries else ""

    def agents(self, at: int) -> dict[str, str]:
        """Agents kept at a revision: canonical URL by id."""
        return {
            agent: entries[0].agent_url
            for agent, entries in self._of_agent.items()
            if self.fingerprint(agent, at) is not None
        }

    def _back(self, agent: str, at: int) -> Iterator[Entry]:
        entries = self._of_agent.get(agent, [])
        for index in range(bisect_right(entries, at, key=lambda item: item.sequence) - 1, -1, -1):
            yield entries[index]


class History:
    """All epochs that a run has seen."""

    def __init__(self, epochs: Iterable[Epoch] = ()) -> None:
        self.epochs = {epoch.id: epoch for epoch in epochs}

    def epoch(self, epoch_id: str) -> Epoch:
        """The log of that id, begun if it is new."""
        return self.epochs.setdefault(epoch_id, Epoch(epoch_id))

    def faults(self) -> Iterator[str]:
        """What is wrong with the log itself: a revision taken twice or never, a change of what was not there."""
        for epoch in self.epochs.values():
            held: dict[str, str] = {}
            urls: dict[str, str] = {}
            for expected, entry in enumerate(epoch.entries, 1):
                where = f"{epoch.id}@{entry.sequence} {entry.kind} {entry.agent}"
                if entry.sequence != expected:
                    yield f"{where}: revision {expected} is missing or out of its place"
                    break
                if (entry.kind is Kind.ADDED) == (entry.agent in held):
                    yield f"{where}: the agent was {'kept already' if entry.agent in held else 'not kept'}"
                if entry.agent_url and urls.setdefault(entry.agent_url, entry.agent) != entry.agent:
                    yield f"{where}: {entry.agent_url} is kept as {urls[entry.agent_url]} already"
                if entry.kind in SURFACE and entry.previous != held.get(entry.agent, ""):
                    yield f"{where}: it changes {entry.previous!r}, the log left {held.get(entry.agent, '')!r}"
                if entry.kind is Kind.REMOVED:
                    held.pop(entry.agent, None)
                    urls.pop(entry.agent_url, None)
                elif entry.kind in SURFACE:
                    held[entry.agent] = entry.fingerprint
