"""What an error refuses, by its structure: fields, reasons, codes, and last the bare status. Pure."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cardkeeper.drift.error_code import reason_of_code
from cardkeeper.drift.model import Evidence, EvidenceKind
from cardkeeper.drift.observation import Fault, FieldRemark
from cardkeeper.drift.promise import Promise
from cardkeeper.drift.speech import SKILL_KEYS

SHOWN = 200
"""Characters of what was expected and observed."""

_INVALID_PARAMS = -32602
_SKILL_FIELDS = frozenset(key.lower() for key in SKILL_KEYS)
_MODE_FIELDS = frozenset({"acceptedoutputmodes", "outputmodes", "inputmodes", "mediatype", "mimetype", "contenttype"})
_FORGOTTEN = re.compile(r"\b(?:required|missing|must be (?:provided|set|given)|empty|blank|none)\b", re.IGNORECASE)
"""Remarks about what the caller left out: its own mistake."""
_QUOTED = re.compile(r"['\"`]([^'\"`]{1,200})['\"`]")
_ABOUT_A_TASK = re.compile(r"\b(?:task|context|session)\b", re.IGNORECASE)
_SKILL_REASON = re.compile(r"(?:^|_)SKILL(?:S|_ID)?(?:_|$)")
_REFUSING_REASON = re.compile(
    r"(?:^|_)(?:UNKNOWN|INVALID|UNSUPPORTED|NO_SUCH|NOT_[A-Z]+|MISSING|REMOVED|RETIRED|GONE)(?:_|$)"
)

_ENDPOINT_GONE = frozenset({301, 308, 404, 405, 410})
_WRONG_CONTENT_TYPE = 415
_HTTP_OWN_WORDS = ("", "unsupported media type", "415 unsupported media type")
_UNIMPLEMENTED = 12
"""Of gRPC."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """What a reason refuses, and whether that was promised."""

    kind: EvidenceKind
    expected: str
    """Empty: the modes that are offered."""
    promised: Callable[[Promise, str], bool]
    """By the promise and the error's own words."""


_RULES = {
    "METHOD_NOT_FOUND": _Rule(EvidenceKind.METHOD_REFUSED, "the method is served", lambda promise, _: promise.method()),
    "PUSH_NOTIFICATION_NOT_SUPPORTED": _Rule(
        EvidenceKind.CAPABILITY_REFUSED,
        "pushNotifications is offered",
        lambda promise, _: promise.capability("push_notifications"),
    ),
    "UNSUPPORTED_OPERATION": _Rule(
        EvidenceKind.CAPABILITY_REFUSED,
        "streaming is offered",
        # The same reason is given for tasks in a final state, and for what was never promised.
        lambda promise, said: promise.stream() and not _ABOUT_A_TASK.search(said),
    ),
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED": _Rule(
        EvidenceKind.CAPABILITY_REFUSED,
        "extendedAgentCard is offered",
        lambda promise, _: promise.capability("extended_card"),
    ),
    "CONTENT_TYPE_NOT_SUPPORTED": _Rule(EvidenceKind.UNSUPPORTED_MODE, "", lambda promise, said: promise.modes(said)),
    "EXTENSION_SUPPORT_REQUIRED": _Rule(
        EvidenceKind.EXTENSION_REQUIRED,
        "no extension is required beyond those activated",
        lambda promise, _: promise.extensions(),
    ),
    "VERSION_NOT_SUPPORTED": _Rule(
        EvidenceKind.VERSION_REFUSED, "the version is served", lambda promise, said: promise.protocol(said)
    ),
}
_RULES["STREAMING_NOT_SUPPORTED"] = _RULES["UNSUPPORTED_OPERATION"]
_SPEAKS_FOR_ITSELF = frozenset({"TASK_NOT_FOUND", "TASK_NOT_CANCELABLE", "INVALID_AGENT_RESPONSE"})
"""State, load and rights: never about the card, whatever the words."""
_SAYS_NOTHING = frozenset({"", "INVALID_PARAMS", "INVALID_REQUEST", "INTERNAL_ERROR", "UNSUPPORTED_OPERATION"})
"""Reasons beside which the words still count."""


def evidence(kind: EvidenceKind, rule: str, expected: str, observed: str, pointer: str) -> Evidence:
    """Return a piece of evidence; what was observed is shortened to one line."""
    return Evidence(
        kind=kind, rule=rule, expected=expected[:SHOWN], observed=" ".join(observed.split())[:SHOWN], pointer=pointer
    )


def unknown_skill(promise: Promise, rule: str, observed: str, pointer: str) -> Evidence:
    """Return the evidence that the negotiated skill is refused."""
    return evidence(
        EvidenceKind.UNKNOWN_SKILL, rule, f"skill {promise.call.skill_id!r} is advertised", observed, pointer
    )


def unsupported_mode(promise: Promise, rule: str, observed: str, pointer: str) -> Evidence:
    """Return the evidence that an offered mode is refused."""
    return evidence(EvidenceKind.UNSUPPORTED_MODE, rule, promise.offered, observed, pointer)


def refused_by(fault: Fault, promise: Promise) -> tuple[list[Evidence], bool]:
    """Return what an error's structure refuses, and whether its words have to be asked too."""
    if fault.http_status == _WRONG_CONTENT_TYPE and not fault.reason and fault.message.lower() in _HTTP_OWN_WORDS:
        return [], False  # HTTP's own phrase: as likely about the request's Content-Type header
    if fields := list(_fields(fault, promise)):
        return fields, False
    said = " ".join(statement.text for statement in fault.statements)
    known = (
        fault.reason in _RULES or fault.reason in _SAYS_NOTHING | _SPEAKS_FOR_ITSELF or _is_about_a_skill(fault.reason)
    )
    reason = fault.reason if fault.reason and known else reason_of_code(fault.code, promise.version, said)
    found = list(_reason(reason, fault, promise, said))
    return found, not found and reason in _SAYS_NOTHING


def refused_by_status(fault: Fault, promise: Promise) -> Iterator[Evidence]:
    """Yield what an HTTP or gRPC status alone says, where nothing else did."""
    said = " ".join(statement.text for statement in fault.statements)
    names_a_skill = any(remark.field in SKILL_KEYS for remark in fault.fields)
    if fault.grpc_code == _UNIMPLEMENTED and not fault.reason and not names_a_skill and promise.method():
        yield evidence(
            EvidenceKind.METHOD_REFUSED, "grpc.unimplemented", "the method is served", _observed(fault), fault.pointer
        )
    silent = fault.http_status in _ENDPOINT_GONE and fault.code is None and not fault.reason
    if silent and not _ABOUT_A_TASK.search(said) and promise.method():
        yield evidence(
            EvidenceKind.ENDPOINT_GONE,
            f"http.{fault.http_status}",
            f"an agent at {promise.endpoint}",
            f"HTTP {fault.http_status}",
            fault.pointer,
        )


def _fields(fault: Fault, promise: Promise) -> Iterator[Evidence]:
    """What is said about single fields of the request."""
    for remark in fault.fields:
        name = re.split(r"[./\[\]]", remark.field.rstrip("]/"))[-1].lower()
        said = f"{remark.field}: {remark.remark or remark.value or fault.message}"
        if name in _SKILL_FIELDS and _refuses_the_skill(remark, fault, promise):
            yield unknown_skill(promise, "error.field.skill", said, remark.pointer)
        elif name.replace("_", "") in _MODE_FIELDS and _refuses_the_modes(remark, promise):
            yield unsupported_mode(promise, "error.field.mode", said, remark.pointer)


def _refuses_the_skill(remark: FieldRemark, fault: Fault, promise: Promise) -> bool:
    if not promise.skills:
        return False
    if remark.value:
        return remark.value == promise.call.skill_id
    if not remark.remark:
        return fault.code == _INVALID_PARAMS
    return not _FORGOTTEN.search(remark.remark) and not _quotes_another(remark.remark, promise)


def _refuses_the_modes(remark: FieldRemark, promise: Promise) -> bool:
    return not _FORGOTTEN.search(remark.remark) and promise.modes(remark.value)


def _reason(reason: str, fault: Fault, promise: Promise, said: str) -> Iterator[Evidence]:
    observed = _observed(fault)
    if _is_about_a_skill(reason):
        named = [remark.value for remark in fault.fields if remark.value and remark.field in SKILL_KEYS]
        ours = not named or promise.call.skill_id in named
        if promise.skills and ours and not _quotes_another(fault.message, promise):
            yield unknown_skill(promise, "error.reason.skill", observed, fault.pointer)
    elif reason == "METHOD_NOT_FOUND" and promise.skills and promise.call.method == promise.call.skill_id:
        # Some agents take skill ids for methods (a2a-facts 4.6).
        yield unknown_skill(promise, "error.method_is_skill", observed, fault.pointer)
    elif (rule := _RULES.get(reason)) is not None and rule.promised(promise, said):
        expected = rule.expected or promise.offered
        yield evidence(rule.kind, f"error.{reason.lower()}", expected, observed, fault.pointer)


def _is_about_a_skill(reason: str) -> bool:
    return bool(_SKILL_REASON.search(reason) and _REFUSING_REASON.search(reason))


def _quotes_another(text: str, promise: Promise) -> bool:
    """Whether something is quoted, and not the negotiated skill."""
    quoted = _QUOTED.findall(text)
    return bool(quoted) and promise.call.skill_id not in quoted


def _observed(fault: Fault) -> str:
    number = next((str(n) for n in (fault.code, fault.http_status, fault.grpc_code) if n is not None), "")
    return " ".join(filter(None, (fault.reason or number, fault.message)))
