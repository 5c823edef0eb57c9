"""Who is told of what, in what order, and with how much memory."""

from dataclasses import replace

import pytest

from cardkeeper.card.change import Change, ChangeKind, ChangeSet, Severity
from cardkeeper.fleet.fanout import Fanout
from cardkeeper.fleet.mailbox import MAX_SPAN, Mailbox, merge
from cardkeeper.fleet.revision_log import RevisionLog
from cardkeeper.fleet.subscription import Subscription
from cardkeeper.store.base import Cause, Event, EventKind

URL = "http://a.example"


def event(
    sequence: int,
    agent: str = "a",
    *changes: Change,
    kind: EventKind = EventKind.CHANGED,
    old: str = "old",
    new: str = "new",
    tags: tuple[str, ...] = (),
) -> Event:
    return Event(
        kind=kind,
        agent=agent,
        agent_url=f"http://{agent}.example",
        cause=Cause.REFRESH,
        changes=ChangeSet(
            previous_skill_fingerprint=old, skill_fingerprint=new, changes=changes, version_changed=False
        ),
        tags=tags,
        sequence=sequence,
    )


def removed(skill: str) -> Change:
    return Change(kind=ChangeKind.SKILL_REMOVED, severity=Severity.BREAKING, skill_id=skill)


def box(fanout: Fanout, *subscriptions: Subscription) -> Mailbox:
    mailbox = Mailbox(wake=lambda: None)
    for subscription in subscriptions:
        fanout.subscribe(mailbox, subscription)
    return mailbox


def test_an_event_reaches_those_who_watch_its_agent_by_id_by_url_or_all() -> None:
    fanout = Fanout()
    by_id = box(fanout, Subscription(id=1, agents=frozenset({"a"})))
    by_url = box(fanout, Subscription(id=1, agents=frozenset({URL})))
    everything = box(fanout, Subscription(id=1))
    other = box(fanout, Subscription(id=1, agents=frozenset({"b"})))
    fanout.publish(event(1))
    assert [len(mailbox) for mailbox in (by_id, by_url, everything, other)] == [1, 1, 1, 0]


def test_a_mailbox_with_overlapping_subscriptions_gets_an_event_once() -> None:
    fanout = Fanout()
    mailbox = box(fanout, Subscription(id=1), Subscription(id=2, agents=frozenset({"a", URL})))
    fanout.publish(event(1))
    assert [item.sequence for item in mailbox.take()] == [1]


def test_nothing_is_left_of_a_dropped_mailbox() -> None:
    fanout = Fanout()
    mailbox = box(fanout, Subscription(id=1), Subscription(id=2, agents=frozenset({"a", "b"})))
    fanout.drop(mailbox)
    fanout.publish(event(1))
    assert len(mailbox) == 0
    assert not fanout._watchers


def test_replacing_a_subscription_forgets_the_old_one() -> None:
    fanout = Fanout()
    mailbox = box(fanout, Subscription(id=1, agents=frozenset({"a"})))
    fanout.subscribe(mailbox, Subscription(id=1, agents=frozenset({"b"})))
    fanout.publish(event(1, "a"))
    fanout.publish(event(2, "b"))
    assert [item.agent for item in mailbox.take()] == ["b"]


def test_pending_events_merge_to_one_an_agent_in_the_order_of_revisions() -> None:
    fanout = Fanout()
    mailbox = box(fanout, Subscription(id=1))
    fanout.publish(event(1, "a", removed("x"), old="f0", new="f1"))
    fanout.publish(event(2, "b"))
    fanout.publish(event(3, "a", removed("y"), old="f1", new="f2"))
    taken = mailbox.take()
    assert [(item.agent, item.sequence) for item in taken] == [("b", 2), ("a", 3)]
    assert taken[1].changes.previous_skill_fingerprint == "f0"
    assert taken[1].changes.skill_fingerprint == "f2"
    assert taken[1].changes.skill_ids == ("x", "y")
    assert mailbox.take() == []


def test_a_change_that_was_undone_is_still_told() -> None:
    there = event(1, "a", removed("x"), old="f0", new="f1")
    back = event(2, "a", replace(removed("x"), kind=ChangeKind.SKILL_ADDED), old="f1", new="f0")
    span = merge(there, back)
    assert span.sequence == 2
    assert span.changes.severity is Severity.BREAKING
    assert span.changes.skill_ids == ("x",)


def test_a_removal_is_a_value() -> None:
    mailbox = box(Fanout(), Subscription(id=1))
    mailbox.offer(event(1))
    mailbox.offer(event(2, kind=EventKind.REMOVED, new=""))
    (last,) = mailbox.take()
    assert last.kind is EventKind.REMOVED
    assert last.changes.skill_fingerprint == ""


def test_a_suspicion_does_not_swallow_the_change_before_it() -> None:
    mailbox = box(Fanout(), Subscription(id=1))
    mailbox.offer(event(1))
    mailbox.offer(event(2, kind=EventKind.SUSPECTED))
    assert [item.kind for item in mailbox.take()] == [EventKind.CHANGED, EventKind.SUSPECTED]


def test_a_merged_event_is_bounded() -> None:
    span = event(1, "a", *(removed(f"s{i}") for i in range(200)))
    for number in range(5):
        span = merge(span, event(number + 2, "a", *(removed(f"t{number}-{i}") for i in range(200))))
    assert len(span.changes.changes) == MAX_SPAN


@pytest.mark.parametrize(
    ("subscription", "wanted"),
    [
        (Subscription(id=1, min_severity=Severity.BREAKING), True),
        (Subscription(id=1, skill_ids=frozenset({"x"})), True),
        (Subscription(id=1, skill_ids=frozenset({"y"})), False),
        (Subscription(id=1, tags=frozenset({"nlp"})), True),
        (Subscription(id=1, tags=frozenset({"image"})), False),
    ],
)
def test_filters(subscription: Subscription, wanted: bool) -> None:
    assert subscription.wants(event(1, "a", removed("x"), tags=("nlp",))) is wanted


def test_a_filter_by_severity_hides_what_is_milder() -> None:
    cosmetic = Change(kind=ChangeKind.SKILL_REDESCRIBED, severity=Severity.COSMETIC, skill_id="x")
    assert not Subscription(id=1, min_severity=Severity.COMPATIBLE).wants(event(1, "a", cosmetic))


def test_what_touches_the_whole_agent_passes_a_filter_by_skill() -> None:
    lost = Change(kind=ChangeKind.CAPABILITY_LOST, severity=Severity.BREAKING)
    assert Subscription(id=1, skill_ids=frozenset({"y"})).wants(event(1, "a", lost))


@pytest.mark.parametrize("kind", [EventKind.REMOVED, EventKind.SUSPECTED])
def test_removal_and_loss_of_authority_pass_every_filter(kind: EventKind) -> None:
    strict = Subscription(id=1, min_severity=Severity.BREAKING, skill_ids=frozenset({"y"}), tags=frozenset({"none"}))
    assert strict.wants(event(1, kind=kind))


def test_the_log_refuses_a_gap() -> None:
    log = RevisionLog(Fanout())
    log.start("e", 4)
    log.append(event(5))
    with pytest.raises(ValueError, match="7 does not follow 5"):
        log.append(event(7))
    assert log.head.sequence == 5
