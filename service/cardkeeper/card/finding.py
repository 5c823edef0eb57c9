"""Remarks on a card document: what was repaired, what is odd, what makes it unusable."""

from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """How much a finding matters, in rising order."""

    NOTE = 1
    """Odd, without consequence."""
    WARNING = 2
    """Likely a mistake; the card is used as it stands."""
    REPAIR = 3
    """Repaired, where the meaning is beyond doubt."""
    ERROR = 4
    """The document is refused."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One remark.

    `id` is stable and dotted ("skill.id.missing"); `pointer` is a JSON Pointer (RFC 6901) into the document as it was
    received; `message` says in one sentence what is wrong and what to fix.
    """

    id: str
    pointer: str
    message: str
    level: Level
