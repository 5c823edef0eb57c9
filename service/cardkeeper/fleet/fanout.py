"""From one event to every client that asked for it."""

from collections.abc import Iterable

from cardkeeper.fleet.mailbox import Mailbox
from cardkeeper.fleet.subscription import Subscription
from cardkeeper.store.base import Event

EVERY_AGENT = ""


class Fanout:
    """Mailboxes by what they watch, so that an event costs as much as it has subscribers."""

    def __init__(self) -> None:
        self._watchers: dict[str, dict[Mailbox, int]] = {}
        """Agent id, canonical URL or EVERY_AGENT -> mailboxes, each with its number of subscriptions on that key."""

    def subscribe(self, mailbox: Mailbox, subscription: Subscription) -> None:
        """Add a subscription to a mailbox, or replace the one of the same id."""
        self.unsubscribe(mailbox, subscription.id)
        mailbox.subscriptions[subscription.id] = subscription
        for key in subscription.agents or (EVERY_AGENT,):
            watchers = self._watchers.setdefault(key, {})
            watchers[mailbox] = watchers.get(mailbox, 0) + 1

    def unsubscribe(self, mailbox: Mailbox, subscription_id: int) -> None:
        """Remove a subscription, if it is there."""
        subscription = mailbox.subscriptions.pop(subscription_id, None)
        if subscription is None:
            return
        for key in subscription.agents or (EVERY_AGENT,):
            watchers = self._watchers[key]
            watchers[mailbox] -= 1
            if not watchers[mailbox]:
                del watchers[mailbox]
                if not watchers:
                    del self._watchers[key]

    def drop(self, mailbox: Mailbox) -> None:
        """Forget a mailbox whose stream ended."""
        for subscription_id in list(mailbox.subscriptions):
            self.unsubscribe(mailbox, subscription_id)

    def publish(self, event: Event) -> None:
        """Offer an event to every mailbox that watches its agent, once."""
        told: set[Mailbox] = set()
        for mailbox in self._watching(event):
            if mailbox not in told:
                told.add(mailbox)
                mailbox.offer(event)

    def _watching(self, event: Event) -> Iterable[Mailbox]:
        for key in (EVERY_AGENT, event.agent, event.agent_url):
            yield from self._watchers.get(key, ())
