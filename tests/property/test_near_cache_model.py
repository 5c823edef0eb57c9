"""The near cache against a model: whatever the order of calls, answers and frames, it never answers with what the stream, or
an answer, has already shown to be outdated, and answers nothing while the stream is not in sync.

The model is the service: agents whose state takes revisions, answers that are made at one instant and arrive at another,
perhaps by a replica that lags, and a stream that delivers its frames in order, breaks, and resumes with or without a gap.
"""

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cardkeeper_client.near_cache import NearCache
from cardkeeper_client.need import Need
from cardkeeper_client.resolution import Resolution
from client_values import resolution

AGENTS = ("agents/a", "agents/b", "agents/c")
SKILLS = ("s", "t")
SILENCE, LIFETIME = 12.0, 30.0


@dataclass
class OnItsWay:
    """A question, and its answer once the service made one."""

    ticket: int
    need: Need
    answer: Resolution | None = None


class NearCacheMachine(RuleBasedStateMachine):
    """Rules are what may happen next in a client, its stream, and its service."""

    @initialize(limit=st.sampled_from([1, 2, 4, 100]), replicas_lag=st.booleans())
    def start(self, limit: int, replicas_lag: bool) -> None:
        self.limit, self.replicas_lag = limit, replicas_lag
        self.cache = NearCache(limit)
        self.now = 0.0
        self.heard = float("-inf")
        self.epoch = 1
        self.head = 3
        self.states = {agent: [number + 1] for number, agent in enumerate(AGENTS)}
        """All revisions of each agent in this epoch; the last is the one of now."""
        self.frames: list[tuple[str, int]] | None = None
        """Undelivered frames of the open stream; None: none is open."""
        self.synced = False
        self.reached: tuple[int, int] | None = None
        self.shown: dict[str, int] = {}
        """Newest state of each agent that the client was shown in this epoch, since there last was a gap."""
        self.under_way: list[OnItsWay] = []

    # The service

    @rule(agent=st.sampled_from(AGENTS))
    def an_agent_changes(self, agent: str) -> None:
        self.head += 1
        self.states[agent].append(self.head)
        if self.frames is not None:
            self.frames.append((agent, self.head))

    @rule()
    def the_log_is_replaced(self) -> None:
        self.the_stream_breaks()
        self.epoch += 1
        self.head = 3
        self.states = {agent: [number + 1] for number, agent in enumerate(AGENTS)}
        for item in self.under_way:  # calls end with their service, or its replacement answers them
            if item.answer is None:
                self.cache.ask()
        self.shown = {}

    # The stream

    @precondition(lambda self: self.frames is None)
    @rule(compacted=st.booleans())
    def the_stream_opens(self, compacted: bool) -> None:
        self.frames = []
        if self.reached is None:
            return
        epoch, since = self.reached
        if compacted or epoch != self.epoch:
            self.cache.resync()
            self.shown = {}
            return
        missed = sorted((states[-1], agent) for agent, states in self.states.items() if states[-1] > since)
        self.frames = [(agent, sequence) for sequence, agent in missed]

    @precondition(lambda self: self.frames)
    @rule()
    def a_frame_arrives(self) -> None:
        assert self.frames
        agent, sequence = self.frames.pop(0)
        self._hear()
        self.cache.invalidate(agent, sequence)
        self.shown[agent] = max(sequence, self.shown.get(agent, 0))

    @precondition(lambda self: self.frames == [])
    @rule()
    def everything_is_claimed_to_be_told(self) -> None:
        self._hear()
        self.cache.synced(str(self.epoch))
        self.synced = True
        self.reached = (self.epoch, self.head)

    @rule()
    def the_stream_breaks(self) -> None:
        self.cache.lose()
        self.frames = None
        self.synced = False

    @precondition(lambda self: self.synced)
    @rule()
    def the_server_overflows(self) -> None:
        self._hear()
        self.cache.resync()
        self.synced = False
        self.frames = []
        self.shown = {}

    @precondition(lambda self: self.synced)
    @rule(agent=st.sampled_from(AGENTS))
    def the_service_cannot_vouch(self, agent: str) -> None:
        """Suspicion is a state of its own: what the stream says of it concerns the revision that it has then."""
        self._hear()
        newest = self.states[agent][-1]
        self.frames = [(told, sequence) for told, sequence in self.frames or () if told != agent]
        self.cache.distrust(agent, newest)
        self.shown[agent] = newest + 1
        assert not [need for need, kept in self.cache.answers.items() if kept.resolution.agent == agent]

    @rule(agent=st.sampled_from(AGENTS))
    def a_judgement_speaks_against_an_agent(self, agent: str) -> None:
        self.cache.doubt(agent, self.states[agent][-1])
        assert not [need for need, kept in self.cache.answers.items() if kept.resolution.agent == agent]

    @rule(seconds=st.sampled_from([1.0, 11.0, 13.0, 31.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    # Calls

    @precondition(lambda self: len(self.under_way) < 6)
    @rule(agent=st.sampled_from(AGENTS), skill=st.sampled_from(SKILLS))
    def a_question_goes_out(self, agent: str, skill: str) -> None:
        self.under_way.append(OnItsWay(self.cache.ask(), Need(agent, skill)))

    @precondition(lambda self: any(item.answer is None for item in self.under_way))
    @rule(data=st.data(), lag=st.integers(0, 2), stale=st.booleans())
    def the_service_answers(self, data: st.DataObject, lag: int, stale: bool) -> None:
        item = data.draw(st.sampled_from([item for item in self.under_way if item.answer is None]))
        states = self.states[item.need.agent]
        sequence = states[-1 - min(lag, len(states) - 1)] if self.replicas_lag else states[-1]
        item.answer = resolution(item.need.agent, item.need.skill_id, str(self.epoch), sequence, stale=stale)

    @precondition(lambda self: any(item.answer is not None for item in self.under_way))
    @rule(data=st.data())
    def an_answer_arrives(self, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from([item for item in self.under_way if item.answer is not None]))
        self.under_way.remove(item)
        assert item.answer is not None
        if self.cache.keep(item.ticket, item.need, item.answer, self.now + LIFETIME):
            assert not item.answer.stale
            assert self.cache.answers[item.need].resolution is item.answer
            agent = item.answer.agent
            self.shown[agent] = max(item.answer.sequence, self.shown.get(agent, 0))

    # What must hold

    @invariant()
    def nothing_is_answered_out_of_sync_or_in_silence_or_past_its_time(self) -> None:
        assert self.synced or not self.cache.answers
        assert self.cache.in_sync == self.synced
        silent = self.now >= self.heard + SILENCE
        assert self.cache.trusts(self.now) == (self.synced and not silent)
        for need, kept in self.cache.answers.items():
            found = self.cache.find(need, self.now)
            assert found is (None if silent or self.now >= kept.until else kept.resolution)

    @invariant()
    def nothing_is_answered_that_was_shown_to_be_outdated(self) -> None:
        for need, kept in self.cache.answers.items():
            held = kept.resolution
            assert held.epoch == str(self.epoch)
            assert held.sequence >= self.shown.get(held.agent, 0), (need, held.sequence, self.shown)

    @invariant()
    def with_every_frame_delivered_only_the_truth_is_answered(self) -> None:
        if self.frames == [] and not self.replicas_lag:
            for kept in self.cache.answers.values():
                assert kept.resolution.sequence == self.states[kept.resolution.agent][-1]

    @invariant()
    def it_is_bounded(self) -> None:
        held = set(self.cache.answers) | set(self.cache._parked)
        assert len(self.cache.answers) + len(self.cache._parked) <= self.limit
        assert {need for needs in self.cache._by_agent.values() for need in needs} == held
        assert len(self.cache._least) <= self.limit

    def _hear(self) -> None:
        self.heard = self.now
        self.cache.trust_until(self.now + SILENCE)


TestNearCache = NearCacheMachine.TestCase
TestNearCache.settings = settings(max_examples=300, stateful_step_count=50, deadline=None)
