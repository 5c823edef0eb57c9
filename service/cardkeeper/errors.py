"""Every error that crosses a layer of the service.

::

    CardkeeperError
    ├── InvalidInput            the caller's request is wrong              INVALID_REQUEST
    │   └── DocumentUnreadable  a reported document cannot be read         DOCUMENT_UNREADABLE
    ├── NotFound                                                           AGENT_UNKNOWN, SNAPSHOT_UNKNOWN
    │   └── SkillNotAdvertised                                             SKILL_NOT_ADVERTISED
    ├── AlreadyExists                                                      AGENT_EXISTS
    ├── NotOffered              the card does not offer what is needed     MODE_NOT_OFFERED, CAPABILITY_ABSENT
    ├── CardUnavailable         no card to answer from                     CARD_UNREACHABLE, CARD_SUSPECT
    │   └── CardInvalid         the document is no usable card             CARD_INVALID
    ├── EgressRefused           policy forbids the fetch                   EGRESS_REFUSED
    ├── RevisionMismatch        asked for a revision not reached here      REVISION_NOT_REACHED, EPOCH_CHANGED
    ├── Exhausted               a bound was met                            RATE_LIMITED, QUOTA_EXCEEDED, ACK_OVERDUE
    ├── DeadlineTooShort        the caller's deadline ended the wait       DEADLINE_TOO_SHORT
    ├── Unauthenticated                                                    UNAUTHENTICATED
    └── Unavailable             this server, now                           DRAINING, STORE_UNAVAILABLE, OVERLOADED

`reason` is the name of an `ErrorReason` value without its prefix; `rpc/status.py` alone turns it into a gRPC status.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from cardkeeper.card.finding import Finding


class CardkeeperError(Exception):
    """Base of all errors of the service.

    `metadata` holds each dynamic word of the message; `retry_after` is in seconds, where waiting helps.
    """

    default_reason: ClassVar[str] = "INTERNAL"

    def __init__(
        self,
        message: str,
        *,
        reason: str | None = None,
        metadata: Mapping[str, str] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason or self.default_reason
        self.metadata = dict(metadata or {})
        self.retry_after = retry_after


class InvalidInput(CardkeeperError):
    """The request is wrong; `field` names the part of it, as a proto path."""

    default_reason = "INVALID_REQUEST"

    def __init__(self, message: str, *, field: str = "", metadata: Mapping[str, str] | None = None) -> None:
        super().__init__(message, metadata=metadata)
        self.field = field
        self.violations: Sequence[tuple[str, str]] = ((field, message),)


class DocumentUnreadable(InvalidInput):
    """A reported outcome or artifact is not something A2A knows, or no JSON at all."""

    default_reason = "DOCUMENT_UNREADABLE"


class NotFound(CardkeeperError):
    """An agent or a snapshot that the service does not have."""

    default_reason = "AGENT_UNKNOWN"

    def __init__(self, message: str, *, reason: str | None = None, resource: str = "", **metadata: str) -> None:
        super().__init__(message, reason=reason, metadata=metadata)
        self.resource = resource


class SkillNotAdvertised(NotFound):
    """The card does not advertise the skill; near matches and advertised ids say what it does."""

    default_reason = "SKILL_NOT_ADVERTISED"

    def __init__(self, message: str, *, near: Sequence[str], advertised: Sequence[str], **metadata: str) -> None:
        super().__init__(message, **metadata)
        self.near = tuple(near)
        self.advertised = tuple(advertised)


class AlreadyExists(CardkeeperError):
    """The name or the URL is taken by another agent."""

    default_reason = "AGENT_EXISTS"


class NotOffered(CardkeeperError):
    """The skill is there, but not with the modes or capabilities that are needed."""

    default_reason = "MODE_NOT_OFFERED"

    def __init__(
        self, message: str, *, reason: str | None = None, offered: Sequence[str] = (), **metadata: str
    ) -> None:
        super().__init__(message, reason=reason, metadata=metadata)
        self.offered = tuple(offered)


class CardUnavailable(CardkeeperError):
    """There is no card to answer from: its source does not answer, or evidence against it is unsettled."""

    default_reason = "CARD_UNREACHABLE"


class CardInvalid(CardUnavailable):
    """The document is no usable card; `findings` says every reason."""

    default_reason = "CARD_INVALID"

    def __init__(
        self,
        message: str,
        *,
        findings: "Sequence[Finding]" = (),
        metadata: Mapping[str, str] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, metadata=metadata, retry_after=retry_after)
        self.findings = tuple(findings)


class EgressRefused(CardkeeperError):
    """Policy forbids to fetch from there. The message names the rule, never an internal address."""

    default_reason = "EGRESS_REFUSED"


class RevisionMismatch(CardkeeperError):
    """The asked revision is not reached here, or belongs to another epoch."""

    default_reason = "REVISION_NOT_REACHED"


class Exhausted(CardkeeperError):
    """A bound was met: a rate, a quota, or a client that stopped acknowledging."""

    default_reason = "RATE_LIMITED"


class DeadlineTooShort(CardkeeperError):
    """The caller's deadline ended the wait; the work goes on for the others who wait for it."""

    default_reason = "DEADLINE_TOO_SHORT"


class Unauthenticated(CardkeeperError):
    """The method needs a token."""

    default_reason = "UNAUTHENTICATED"


class Unavailable(CardkeeperError):
    """This server, now: a retry elsewhere or later may succeed."""

    default_reason = "OVERLOADED"
