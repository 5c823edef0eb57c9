"""Judges what clients saw by what really happened. Pure: a history and records in, violations out.

The only claims of completeness on a stream are Synced and Bookmark; they are where the validator settles accounts. Between
two of them a slow client may be told of an agent's newest state only, so a revision that was not told by itself is no
loss as long as a newer one of the same agent was told before the next claim.
"""

from collections.abc import Iterator, Sequence

from trace_fault import Fault, Violation
from trace_history import SURFACE, Entry, Epoch, History, Kind, Point
from trace_record import (
    Bookmarked,
    Closed,
    Ending,
    Filter,
    Forgot,
    Frame,
    Gap,
    Holds,
    Invalidated,
    Opened,
    Record,
    Resolved,
    Resynced,
    Revalidated,
    Step,
    Subscribed,
    Synced,
    Unsubscribed,
)
from trace_stream import Holding, Stream, Subscription

MOST_SKILLS = 256
"""Skills that an invalidation names at most."""


def judge(history: History, records: Sequence[Record]) -> list[Violation]:
    """Return every violation: first the log's own, then each client's in its order."""
    found = [Violation(Fault.LOG, "log", 0, detail) for detail in history.faults()]
    for record in records:
        found += _Replay(history, record).violations()
    return found


class _Replay:
    """Walks one record."""

    def __init__(self, history: History, record: Record) -> None:
        self._history = history
        self._record = record
        self._found: list[Violation] = []
        self._index = 0
        self._stream: Stream | None = None
        self._holdings: dict[str, Holding] = {}
        self._told: dict[tuple[str, str], int] = {}
        """Newest state ever told, by epoch and agent: an older resolution is not taken for true."""
        self._reached: dict[str, int] = {}
        """Highest revision ever seen, by epoch."""

    def violations(self) -> list[Violation]:
        for index, step in enumerate(self._record.steps):
            self._index = index
            match step:
                case Opened():
                    self._stream = Stream()
                case Closed():
                    self._closed(step)
                case Subscribed():
                    self._subscribed(step)
                case Unsubscribed():
                    self._set_aside(self._open(), step.id)
                case Forgot():
                    self._holdings.clear()
                case Resolved():
                    self._resolved(step)
                case Holds():
                    self._holds(step)
                case _:
                    self._frame(step)
        return self._found

    def _say(self, fault: Fault, detail: str) -> None:
        self._found.append(Violation(fault, self._record.client, self._index, detail))

    def _open(self) -> Stream:
        if self._stream is None:
            raise ValueError(f"{self._record.client}[{self._index}]: the record has a step outside of a stream")
        return self._stream

    # What the client does

    def _closed(self, step: Closed) -> None:
        stream = self._open()
        if step.ending is Ending.IMPATIENT:
            waiting = sorted(key for key, items in stream.pending.items() if items)
            self._say(Fault.UNANSWERED, f"subscriptions {waiting} have no Synced")
        self._stream = None

    def _subscribed(self, step: Subscribed) -> None:
        stream = self._open()
        self._set_aside(stream, step.filter.id)
        stream.asked += 1
        stream.pending.setdefault(step.filter.id, []).append(
            Subscription(step.filter, step.resume_from, number=stream.asked, asked_at=stream.last, held=step.held)
        )

    def _set_aside(self, stream: Stream, subscription_id: int) -> None:
        replaced = stream.active.pop(subscription_id, None)
        if replaced is not None:
            stream.doubtful.append((stream.asked, replaced))

    def _resolved(self, step: Resolved) -> None:
        log = self._history.epoch(step.at.epoch)
        where = f"{step.agent} resolved at {step.at.sequence}"
        if step.at.sequence > log.head:
            self._say(Fault.UNTRUE, f"{where}, the log ends at {log.head}")
        elif log.fingerprint(step.agent, step.at.sequence) != step.fingerprint:
            self._say(Fault.UNTRUE, f"{where} as {step.fingerprint[:12]}, which the log does not know there")
        if step.floor is not None and step.floor.epoch == step.at.epoch and step.at < step.floor:
            self._say(Fault.STALE_ANSWER, f"{where}, its caller had been told of {step.floor.sequence}")
        held = self._holdings.get(step.agent)
        older = held is not None and held.at.epoch == step.at.epoch and step.at.sequence < held.at.sequence
        if step.kept and not older and step.at.sequence >= self._told.get((step.at.epoch, step.agent), 0):
            self._holdings[step.agent] = Holding(step.fingerprint, step.at)

    def _holds(self, step: Holds) -> None:
        stream = self._open()
        log = self._history.epoch(stream.epoch)
        for agent, fingerprint in step.fingerprints.items():
            covering = [sub.filter for sub in stream.active.values() if _covers(log, sub.filter, agent)]
            if not covering:
                continue
            at = self._known_at(log, agent, stream.last)
            now = log.fingerprint(agent, at)
            if now is None:
                self._say(Fault.MISSING_DELETION, f"{agent} is held at {at}, where it is not kept")
            elif now != fingerprint and not all(item.by_content for item in covering):
                self._say(Fault.STALE_HOLDING, f"{agent} is held as {fingerprint[:12]} at {at}: {now[:12]}")

    def _known_at(self, log: Epoch, agent: str, claimed: int) -> int:
        """The revision that a holding has to be true at: a slow reader may have resolved beyond what it read."""
        held = self._holdings.get(agent)
        return max(claimed, held.at.sequence) if held is not None and held.at.epoch == log.id else claimed

    # What the server sends

    def _frame(self, frame: Frame) -> None:
        stream = self._open()
        log = self._history.epoch(frame.at.epoch)
        if stream.epoch and frame.at.epoch != stream.epoch:
            self._say(Fault.WRONG_EPOCH, f"{frame.at.epoch} on a stream of {stream.epoch}")
            return
        stream.epoch = frame.at.epoch
        if frame.at.sequence < stream.last:
            self._say(Fault.BACKWARD, f"{frame.at.sequence} after {stream.last}")
        if frame.at.sequence > log.head:
            self._say(Fault.UNTRUE, f"a frame of revision {frame.at.sequence}, the log ends at {log.head}")
        stream.last = max(stream.last, frame.at.sequence)
        match frame:
            case Invalidated():
                self._invalidated(stream, log, frame)
            case Revalidated():
                self._revalidated(stream, log, frame)
            case Synced():
                self._synced(stream, log, frame)
            case Bookmarked():
                if not stream.has_synced:
                    self._say(Fault.DISHONEST, f"a bookmark at {frame.at.sequence} before any Synced")
                self._settle(stream, log, list(stream.active.values()), frame.at.sequence)
                self._check_holdings(stream, log, frame.at.sequence)
            case Resynced():
                self._resynced(stream, frame)
            case _:
                pass
        self._reached[stream.epoch] = max(self._reached.get(stream.epoch, 0), stream.last)

    def _invalidated(self, stream: Stream, log: Epoch, frame: Invalidated) -> None:
        agent, at = frame.agent, frame.agent_at.sequence
        where = f"{agent} at {at}"
        if frame.agent_at.epoch != frame.at.epoch:
            self._say(Fault.WRONG_EPOCH, f"{where}: its state is of {frame.agent_at.epoch}")
            return
        now = log.fingerprint(agent, at)
        if frame.removed != (now is None) or (not frame.removed and now != frame.fingerprint) or at > log.head:
            said = "removed" if frame.removed else frame.fingerprint[:12]
            self._say(Fault.UNTRUE, f"{where} is told as {said}, the log has {now if now is None else now[:12]}")
        waiting = [item for items in stream.pending.values() for item in items]
        before = stream.told.get(agent, 0)
        if waiting:  # a difference may tell again what another subscription told
            for item in waiting:
                item.frames += 1
                if item.frames > _bound(log, item, frame.at):
                    self._say(Fault.UNBOUNDED, f"{item.frames} frames and no Synced({item.filter.id})")
                    item.frames = 0
            listed = any(agent in item.held for item in waiting)
            if not listed and not any(_covers(log, item, agent) for item in stream.filters()):
                self._say(Fault.UNWANTED, where)
        else:
            if at == before:
                self._say(Fault.DUPLICATED, where)
            elif at < before:
                self._say(Fault.REORDERED, f"{where} after {before}")
            else:
                self._check_live(stream, log, frame)
        if frame.at.sequence < at:
            self._say(Fault.UNTRUE, f"{where} in a frame of {frame.at.sequence}")
        stream.told[agent] = max(before, at)
        self._learn(frame)

    def _check_live(self, stream: Stream, log: Epoch, frame: Invalidated) -> None:
        agent, at = frame.agent, frame.agent_at.sequence
        if frame.at.sequence != at:
            self._say(Fault.UNTRUE, f"{agent} at {at} in a live frame of {frame.at.sequence}")
        since = max(stream.told.get(agent, 0), max((sub.settled or 0 for sub in stream.active.values()), default=0))
        merged = [
            entry for entry in log.of_agent(agent, since, at) if any(item.wants(entry) for item in stream.filters())
        ]
        if not merged or merged[-1].sequence != at:
            self._say(Fault.UNWANTED, f"{agent} at {at}, severity {frame.severity}")
            return
        sure = [entry for entry in merged if any(sub.filter.wants(entry) for sub in stream.active.values())]
        if not frame.removed and frame.severity < max((entry.severity for entry in sure), default=0):
            self._say(Fault.POOR_HINT, f"{agent} at {at} has severity {frame.severity}, less than what it merged")
        skills = frozenset[str]().union(*(entry.skill_ids for entry in sure))
        if frame.skill_ids and not skills <= frame.skill_ids and len(skills) <= MOST_SKILLS:
            self._say(Fault.POOR_HINT, f"{agent} at {at} does not name {sorted(skills - frame.skill_ids)}")

    def _learn(self, frame: Invalidated) -> None:
        """What the client holds after it applied the frame: never older than what it held."""
        key = (frame.agent_at.epoch, frame.agent)
        self._told[key] = max(self._told.get(key, 0), frame.agent_at.sequence)
        held = self._holdings.get(frame.agent)
        if held is None or (held.at.epoch == frame.agent_at.epoch and held.at.sequence > frame.agent_at.sequence):
            return
        if frame.removed:
            del self._holdings[frame.agent]
        else:
            self._holdings[frame.agent] = Holding(frame.fingerprint, frame.agent_at)

    def _revalidated(self, stream: Stream, log: Epoch, frame: Revalidated) -> None:
        agent, at = frame.agent, frame.agent_at.sequence
        suspected = log.suspected_at(agent, at)
        if suspected != at:
            self._say(Fault.UNTRUE, f"{agent} is told as suspect since {at}, the log does not say so")
        if not any(_covers(log, item, agent) for item in stream.filters()):
            self._say(Fault.UNWANTED, f"{agent} suspect since {at}")
        before = stream.doubted.get(agent, 0)
        if not any(stream.pending.values()) and at <= before:
            self._say(Fault.DUPLICATED if at == before else Fault.REORDERED, f"{agent} suspect since {at}")
        stream.doubted[agent] = max(before, at)

    def _synced(self, stream: Stream, log: Epoch, frame: Synced) -> None:
        waiting = stream.pending.get(frame.id)
        if not waiting:
            fault = Fault.DUPLICATED if frame.id in stream.active else Fault.UNWANTED
            self._say(fault, f"Synced({frame.id}) that no Subscribe waits for")
            return
        stream.has_synced = True
        sub = waiting.pop(0)
        at = frame.at.sequence
        reached = self._reached.get(frame.at.epoch, 0)
        if at < reached:
            self._say(Fault.BACKWARD, f"Synced at {at}, this client had reached {reached}")
        elif sub.resume_from is not None and sub.resume_from.epoch == frame.at.epoch and at < sub.resume_from.sequence:
            self._say(Fault.BACKWARD, f"Synced at {at} for a client that resumes from {sub.resume_from.sequence}")
        count = sum(sub.filter.covers(agent, url) for agent, url in log.agents(at).items())
        if count != frame.agent_count:
            self._say(Fault.DISHONEST, f"Synced at {at} counts {frame.agent_count} agents, the log {count}")
        resumed = sub.resume_from
        if resumed is not None and resumed.epoch != frame.at.epoch and sub.resync is not Gap.EPOCH_CHANGED:
            self._say(Fault.UNDISCLOSED_GAP, f"resumed in {resumed.epoch}, synced in {frame.at.epoch}, no Resync")
        in_log = resumed is not None and resumed.epoch == frame.at.epoch and sub.resync is None
        sub.settled = resumed.sequence if resumed is not None and in_log else at
        if waiting:  # the client has replaced it meanwhile
            stream.doubtful.append((sub.number, sub))
        else:
            stream.active[frame.id] = sub
        self._rebase(log, sub, at)
        # Steps are taken in their order: what was set aside before this Subscribe was sent is gone.
        stream.doubtful = [(number, old) for number, old in stream.doubtful if number >= sub.number]
        self._settle(stream, log, [sub], at, resumed=in_log)
        self._settle(stream, log, [item for item in stream.active.values() if item is not sub], at)
        self._check_holdings(stream, log, at)

    def _resynced(self, stream: Stream, frame: Resynced) -> None:
        waiting = stream.pending.get(frame.id)
        if not waiting:
            self._say(Fault.UNWANTED, f"Resync({frame.id}) that no Subscribe waits for")
            return
        waiting[0].resync = frame.reason
        resumed = waiting[0].resume_from
        if frame.reason is Gap.EPOCH_CHANGED and (resumed is None or resumed.epoch == frame.at.epoch):
            self._say(Fault.WRONG_EPOCH, f"Resync says that the epoch changed, the client comes from {resumed}")

        for agent in [agent for agent in self._holdings if agent not in waiting[0].held]:
            del self._holdings[agent]

    # Settling accounts at a claim

    def _rebase(self, log: Epoch, sub: Subscription, at: int) -> None:
        """Take a difference that was made without history for what it is: a comparison of skill fingerprints.

        What a filter by content lets pass of it cannot be told from the log, which knows single changes: there, only
        removals are judged.
        """
        if sub.resume_from is not None and sub.resync is None:
            return
        for agent, held in self._holdings.items():
            now = log.fingerprint(agent, at)
            if now is None or not _covers(log, sub.filter, agent):
                continue
            by_fingerprint = sub.resume_from is None or sub.resync is Gap.EPOCH_CHANGED
            if sub.filter.by_content or (by_fingerprint and now == held.fingerprint):
                self._holdings[agent] = Holding(held.fingerprint, Point(log.id, self._known_at(log, agent, at)))

    def _settle(
        self, stream: Stream, log: Epoch, subs: Sequence[Subscription], at: int, *, resumed: bool = False
    ) -> None:
        for sub in subs:
            for entry in log.between(sub.settled or 0, at):
                if sub.filter.wants(entry) and stream.told.get(entry.agent, 0) < entry.sequence:
                    self._say(self._loss(stream, entry, resumed=resumed), f"{_name(entry)}, claimed at {at}")
            sub.settled = at
            for agent, url in log.agents(at).items():
                since = log.suspected_at(agent, at)
                if since > stream.doubted.get(agent, 0) and sub.filter.covers(agent, url):
                    self._say(Fault.LOST, f"{agent} is suspect since {since}, claimed at {at}")

    def _loss(self, stream: Stream, entry: Entry, *, resumed: bool) -> Fault:
        for step in self._rest_of_stream():
            if isinstance(step, Invalidated) and step.agent == entry.agent and step.agent_at.sequence >= entry.sequence:
                return Fault.DISHONEST
        if entry.kind is Kind.REMOVED:
            return Fault.MISSING_DELETION
        return Fault.UNDISCLOSED_GAP if resumed else Fault.LOST

    def _rest_of_stream(self) -> Iterator[Step]:
        for step in self._record.steps[self._index + 1 :]:
            if isinstance(step, Opened | Closed):
                return
            yield step

    def _check_holdings(self, stream: Stream, log: Epoch, at: int) -> None:
        if any(stream.pending.values()):
            return  # what was superseded by a frame of one subscription may come with the difference of another
        for agent, held in list(self._holdings.items()):
            covering = [sub.filter for sub in stream.active.values() if _covers(log, sub.filter, agent)]
            if not covering:
                continue
            now = log.fingerprint(agent, self._known_at(log, agent, at))
            if now is None:
                self._say(Fault.MISSING_DELETION, f"{agent} is held after {at}, where it is not kept")
                del self._holdings[agent]
            elif held.at.epoch != log.id:
                # Its own revision says nothing here; what was compared is the fingerprint.
                if now != held.fingerprint and not all(item.by_content for item in covering):
                    self._say(Fault.STALE_HOLDING, f"{agent} is held from {held.at.epoch}; at {at} it has another card")
                self._holdings[agent] = Holding(held.fingerprint, Point(log.id, at))
            else:
                self._check_holding(log, agent, held, covering, at)

    def _check_holding(self, log: Epoch, agent: str, held: Holding, covering: list[Filter], at: int) -> None:
        missed = [
            entry
            for entry in log.of_agent(agent, held.at.sequence, at)
            if entry.kind in SURFACE and any(item.wants(entry) for item in covering)
        ]
        if missed:
            self._say(Fault.STALE_HOLDING, f"{agent} is held as of {held.at.sequence}, missed {_name(missed[-1])}")
            self._holdings[agent] = Holding(log.fingerprint(agent, at) or "", Point(log.id, at))


def _covers(log: Epoch, wanted: Filter, agent: str) -> bool:
    """Whether a filter is about an agent, by its id or by the URL that the log knows for it."""
    return wanted.covers(*log.covered(agent))


def _bound(log: Epoch, sub: Subscription, at: Point) -> int:
    """Frames that a difference and what happens meanwhile can need at most."""
    start = sub.resume_from.sequence if sub.resume_from is not None and sub.resume_from.epoch == log.id else 0
    return 2 * (log.ever_kept + len(sub.held)) + max(at.sequence - max(start, sub.asked_at), 0)


def _name(entry: Entry) -> str:
    return f"{entry.kind} {entry.agent} at {entry.sequence}"
