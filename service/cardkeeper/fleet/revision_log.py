"""Where the fleet's history stands in this process, and who is told when it moves."""

from dataclasses import dataclass

from cardkeeper.fleet.fanout import Fanout
from cardkeeper.store.base import Event


@dataclass(frozen=True, slots=True)
class Revision:
    """A point in the fleet's history; compares only within one epoch."""

    epoch: str
    sequence: int


class RevisionLog:
    """The head of the log. Events are published in order, each exactly once."""

    def __init__(self, fanout: Fanout) -> None:
        self.fanout = fanout
        self.epoch = ""
        self.sequence = 0

    @property
    def head(self) -> Revision:
        """The last revision that this process has told everyone of."""
        return Revision(self.epoch, self.sequence)

    def start(self, epoch: str, sequence: int) -> None:
        """Begin at a stored position."""
        self.epoch, self.sequence = epoch, sequence

    def append(self, event: Event) -> None:
        """Publish the event that follows the head. Raises ValueError for any other: a gap would be a lost event."""
        if event.sequence != self.sequence + 1:
            raise ValueError(f"event {event.sequence} does not follow {self.sequence}")
        self.sequence = event.sequence
        self.fanout.publish(event)
