"""An ideal service and its clients, as small as the contract allows: it makes traces that must be found faultless."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from trace_history import SURFACE, Entry, Epoch, History, Kind, Point
from trace_record import (
    Bookmarked,
    Closed,
    Draining,
    Ending,
    Filter,
    Gap,
    Holds,
    Invalidated,
    Opened,
    Record,
    Resolved,
    Resynced,
    Revalidated,
    Subscribed,
    Synced,
)

SKILLS = ("a", "b", "c")
TAGS = ("red", "blue")


@dataclass(slots=True)
class IdealClient:
    """A client that applies what it is told."""

    record: Record
    filters: list[Filter]
    reached: Point | None = None
    holdings: dict[str, tuple[str, Point]] = field(default_factory=dict)
    told: dict[tuple[str, str], int] = field(default_factory=dict)
    """Newest state told, by epoch and agent."""
    is_open: bool = False
    pending: dict[str, Entry] = field(default_factory=dict)
    """What waits to be told, merged by agent."""
    doubts: dict[str, Entry] = field(default_factory=dict)
    unread: list[Callable[[], None]] = field(default_factory=list)
    """Frames that were sent; each is applied when it is read."""

    def wants(self, entry: Entry) -> bool:
        return any(item.wants(entry) for item in self.filters)

    def covers(self, entry: Entry) -> bool:
        return any(item.covers(entry.agent, entry.agent_url) for item in self.filters)


class Ideal:
    """Moves a fleet and its clients at random; every choice comes from `chance`."""

    def __init__(self, chance: random.Random, *, agents: int = 4, clients: int = 2, history: int = 12) -> None:
        self._chance = chance
        self._names = [f"agent-{number}" for number in range(agents)]
        self._bound = history
        self.history = History()
        self._log = self._begin()
        self.clients = [IdealClient(Record(f"client-{number}"), self._filters()) for number in range(clients)]

    @property
    def _acts(self) -> tuple[Callable[[IdealClient], None], ...]:
        return self._flush, self._read, self._toggle, self._resolve

    @property
    def records(self) -> list[Record]:
        return [client.record for client in self.clients]

    def run(self, steps: int) -> None:
        """Do so many things, then bring every client in sync."""
        for _ in range(steps):
            client = self._chance.choice(self.clients)
            actions: tuple[Callable[[], None], ...] = (
                self.commit,
                self.restart,
                *(partial(act, client) for act in self._acts),
            )
            (action,) = self._chance.choices(actions, (10, 0.3, 4, 4, 1.5, 3))
            action()
        for client in self.clients:
            if client.is_open:
                self._close(client)
            self._connect(client)
            self._close(client)

    def commit(self) -> None:
        """Take one revision."""
        agent = self._chance.choice(self._names)
        held = self._log.fingerprint(agent, self._log.head)
        suspect = bool(self._log.suspected_at(agent, self._log.head))
        base = Entry(sequence=self._log.head + 1, kind=Kind.ADDED, agent=agent, agent_url=f"http://{agent}")
        if held is None:
            entry = replace(base, fingerprint=self._fresh(), severity=2, skill_ids=frozenset(SKILLS))
        else:
            kind = self._chance.choice(
                (Kind.CHANGED,) * 5 + (Kind.REMOVED, Kind.CLEARED if suspect else Kind.SUSPECTED)
            )
            entry = replace(base, kind=kind)
            if kind in SURFACE:
                entry = replace(
                    entry,
                    previous=held,
                    fingerprint=self._fresh() if kind is Kind.CHANGED else "",
                    severity=self._chance.randint(1, 3),
                    skill_ids=frozenset(self._chance.sample(SKILLS, self._chance.randint(1, 3))),
                    whole_agent=self._chance.random() < 0.2,
                )
        entry = replace(entry, tags=frozenset(self._chance.sample(TAGS, self._chance.randint(0, 2))))
        self._log.append(entry)
        for client in self.clients:
            if not client.is_open:
                continue
            if entry.kind is Kind.SUSPECTED and client.covers(entry):
                client.doubts[agent] = entry
            elif client.wants(entry):
                earlier = client.pending.pop(agent, None)
                client.pending[agent] = _merged(earlier, entry) if earlier else entry

    def restart(self) -> None:
        """Lose the log."""
        for client in self.clients:
            if client.is_open:
                self._close(client)
        self._log = self._begin()

    def _begin(self) -> Epoch:
        return self.history.epoch(f"epoch-{len(self.history.epochs)}")

    def _fresh(self) -> str:
        """One of a few: agents return to what they were, across epochs too."""
        return f"{self._chance.randint(1, 6):064x}"

    def _filters(self) -> list[Filter]:
        def some(values: tuple[str, ...]) -> frozenset[str]:
            return frozenset(self._chance.sample(values, 1)) if self._chance.random() < 0.3 else frozenset()

        agents = [f"http://{name}" if self._chance.random() < 0.5 else name for name in self._names]
        return [
            Filter(
                id=number,
                agents=frozenset(self._chance.sample(agents, 2)) if self._chance.random() < 0.3 else frozenset(),
                min_severity=self._chance.choice((0, 0, 0, 2, 3)),
                skill_ids=some(SKILLS),
                tags=some(TAGS),
            )
            for number in range(1, self._chance.randint(1, 2) + 1)
        ]

    def _toggle(self, client: IdealClient) -> None:
        if client.is_open:
            self._close(client)
        else:
            self._connect(client)

    def _close(self, client: IdealClient) -> None:
        if self._chance.random() < 0.3:
            client.record.steps.append(Draining(Point(self._log.id, client.reached.sequence if client.reached else 0)))
        client.record.steps.append(Closed(self._chance.choice((Ending.CLIENT, Ending.SERVER))))
        client.is_open = False
        client.pending.clear()
        client.doubts.clear()
        client.unread.clear()

    def _connect(self, client: IdealClient) -> None:
        client.is_open = True
        start = client.reached
        steps = client.record.steps
        steps.append(Opened())
        held = {agent: fingerprint for agent, (fingerprint, _) in client.holdings.items()}
        steps.extend(Subscribed(filter=item, resume_from=start, held=held) for item in client.filters)
        told = 0
        for item in client.filters:
            told = self._difference(client, item, start, told)

    def _difference(self, client: IdealClient, item: Filter, start: Point | None, told: int) -> int:
        log, head = self._log, self._log.head
        gap = None
        if start is not None and start.epoch != log.id:
            gap = Gap.EPOCH_CHANGED
        elif start is not None and start.sequence < head - self._bound:
            gap = Gap.COMPACTED
        if gap is not None:
            client.record.steps.append(Resynced(Point(log.id, told), item.id, gap))
        news: dict[str, Entry] = {}
        if start is not None and gap is None:
            for entry in filter(item.wants, log.between(start.sequence, head)):
                earlier = news.pop(entry.agent, None)
                news[entry.agent] = _merged(earlier, entry) if earlier else entry
        elif start is not None:
            for agent, (fingerprint, _) in client.holdings.items():
                if gap is Gap.EPOCH_CHANGED and log.fingerprint(agent, head) == fingerprint:
                    continue  # all that compares across epochs
                # Of one that is gone, nobody may know the URL any more.
                if item.covers(*log.covered(agent)) or log.fingerprint(agent, head) is None:
                    news[agent] = self._now(agent)
        doubts = [
            entry
            for agent, url in log.agents(head).items()
            if item.covers(agent, url) and (since := log.suspected_at(agent, head))
            for entry in log.between(since - 1, since)
        ]
        for entry in sorted([*news.values(), *doubts], key=lambda entry: entry.sequence):
            told = max(told, entry.sequence)
            self._tell(client, entry, told)
        count = sum(item.covers(agent, url) for agent, url in log.agents(head).items())
        client.record.steps.append(Synced(Point(log.id, head), item.id, count))
        if item is client.filters[-1]:
            client.reached = Point(log.id, head)
            self._say_holdings(client)
        return head

    def _now(self, agent: str) -> Entry:
        """An agent as it is now, for one that may hold anything."""
        log = self._log
        fingerprint = log.fingerprint(agent, log.head)
        known = list(log.of_agent(agent, 0, log.head))
        sequence = known[-1].sequence if known else log.head
        kind = Kind.REMOVED if fingerprint is None else Kind.CHANGED
        return Entry(sequence=sequence, kind=kind, agent=agent, fingerprint=fingerprint or "", severity=3)

    def _flush(self, client: IdealClient) -> None:
        if not client.is_open:
            return
        waiting = sorted([*client.pending.values(), *client.doubts.values()], key=lambda entry: entry.sequence)
        client.pending, client.doubts = {}, {}
        client.unread += (partial(self._live, client, entry) for entry in waiting)
        if self._chance.random() < 0.5:
            client.unread.append(partial(self._bookmark, client, Point(self._log.id, self._log.head)))

    def _read(self, client: IdealClient) -> None:
        count = self._chance.randint(0, len(client.unread))
        frames, client.unread = client.unread[:count], client.unread[count:]
        for apply in frames:
            apply()

    def _live(self, client: IdealClient, entry: Entry) -> None:
        self._tell(client, entry, entry.sequence)
        client.reached = Point(self._log.id, entry.sequence)

    def _bookmark(self, client: IdealClient, at: Point) -> None:
        client.reached = at
        client.record.steps.append(Bookmarked(at))
        self._say_holdings(client)

    def _tell(self, client: IdealClient, entry: Entry, frame: int) -> None:
        at, agent_at = Point(self._log.id, frame), Point(self._log.id, entry.sequence)
        if entry.kind is Kind.SUSPECTED:
            client.record.steps.append(Revalidated(at, entry.agent, agent_at))
            return
        removed = entry.kind is Kind.REMOVED
        client.record.steps.append(
            Invalidated(
                at=at,
                agent=entry.agent,
                agent_at=agent_at,
                removed=removed,
                fingerprint="" if removed else entry.fingerprint,
                severity=entry.severity,
                skill_ids=entry.skill_ids,
            )
        )
        if entry.sequence < client.told.get((self._log.id, entry.agent), 0):
            return  # another subscription's difference may tell an older state than what is known
        client.told[self._log.id, entry.agent] = entry.sequence
        held = client.holdings.get(entry.agent)
        if held is None or (held[1].epoch == agent_at.epoch and held[1].sequence > agent_at.sequence):
            return  # an answer was quicker than the stream
        if removed:
            del client.holdings[entry.agent]
        else:
            client.holdings[entry.agent] = (entry.fingerprint, agent_at)

    def _resolve(self, client: IdealClient) -> None:
        agent = self._chance.choice(self._names)
        head = self._log.head
        fingerprint = self._log.fingerprint(agent, head)
        if fingerprint is None:
            return
        at = max(entry.sequence for entry in self._log.of_agent(agent, 0, head))
        client.record.steps.append(
            Resolved(agent=agent, fingerprint=fingerprint, at=Point(self._log.id, at), kept=client.is_open)
        )
        if client.is_open:
            client.holdings[agent] = (fingerprint, Point(self._log.id, at))

    def _say_holdings(self, client: IdealClient) -> None:
        held = {agent: fingerprint for agent, (fingerprint, _) in client.holdings.items()}
        client.record.steps.append(Holds(held))


def _merged(earlier: Entry, later: Entry) -> Entry:
    return replace(
        later,
        severity=max(earlier.severity, later.severity),
        skill_ids=earlier.skill_ids | later.skill_ids,
        tags=earlier.tags | later.tags,
    )
