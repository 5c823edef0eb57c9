"""The validator finds every kind of violation that is planted into a faultless trace."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from trace_fault import Fault
from trace_history import Entry, Epoch, Kind, Point
from trace_ideal import Ideal
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
    Resolved,
    Resynced,
    Revalidated,
    Step,
    Subscribed,
    Synced,
)
from trace_validator import judge

Found = TypeVar("Found")
FRAMES = (Invalidated, Revalidated, Synced, Bookmarked, Resynced, Draining)


@dataclass
class Scene:
    """One client's steps in a faultless trace, where something can be planted."""

    ideal: Ideal
    steps: list[Step]
    filters: list[Filter]
    chance: random.Random

    def epoch(self, frame: Invalidated | Bookmarked | Revalidated) -> Epoch:
        return self.ideal.history.epoch(frame.at.epoch)

    def live(self) -> Iterator[int]:
        """Steps while every Subscribe of the stream is answered."""
        waiting = 0
        for index, step in enumerate(self.steps):
            if isinstance(step, Opened):
                waiting = 0
            elif isinstance(step, Subscribed):
                waiting += 1
            elif isinstance(step, Synced):
                waiting -= 1
            elif not waiting:
                yield index

    def rest(self, index: int) -> Iterator[Step]:
        """What follows on the same stream."""
        for step in self.steps[index + 1 :]:
            if isinstance(step, Closed):
                return
            yield step

    def pick(self, found: list[Found]) -> Found:
        assume(found)
        return self.chance.choice(found)

    def live_news(self, *, settled: bool = False, removed: bool | None = None) -> list[tuple[int, Invalidated]]:
        """Live invalidations; `settled`: a claim follows on the stream, and nothing newer of the agent does."""
        found = []
        for index in self.live():
            step = self.steps[index]
            if not isinstance(step, Invalidated) or removed not in (None, step.removed):
                continue
            rest = list(self.rest(index))
            again = any(isinstance(item, Invalidated) and item.agent == step.agent for item in rest)
            claimed = any(isinstance(item, Bookmarked) for item in rest)
            if not settled or (claimed and not again):
                found.append((index, step))
        return found


def lose_a_change(scene: Scene) -> Fault:
    index, _ = scene.pick(scene.live_news(settled=True, removed=False))
    del scene.steps[index]
    return Fault.LOST


def lose_a_deletion(scene: Scene) -> Fault:
    index, _ = scene.pick(scene.live_news(settled=True, removed=True))
    del scene.steps[index]
    return Fault.MISSING_DELETION


def lose_a_suspicion(scene: Scene) -> Fault:
    found = []
    for index in scene.live():
        step = scene.steps[index]
        claim = next((item for item in scene.rest(index) if isinstance(item, Bookmarked)), None)
        if isinstance(step, Revalidated) and claim is not None:
            standing = scene.epoch(step).suspected_at(step.agent, claim.at.sequence)
            if standing == step.agent_at.sequence:
                found.append(index)
    del scene.steps[scene.pick(found)]
    return Fault.LOST


def lose_part_of_a_difference(scene: Scene) -> Fault:
    """A resumed client is not told of a change that lies in its absence."""
    found = []
    for index, step in enumerate(scene.steps):
        before = scene.steps[index - 1]
        if isinstance(step, Invalidated) and isinstance(before, Subscribed) and len(scene.filters) == 1:
            rest = list(scene.rest(index))
            again = any(isinstance(item, Invalidated) and item.agent == step.agent for item in rest)
            if not step.removed and not again:
                found.append(index)
    del scene.steps[scene.pick(found)]
    return Fault.UNDISCLOSED_GAP


def hide_a_new_epoch(scene: Scene) -> Fault:
    found = [i for i, s in enumerate(scene.steps) if isinstance(s, Resynced) and s.reason is Gap.EPOCH_CHANGED]
    del scene.steps[scene.pick(found)]
    return Fault.UNDISCLOSED_GAP


def invent_a_new_epoch(scene: Scene) -> Fault:
    found = [(i, s) for i, s in enumerate(scene.steps) if isinstance(s, Resynced) and s.reason is Gap.COMPACTED]
    index, step = scene.pick(found)
    scene.steps[index] = replace(step, reason=Gap.EPOCH_CHANGED)
    return Fault.WRONG_EPOCH


def swap_two_frames(scene: Scene) -> Fault:
    live = dict(scene.live_news())
    index = scene.pick([index for index in live if index + 1 in live])
    scene.steps[index], scene.steps[index + 1] = scene.steps[index + 1], scene.steps[index]
    return Fault.BACKWARD


def tell_an_older_state(scene: Scene) -> Fault:
    found = []
    for index, frame in scene.live_news():
        log = scene.epoch(frame)
        found += [
            (index, frame, entry)
            for entry in log.of_agent(frame.agent, 0, frame.agent_at.sequence - 1)
            if entry.kind is Kind.CHANGED
        ]
    index, frame, entry = scene.pick(found)
    at = Point(frame.at.epoch, entry.sequence)
    older = replace(frame, agent_at=at, removed=False, fingerprint=entry.fingerprint)
    scene.steps.insert(index + 1, older)
    return Fault.REORDERED


def repeat_a_frame(scene: Scene) -> Fault:
    index, frame = scene.pick(scene.live_news())
    scene.steps.insert(index + 1, frame)
    return Fault.DUPLICATED


def repeat_a_synced(scene: Scene) -> Fault:
    index = scene.pick([i for i, s in enumerate(scene.steps) if isinstance(s, Synced)])
    scene.steps.insert(index + 1, scene.steps[index])
    return Fault.DUPLICATED


def go_backward(scene: Scene) -> Fault:
    index, frame = scene.pick([(i, f) for i, f in scene.live_news() if f.at.sequence > 1])
    scene.steps.insert(index + 1, Bookmarked(Point(frame.at.epoch, frame.at.sequence - 1)))
    return Fault.BACKWARD


def bookmark_too_early(scene: Scene) -> Fault:
    index, frame = scene.pick(scene.live_news())
    scene.steps.insert(index, Bookmarked(frame.at))
    return Fault.DISHONEST


def bookmark_before_the_difference(scene: Scene) -> Fault:
    """A client that resumes would take it for the end of what it missed."""
    found = [(i, s) for i, s in enumerate(scene.steps) if isinstance(s, Subscribed) and s.resume_from is not None]
    index, step = scene.pick(found)
    assert step.resume_from is not None
    scene.steps.insert(index + 1, Bookmarked(step.resume_from))
    return Fault.DISHONEST


def sync_too_early(scene: Scene) -> Fault:
    """Synced comes before the last change of a difference."""
    found = []
    for index, step in enumerate(scene.steps):
        if isinstance(step, Synced) and len(scene.filters) == 1:
            start = next(i for i in range(index, -1, -1) if isinstance(scene.steps[i], Subscribed))
            news = scene.steps[start + 1 : index]
            if news and isinstance(news[-1], Invalidated) and not any(isinstance(item, Resynced) for item in news):
                found.append(index)
    index = scene.pick(found)
    scene.steps[index - 1], scene.steps[index] = scene.steps[index], scene.steps[index - 1]
    return Fault.DISHONEST


def miscount_the_agents(scene: Scene) -> Fault:
    index, step = scene.pick([(i, s) for i, s in enumerate(scene.steps) if isinstance(s, Synced)])
    scene.steps[index] = replace(step, agent_count=step.agent_count + 1)
    return Fault.DISHONEST


def never_sync(scene: Scene) -> Fault:
    index = scene.pick([i for i, s in enumerate(scene.steps) if isinstance(s, Subscribed)])
    scene.steps[index + 1 :] = [Closed(Ending.IMPATIENT)]
    return Fault.UNANSWERED


def never_finish_a_difference(scene: Scene) -> Fault:
    found = []
    for index, step in enumerate(scene.steps):
        if isinstance(step, Invalidated) and isinstance(scene.steps[index - 1], Subscribed | Resynced):
            found.append((index, step))
    index, frame = scene.pick(found)
    scene.steps[index + 1 : index + 1] = [frame] * 500
    return Fault.UNBOUNDED


def change_the_epoch_on_a_stream(scene: Scene) -> Fault:
    index, frame = scene.pick(scene.live_news())
    scene.steps[index] = replace(frame, at=Point("another", frame.at.sequence))
    return Fault.WRONG_EPOCH


def mix_epochs_in_a_frame(scene: Scene) -> Fault:
    index, frame = scene.pick(scene.live_news())
    scene.steps[index] = replace(frame, agent_at=Point("another", frame.agent_at.sequence))
    return Fault.WRONG_EPOCH


def tell_what_nobody_asked_for(scene: Scene) -> Fault:
    found: list[tuple[int, Epoch, Entry]] = []
    for index in scene.live():
        step = scene.steps[index]
        if isinstance(step, Invalidated | Bookmarked):
            log = scene.epoch(step)
            after = next((item for item in scene.rest(index) if isinstance(item, FRAMES)), None)
            upto = log.head if after is None else after.at.sequence - 1
            found += (
                (index, log, entry)
                for entry in log.between(step.at.sequence, upto)
                if entry.kind is Kind.CHANGED and not any(item.wants(entry) for item in scene.filters)
            )
    index, log, entry = scene.pick(found)
    at = Point(log.id, entry.sequence)
    unwanted = Invalidated(
        at=at, agent=entry.agent, agent_at=at, fingerprint=entry.fingerprint, severity=entry.severity
    )
    scene.steps.insert(index + 1, unwanted)
    return Fault.UNWANTED


def tell_another_fingerprint(scene: Scene) -> Fault:
    index, frame = scene.pick(scene.live_news(removed=False))
    scene.steps[index] = replace(frame, fingerprint="f" * 64)
    return Fault.UNTRUE


def tell_a_removal_that_was_none(scene: Scene) -> Fault:
    index, frame = scene.pick(scene.live_news(removed=False))
    scene.steps[index] = replace(frame, removed=True, fingerprint="")
    return Fault.UNTRUE


def tell_of_the_future(scene: Scene) -> Fault:
    index, frame = scene.pick(scene.live_news())
    head = scene.epoch(frame).head
    scene.steps.insert(index + 1, Bookmarked(Point(frame.at.epoch, head + 1)))
    return Fault.UNTRUE


def hide_the_severity_of_what_was_merged(scene: Scene) -> Fault:
    index, frame = scene.pick([(i, f) for i, f in scene.live_news(removed=False) if f.severity > 0])
    scene.steps[index] = replace(frame, severity=0)
    return Fault.POOR_HINT


def hold_an_old_card(scene: Scene) -> Fault:
    everything = any(not item.agents and not item.by_content for item in scene.filters)
    assume(everything)
    found = [(i, s) for i, s in enumerate(scene.steps) if isinstance(s, Holds) and s.fingerprints]
    index, step = scene.pick(found)
    agent = scene.chance.choice(sorted(step.fingerprints))
    scene.steps[index] = Holds({**step.fingerprints, agent: "f" * 64})
    return Fault.STALE_HOLDING


def hold_a_removed_agent(scene: Scene) -> Fault:
    assume(any(not item.agents for item in scene.filters))
    found = []
    for index, step in enumerate(scene.steps):
        claim = scene.steps[index - 1]
        if isinstance(step, Holds) and isinstance(claim, Synced | Bookmarked):
            kept = scene.ideal.history.epoch(claim.at.epoch).agents(claim.at.sequence)
            gone = {f"agent-{number}" for number in range(4)} - kept.keys() - step.fingerprints.keys()
            found += [(index, step, agent) for agent in sorted(gone)]
    index, step, agent = scene.pick(found)
    scene.steps[index] = Holds({**step.fingerprints, agent: "f" * 64})
    return Fault.MISSING_DELETION


def answer_with_another_fingerprint(scene: Scene) -> Fault:
    index, step = scene.pick([(i, s) for i, s in enumerate(scene.steps) if isinstance(s, Resolved)])
    scene.steps[index] = replace(step, fingerprint="f" * 64)
    return Fault.UNTRUE


def answer_with_what_was_invalidated(scene: Scene) -> Fault:
    index, step = scene.pick([(i, s) for i, s in enumerate(scene.steps) if isinstance(s, Resolved)])
    scene.steps[index] = replace(step, floor=replace(step.at, sequence=step.at.sequence + 1))
    return Fault.STALE_ANSWER


PLANTS = (
    lose_a_change,
    lose_a_deletion,
    lose_a_suspicion,
    lose_part_of_a_difference,
    hide_a_new_epoch,
    invent_a_new_epoch,
    swap_two_frames,
    tell_an_older_state,
    repeat_a_frame,
    repeat_a_synced,
    go_backward,
    bookmark_too_early,
    bookmark_before_the_difference,
    sync_too_early,
    miscount_the_agents,
    never_sync,
    never_finish_a_difference,
    change_the_epoch_on_a_stream,
    mix_epochs_in_a_frame,
    tell_what_nobody_asked_for,
    tell_another_fingerprint,
    tell_a_removal_that_was_none,
    tell_of_the_future,
    hide_the_severity_of_what_was_merged,
    hold_an_old_card,
    hold_a_removed_agent,
    answer_with_another_fingerprint,
    answer_with_what_was_invalidated,
)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32))
def test_what_is_planted_is_found(plant: Callable[[Scene], Fault], seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - no secret
    ideal = Ideal(chance, clients=1)
    ideal.run(150)
    client = ideal.clients[0]
    fault = plant(Scene(ideal, client.record.steps, client.filters, chance))
    assert fault in {violation.fault for violation in judge(ideal.history, ideal.records)}


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([Entry(sequence=2, kind=Kind.ADDED, agent="a")], "revision 1 is missing"),
        ([Entry(sequence=1, kind=Kind.CHANGED, agent="a")], "not kept"),
        (
            [
                Entry(sequence=1, kind=Kind.ADDED, agent="a", fingerprint="x"),
                Entry(sequence=2, kind=Kind.CHANGED, agent="a", previous="y", fingerprint="z"),
            ],
            "the log left 'x'",
        ),
        (
            [
                Entry(sequence=1, kind=Kind.ADDED, agent="a", agent_url="http://one"),
                Entry(sequence=2, kind=Kind.ADDED, agent="b", agent_url="http://one"),
            ],
            "is kept as a already",
        ),
    ],
    ids=["hole", "change of nothing", "broken chain", "two agents of one URL"],
)
def test_a_broken_log_is_found(entries: list[Entry], words: str) -> None:
    ideal = Ideal(random.Random(0))  # noqa: S311 - no secret
    for entry in entries:
        ideal.history.epoch("epoch-0").append(entry)
    (violation,) = judge(ideal.history, [])
    assert violation.fault is Fault.LOG
    assert words in violation.detail


def test_every_kind_of_fault_is_planted() -> None:
    from_logs = {Fault.LOG}
    named = {Fault[name] for plant in PLANTS for name in plant.__code__.co_names if name in Fault.__members__}
    assert named | from_logs == set(Fault)
