"""Classed differences between two cards of one agent.

Values only here; `compare.py` finds them.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Severity(IntEnum):
    """What a change does to what was negotiable, in rising order. Values are those of the proto."""

    NONE = 0
    COSMETIC = 1
    """Wording or bytes only."""
    COMPATIBLE = 2
    """Wider than before; everything that was negotiable still is."""
    BREAKING = 3
    """Something that was negotiable is not any more, or must be called otherwise."""


class ChangeKind(StrEnum):
    """What sort of change. Names are those of the proto's ChangeKind without prefix, in lower case."""

    SKILL_REMOVED = "skill_removed"
    SKILL_ADDED = "skill_added"
    SKILL_NARROWED = "skill_narrowed"
    SKILL_WIDENED = "skill_widened"
    SKILL_REDESCRIBED = "skill_redescribed"
    CAPABILITY_LOST = "capability_lost"
    CAPABILITY_GAINED = "capability_gained"
    ENDPOINT_CHANGED = "endpoint_changed"
    SECURITY_CHANGED = "security_changed"
    SIGNATURE_CHANGED = "signature_changed"
    EXTENSION_CHANGED = "extension_changed"
    VERSION_CHANGED = "version_changed"
    OTHER_CHANGED = "other_changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One classed difference. `before` and `after` are short texts, empty where there was or is nothing."""

    kind: ChangeKind
    severity: Severity
    skill_id: str = ""
    pointer: str = ""
    """JSON Pointer into the normalised card, such as "/skills/summarize/outputModes"."""
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSet:
    """The difference between two cards: `compare(a, a)` is empty, `compare(a, b)` mirrors `compare(b, a)`."""

    previous_skill_fingerprint: str
    """Empty: no card was held."""
    skill_fingerprint: str
    """Empty: the agent is gone."""
    changes: tuple[Change, ...]
    """Most severe first."""
    version_changed: bool

    @property
    def severity(self) -> Severity:
        """Highest severity of all changes."""
        return max((change.severity for change in self.changes), default=Severity.NONE)

    @property
    def surface_changed(self) -> bool:
        """Whether the negotiation surface changed: the fingerprints differ."""
        return self.previous_skill_fingerprint != self.skill_fingerprint

    @property
    def silent(self) -> bool:
        """Whether the surface of a held card changed while its version text stood still."""
        both = bool(self.previous_skill_fingerprint and self.skill_fingerprint)
        return both and self.surface_changed and not self.version_changed

    @property
    def skill_ids(self) -> tuple[str, ...]:
        """Ids of the skills touched, sorted."""
        return tuple(sorted({change.skill_id for change in self.changes if change.skill_id}))
