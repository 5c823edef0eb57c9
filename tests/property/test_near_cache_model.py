"""The near cache against a model: whatever the order of calls, answers and frames, it never answers with what the stream has
already invalidated, and answers nothing while the stream is not in sync.

The model is the service: agents whose state takes revisions, answers that are made at one instant and arrive at another, and
a stream that delivers its frames in order, breaks, and resumes with or without a gap.
"""

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cardkeeper_client.near_cache import NearCache, Ticket
from cardkeeper_client.need import Need
from cardkeeper_client.resolution import Resolution

AGENTS = ("agents/a", "agents/b", "agents/c")
SKILLS = ("s", "t")


def resolution(agent: str, skill: str, epoch: str, sequence: int) -> Resolution:
    return Resolution(
        agent=agent,
        agent_url=f"http://{agent[-1]}.example",
        endpoint_url="",
        protocol_binding="",
        protocol_version="",
        tenant="",
        skill_id=skill,
        input_modes=(),
        output_modes=(),
        streaming=False,
        push_notifications=False,
        skill_fingerprint="",
        per_skill_fingerprint="",
        card_digest="",
        card_version="",
        epoch=epoch,
        sequence=sequence,
        expires_at=0.0,
        stale=False,
    )


@dataclass
class OnItsWay:
    """A question, and its answer once the service made one."""

    ticket: Ticket
    need: Need
    answer: Resolution | None = None


class NearCacheMachine(RuleBasedStateMachine):
    """Rules are what may happen next in a client, its stream, and its service."""

    @initialize()
    def start(self) -> None:
        self.cache = NearCache(limit=4)
        self.epoch = 1
        self.head = 0
        self.state = dict.fromkeys(AGENTS, 0)
        self.frames: list[tuple[str, int]] | None = None
        """Undelivered frames of the open stream; None: none is open."""
        self.reached: tuple[int, int] | None = None
        self.delivered = dict.fromkeys(AGENTS, 0)
        """Newest state of each agent that the stream told of, in this epoch."""
        self.synced = False
        self.under_way: list[OnItsWay] = []

    # The service

    @rule(agent=st.sampled_from(AGENTS))
    def an_agent_changes(self, agent: str) -> None:
        self.head += 1
        self.state[agent] = self.head
        if self.frames is not None:
            self.frames.append((agent, self.head))

    @rule()
    def the_log_is_replaced(self) -> None:
        self.the_stream_breaks()
        self.epoch += 1
        self.head = 3
        self.state = {agent: number + 1 for number, agent in enumerate(AGENTS)}

    # The stream

    @precondition(lambda self: self.frames is None)
    @rule(compacted=st.booleans())
    def the_stream_opens(self, compacted: bool) -> None:
        self.frames = []
        same_epoch = self.reached is not None and self.reached[0] == self.epoch
        if self.reached is not None and (compacted or not same_epoch):
            self.cache.resync()
        elif self.reached is not None:
            since = self.reached[1]
            for agent, sequence in sorted(self.state.items(), key=lambda item: item[1]):
                if sequence > since:
                    self.cache.invalidate(agent, sequence)
                    self.delivered[agent] = sequence
        if not same_epoch:
            self.delivered = dict.fromkeys(AGENTS, 0)
        self.cache.synced(str(self.epoch))
        self.synced = True
        self.reached = (self.epoch, self.head)

    @precondition(lambda self: self.frames)
    @rule()
    def a_frame_arrives(self) -> None:
        assert self.frames
        agent, sequence = self.frames.pop(0)
        self.cache.invalidate(agent, sequence)
        self.delivered[agent] = sequence

    @precondition(lambda self: self.frames == [])
    @rule()
    def a_bookmark_arrives(self) -> None:
        self.reached = (self.epoch, self.head)

    @rule()
    def the_stream_breaks(self) -> None:
        self.cache.lose()
        self.frames = None
        self.synced = False

    @precondition(lambda self: self.synced)
    @rule(agent=st.sampled_from(AGENTS))
    def the_service_cannot_vouch(self, agent: str) -> None:
        self.cache.distrust(agent, self.state[agent])
        assert not [need for need, held in self.cache.answers.items() if held.agent == agent]

    # Calls

    @precondition(lambda self: len(self.under_way) < 6)
    @rule(agent=st.sampled_from(AGENTS), skill=st.sampled_from(SKILLS))
    def a_question_goes_out(self, agent: str, skill: str) -> None:
        self.under_way.append(OnItsWay(self.cache.ask(), Need(agent, skill)))

    @precondition(lambda self: any(item.answer is None for item in self.under_way))
    @rule(data=st.data())
    def the_service_answers(self, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from([item for item in self.under_way if item.answer is None]))
        item.answer = resolution(item.need.agent, item.need.skill_id, str(self.epoch), self.state[item.need.agent])

    @precondition(lambda self: any(item.answer is not None for item in self.under_way))
    @rule(data=st.data())
    def an_answer_arrives(self, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from([item for item in self.under_way if item.answer is not None]))
        self.under_way.remove(item)
        assert item.answer is not None
        self.cache.keep(item.ticket, item.need, item.answer)

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def a_call_fails(self, data: st.DataObject) -> None:
        item = data.draw(st.sampled_from(self.under_way))
        self.under_way.remove(item)
        self.cache.give_up(item.ticket)

    # What must hold

    @invariant()
    def nothing_is_answered_out_of_sync(self) -> None:
        assert self.synced or not self.cache.answers

    @invariant()
    def nothing_is_answered_that_the_stream_invalidated(self) -> None:
        for need, held in self.cache.answers.items():
            assert held.epoch == str(self.epoch)
            assert held.sequence >= self.delivered[held.agent], (need, held.sequence, self.delivered)

    @invariant()
    def with_every_frame_delivered_only_the_truth_is_answered(self) -> None:
        if self.frames == []:
            for held in self.cache.answers.values():
                assert held.sequence == self.state[held.agent]

    @invariant()
    def it_is_bounded(self) -> None:
        assert len(self.cache.answers) + len(self.cache._parked) <= 8
        held = set(self.cache.answers) | set(self.cache._parked)
        assert {need for needs in self.cache._by_agent.values() for need in needs} == held
        assert self.under_way or not self.cache._told


TestNearCache = NearCacheMachine.TestCase
TestNearCache.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
