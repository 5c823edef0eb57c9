"""A model of what happens around a near cache: agents whose state takes revisions, answers that are made at one instant and
arrive at another, perhaps by a replica that lags, and a stream that delivers its frames in order, breaks, and resumes with or
without a gap. After each step, what must hold is checked.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from cardkeeper_client.near_cache import NearCache
from cardkeeper_client.need import Need
from cardkeeper_client.resolution import Resolution
from client_values import resolution

AGENTS = ("agents/a", "agents/b", "agents/c")
SKILLS = ("s", "t")
SILENCE, LIFETIME = 12.0, 30.0
PAUSES = (1.0, 5.0, 13.0, 31.0)

Step = tuple[str, int, int]
"""What happens, to which agent, and a number that picks among what is possible."""

STEPS = (
    *["call"] * 15,
    *["ask", "make", "arrive"] * 7,
    *["return", "open", "claim", "frame"] * 6,
    *["change"] * 6,
    *["pass", "doubt", "vouch", "fail", "break"] * 2,
    *["gap", "overflow", "replace"],
)
"""As often as each is wanted: what destroys is rare, or nothing would ever be held."""


@dataclass
class OnItsWay:
    """A question, and its answer once the service made one."""

    ticket: int
    need: Need
    answer: Resolution | None = None


class World:
    """Takes steps; one that is not possible changes nothing."""

    def __init__(self, *, limit: int, revisions: int, replicas_lag: bool) -> None:
        self.limit, self.revisions = limit, revisions
        # Whose revision was forgotten for want of room may lag unnoticed: that is what the bound costs.
        self.replicas_lag = replicas_lag and revisions >= len(AGENTS)
        self.cache = NearCache(limit, revisions=revisions)
        self.now, self.heard = 0.0, float("-inf")
        self.happened: Counter[str] = Counter()
        """What the near cache was put to."""
        self.under_way: list[OnItsWay] = []
        self.epoch = 0
        self.reached: tuple[int, int] | None = None
        self.frames: list[tuple[str, int]] | None = None
        """Undelivered frames of the open stream; None: none is open."""
        self.synced = False
        self.filling = False
        """Between a Resync on a live stream and its Synced: what changes need not be told, for nothing is held."""
        self.shown: dict[str, int] = {}
        """Newest state of each agent that the client was shown since there last was a gap."""
        self._new_log()

    def take(self, steps: Sequence[Step]) -> None:
        """Take steps, and check after each."""
        for name, agent, number in steps:
            getattr(self, f"_{name}")(AGENTS[agent % len(AGENTS)], number)
            self.check()

    def check(self) -> None:
        """What must hold, whatever happened."""
        silent = self.now >= self.heard + SILENCE
        assert self.cache.in_sync == self.synced
        assert self.cache.trusts(self.now) == (self.synced and not silent)
        assert self.synced or not self.cache.answers
        for need, kept in self.cache.answers.items():
            held = kept.resolution
            assert self.cache.find(need, self.now) is (None if silent or self.now >= kept.until else held)
            assert not held.stale
            assert (held.agent, held.skill_id, held.epoch) == (need.agent, need.skill_id, str(self.epoch))
            assert held.sequence >= self.shown.get(held.agent, 0), "shown to be outdated"
            if self.frames == [] and not self.replicas_lag:
                assert held.sequence == self.states[held.agent][-1], "not the truth, although all is told"
        parked = self.cache._parked
        assert len(self.cache.answers) + len(parked) <= self.limit
        assert len(self.cache._least) <= self.revisions
        held_needs = set(self.cache.answers) | set(parked)
        assert {need for needs in self.cache._by_agent.values() for need in needs} == held_needs

    # The service

    def _new_log(self) -> None:
        self.epoch += 1
        self.head = len(AGENTS)
        self.states = {agent: [number + 1] for number, agent in enumerate(AGENTS)}
        """All revisions of each agent in this epoch; the last is the one of now."""
        self.suspect: set[str] = set()
        """Agents whose state of now the service does not vouch for."""

    def _change(self, agent: str, _: int) -> None:
        self.head += 1
        self.states[agent].append(self.head)
        self.suspect.discard(agent)
        if self.frames is not None and not self.filling:
            self.frames.append((agent, self.head))

    def _replace(self, agent: str, number: int) -> None:
        """The log is lost, and with it the stream and what was asked for."""
        self._break(agent, number)
        self._new_log()
        self.shown = {}

    # The stream

    def _open(self, _: str, number: int) -> None:
        if self.frames is not None:
            return
        self.frames = []
        if self.reached is None:
            return  # a first connection: there is nothing that the client could have missed
        epoch, since = self.reached
        if number == 0 or epoch != self.epoch:
            self.cache.resync()
            self.shown = {}
            return
        missed = sorted((states[-1], agent) for agent, states in self.states.items() if states[-1] > since)
        self.frames = [(agent, sequence) for sequence, agent in missed]
        self.happened["resumed"] += 1

    def _frame(self, _: str, __: int) -> None:
        if not self.frames:
            return
        agent, sequence = self.frames.pop(0)
        held = len(self.cache.answers) + len(self.cache._parked)
        self._hear()
        self.cache.invalidate(agent, sequence)
        self._show(agent, sequence)
        if len(self.cache.answers) + len(self.cache._parked) < held:
            self.happened["invalidated" if self.synced else "invalidated while parked"] += 1

    def _claim(self, _: str, __: int) -> None:
        """Synced, or a bookmark: everything is told."""
        if self.frames != []:
            return
        if not self.synced and self.cache._parked and self.reached is not None and self.reached[0] == self.epoch:
            self.happened["brought back"] += 1
        if self.reached is None or self.reached[0] != self.epoch:
            self.shown = {}  # that revisions are of this epoch is known from its first claim on
        self._hear()
        self.cache.synced(str(self.epoch))
        self.synced, self.filling = True, False
        self.reached = (self.epoch, self.head)

    def _return(self, agent: str, number: int) -> None:
        """What mostly happens: the stream opens, tells everything, and says so."""
        self._open(agent, number)
        while self.frames:
            self._frame(agent, number)
            self.check()
        self._claim(agent, number)

    def _break(self, _: str, __: int) -> None:
        self.cache.lose()
        self.frames = None
        self.synced = self.filling = False

    def _gap(self, agent: str, _: int) -> None:
        """The stream breaks, and history does not reach back when it returns."""
        self._break(agent, 0)
        self._open(agent, 0)

    def _overflow(self, _: str, __: int) -> None:
        if not self.synced:
            return
        self._hear()
        self.cache.resync()
        self.synced, self.filling = False, True
        self.frames = []
        self.shown = {}

    def _vouch(self, agent: str, _: int) -> None:
        """The service cannot vouch for an agent: that is a state of its own, which the stream tells as it is now."""
        if not self.synced:
            return
        self._hear()
        newest = self.states[agent][-1]
        self.suspect.add(agent)
        self.frames = [(told, sequence) for told, sequence in self.frames or () if told != agent]
        self.cache.distrust(agent, newest)
        self._show(agent, newest + 1)

    # The caller

    def _doubt(self, agent: str, _: int) -> None:
        self.cache.doubt(agent, self.states[agent][-1])
        assert not [need for need in self.cache.answers if need.agent == agent]

    def _pass(self, _: str, number: int) -> None:
        self.now += PAUSES[number % len(PAUSES)]

    def _ask(self, agent: str, number: int) -> None:
        if len(self.under_way) < 6:
            self.under_way.append(OnItsWay(self.cache.ask(), Need(agent, SKILLS[number % len(SKILLS)])))

    def _make(self, _: str, number: int) -> None:
        unanswered = [item for item in self.under_way if item.answer is None]
        if unanswered:
            item = unanswered[number % len(unanswered)]
            item.answer = self._answer(item.need, number)

    def _arrive(self, _: str, number: int) -> None:
        answered = [item for item in self.under_way if item.answer is not None]
        if answered:
            item = answered[number % len(answered)]
            self.under_way.remove(item)
            assert item.answer is not None
            self._keep(item.ticket, item.need, item.answer)

    def _call(self, agent: str, number: int) -> None:
        """What mostly happens: nothing comes between a question and its answer."""
        need = Need(agent, SKILLS[number % len(SKILLS)])
        self._keep(self.cache.ask(), need, self._answer(need, number // 2))

    def _answer(self, need: Need, number: int) -> Resolution:
        states = self.states[need.agent]
        behind = min(number, len(states) - 1) if self.replicas_lag else 0
        stale = number == 7 or need.agent in self.suspect
        return resolution(need.agent, need.skill_id, str(self.epoch), states[-1 - behind], stale=stale)

    def _keep(self, ticket: int, need: Need, answer: Resolution) -> None:
        outdated = answer.sequence < self.shown.get(need.agent, 0)
        kept = self.cache.keep(ticket, need, answer, self.now + LIFETIME)
        self.happened["kept" if kept else "overtaken" if outdated else "refused"] += 1
        if kept:
            assert self.cache.answers[need].resolution is answer
            self._show(answer.agent, answer.sequence)

    def _fail(self, _: str, number: int) -> None:
        if self.under_way:
            self.under_way.pop(number % len(self.under_way))

    def _hear(self) -> None:
        self.heard = self.now
        self.cache.trust_until(self.now + SILENCE)

    def _show(self, agent: str, sequence: int) -> None:
        self.shown[agent] = max(sequence, self.shown.get(agent, 0))
