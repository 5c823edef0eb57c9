"""What waits to be sent to one client: at most one entry an agent, so that a slow client loses no truth and costs no memory.

Pure but for the wake-up: no clock, no wire.
"""

from collections.abc import Callable
from dataclasses import replace

from cardkeeper.card.change import Change, ChangeSet
from cardkeeper.fleet.subscription import Subscription
from cardkeeper.store.base import Event, EventKind

MAX_SPAN = 256
"""Changes, and tags, that a merged event carries at most."""


class Mailbox:
    """The subscriptions of one stream and the newest unsent event of each agent.

    Pending events keep the order of their revisions: a newer event of the same agent absorbs the older and moves to the end.
    Bounded by the number of agents subscribed to.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self.subscriptions: dict[int, Subscription] = {}
        self._pending: dict[tuple[str, bool], Event] = {}
        self._wake = wake

    def offer(self, event: Event) -> None:
        """Take an event in, if some subscription wants it."""
        if any(subscription.wants(event) for subscription in self.subscriptions.values()):
            key = (event.agent, event.kind is EventKind.SUSPECTED)
            earlier = self._pending.pop(key, None)
            self._pending[key] = merge(earlier, event) if earlier else event
            self._wake()

    def take(self) -> list[Event]:
        """Hand out everything that waits, in the order of revisions."""
        pending, self._pending = self._pending, {}
        return list(pending.values())

    def __len__(self) -> int:
        return len(self._pending)


def merge(earlier: Event, later: Event) -> Event:
    """Span two events of one agent: the state of the later, the changes of both, the most severe MAX_SPAN of them.

    A change that was undone in between still counts: the client may have resolved in between.
    """
    changes = {*earlier.changes.changes, *later.changes.changes}
    span = ChangeSet(
        previous_skill_fingerprint=earlier.changes.previous_skill_fingerprint,
        skill_fingerprint=later.changes.skill_fingerprint,
        changes=tuple(sorted(changes, key=_gravest_first)[:MAX_SPAN]),
        version_changed=earlier.changes.version_changed or later.changes.version_changed,
    )
    return replace(later, changes=span, tags=tuple(sorted({*earlier.tags, *later.tags}))[:MAX_SPAN])


def _gravest_first(change: Change) -> tuple[int, str, str, str, str, str]:
    return (-change.severity, change.kind, change.skill_id, change.pointer, change.before, change.after)
