"""What an observation contradicts in the snapshot that was negotiated (design section 5, docs/evidence.md). Pure.

Evidence is a contradiction, not a keyword: a refusal counts only where the snapshot promised what is refused. What an error
says in its structure goes before what it says in words; words go by `patterns.toml`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cardkeeper.card.media_type import Modes, parse_media_type
from cardkeeper.card.model import Card, Skill
from cardkeeper.drift.artifact import judge_artifact
from cardkeeper.drift.grammar import TYPE
from cardkeeper.drift.method import is_promised, is_streaming
from cardkeeper.drift.model import Call, Evidence, EvidenceKind
from cardkeeper.drift.observation import Fault, FieldRemark, Observation, Place, Statement
from cardkeeper.drift.pattern import Found, Patterns
from cardkeeper.drift.phrase import SKILL, WEAK_SKILL, Named, sentences
from cardkeeper.drift.speech import SKILL_KEYS
from cardkeeper.drift.state import REFUSING, TaskState

MAX_SENTENCES = 64
"""Plain sentences of one observation that are matched against patterns."""
MAX_ANSWER = 400
"""Characters of a Message, or of a completed task's text, that may still be a refusal: longer ones are answers."""
_SHOWN = 200

_SKILL_FIELDS = frozenset(key.lower() for key in SKILL_KEYS)
_SKILL_REASON = re.compile(r"(?:^|_)SKILL(?:S|_ID)?(?:_|$)")
_REFUSING_REASON = re.compile(
    r"(?:^|_)(?:UNKNOWN|INVALID|UNSUPPORTED|NO_SUCH|NOT_[A-Z]+|MISSING|REMOVED|RETIRED|GONE)(?:_|$)"
)
_MODE_FIELDS = frozenset({"acceptedoutputmodes", "outputmodes", "inputmodes", "mediatype", "mimetype", "contenttype"})
_FORGOTTEN = re.compile(r"\b(?:required|missing|must be (?:provided|set|given)|empty|blank|none)\b", re.IGNORECASE)
"""Remarks about what the caller left out: its own mistake."""
_MEDIA_TYPE = re.compile(TYPE)

# JSON-RPC codes: the same number means different things in different versions (a2a-facts 5.1).
_CODES = {
    -32003: "PUSH_NOTIFICATION_NOT_SUPPORTED",
    -32004: "UNSUPPORTED_OPERATION",
    -32005: "CONTENT_TYPE_NOT_SUPPORTED",
    -32601: "METHOD_NOT_FOUND",
}
_CODES_0_1 = {-32006: "UNSUPPORTED_OPERATION"}  # streaming not supported
_CODES_0_3 = {-32007: "EXTENDED_AGENT_CARD_NOT_CONFIGURED"}
_CODES_1_0 = _CODES_0_3 | {-32008: "EXTENSION_SUPPORT_REQUIRED", -32009: "VERSION_NOT_SUPPORTED"}
_WORDING = {
    "PUSH_NOTIFICATION_NOT_SUPPORTED": re.compile(r"push|notif|not supported|unsupported", re.IGNORECASE),
    "UNSUPPORTED_OPERATION": re.compile(r"support|stream|operation|implement|capabilit", re.IGNORECASE),
    "CONTENT_TYPE_NOT_SUPPORTED": re.compile(r"content|media|type|mode|format|mime|part|accepts", re.IGNORECASE),
    "EXTENSION_SUPPORT_REQUIRED": re.compile(r"extension", re.IGNORECASE),
    "VERSION_NOT_SUPPORTED": re.compile(r"version|protocol", re.IGNORECASE),
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED": re.compile(r"card|configur|support", re.IGNORECASE),
}
_GONE = frozenset({301, 308, 404, 405, 410})
_WRONG_CONTENT_TYPE = 415
_HTTP_OWN_WORDS = ("", "unsupported media type", "415 unsupported media type")
_NO_METHOD = 12
"""UNIMPLEMENTED of gRPC."""


def find_evidence(
    card: Card, call: Call, observation: Observation, patterns: Patterns, *, schema: str = ""
) -> tuple[Evidence, ...]:
    """Return what the observation contradicts in the card that was negotiated, each kind at a place once.

    `schema` is an operator's output schema for the skill, as in `judge_artifact`.
    """
    reader = _Reader(card, call, observation, patterns, schema)
    return tuple(dict.fromkeys(reader.all()))


@dataclass(frozen=True, slots=True)
class _Reader:
    """One question: this card, this call, this observation."""

    card: Card
    call: Call
    observation: Observation
    patterns: Patterns
    schema: str

    @property
    def skills(self) -> list[Skill]:
        return [skill for skill in self.card.skills if skill.id == self.call.skill_id]

    def all(self) -> Iterator[Evidence]:
        if self.observation.state in (TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED):
            return  # the agent asks for something: it took the task
        found = [item for fault in self.observation.faults for item in self._fault(fault)]
        found += self._words(self.observation.statements)
        found += self._reported_patterns()
        yield from _gravest(found)
        yield from self._delivered()

    # What was delivered

    def _delivered(self) -> Iterator[Evidence]:
        if not self.skills:
            if self.observation.state is TaskState.COMPLETED:
                yield Evidence(
                    kind=EvidenceKind.SKILL_NOT_ADVERTISED,
                    rule="task.completed_for_unadvertised_skill",
                    expected="a skill of the card",
                    observed=f"a completed task of {self.call.skill_id!r}, which the card does not advertise"[:_SHOWN],
                    pointer="/status/state",
                )
            return
        if self.observation.state not in REFUSING and self.observation.parts:
            parts = self.observation.parts
            yield from judge_artifact(self.card, self.call.skill_id, parts, schema=self.schema).evidence

    # What an error says

    def _fault(self, fault: Fault) -> list[Evidence]:
        """Structure first; words where it says nothing; the bare status last."""
        if fault.http_status == _WRONG_CONTENT_TYPE and not fault.reason and fault.message.lower() in _HTTP_OWN_WORDS:
            return []  # HTTP's own phrase: as likely about the request's Content-Type header
        refused = list(self._fields(fault))
        if not refused:
            reason = fault.reason if self._is_known(fault.reason) else self._reason_of_code(fault)
            refused = list(self._reason(reason, fault))
            if not refused and reason in (
                "",
                "INVALID_PARAMS",
                "INVALID_REQUEST",
                "INTERNAL_ERROR",
                "UNSUPPORTED_OPERATION",
            ):
                refused = list(self._words(fault.statements))
        return refused or list(self._status(fault))

    def _is_known(self, reason: str) -> bool:
        return reason in _REASONS or bool(_SKILL_REASON.search(reason) and _REFUSING_REASON.search(reason))

    def _reason_of_code(self, fault: Fault) -> str:
        if fault.code is None:
            return ""
        codes = _CODES
        version = self.call.protocol_version or (
            self.card.interfaces[0].protocol_version if self.card.interfaces else ""
        )
        if version.startswith("0.1"):
            codes = _CODES | _CODES_0_1
        elif version.startswith("0.3"):
            codes = _CODES | _CODES_0_3
        elif not version.startswith("0."):
            codes = _CODES | _CODES_1_0
        reason = codes.get(fault.code, "")
        # Private codes collide with A2A's (a2a-facts 5.6): a message about something else speaks for itself.
        agrees = _WORDING.get(reason)
        said = " ".join(statement.text for statement in fault.statements)
        return reason if agrees is None or not said.isascii() or agrees.search(said) or not said else ""

    def _fields(self, fault: Fault) -> Iterator[Evidence]:
        for remark in fault.fields:
            name = re.split(r"[./\[\]]", remark.field.rstrip("]/"))[-1].lower()
            if name in _SKILL_FIELDS and self._refuses_the_skill(remark, fault):
                yield self._unknown_skill(
                    "error.field.skill", f"{remark.field}: {remark.remark or fault.message}", remark.pointer
                )
            elif (
                name.replace("_", "") in _MODE_FIELDS
                and not _FORGOTTEN.search(remark.remark)
                and self._modes_promised(remark.value)
            ):
                yield self._refused_mode(
                    "error.field.mode", f"{remark.field}: {remark.remark or remark.value}", remark.pointer
                )

    def _refuses_the_skill(self, remark: FieldRemark, fault: Fault) -> bool:
        if not self.skills:
            return False
        if remark.value:
            return remark.value == self.call.skill_id
        if not remark.remark:
            return fault.code == -32602
        return not _FORGOTTEN.search(remark.remark) and not self._names_another(remark.remark)

    def _refuses_the_mode(self, remark: FieldRemark) -> bool:
        return not _FORGOTTEN.search(remark.remark) and self._modes_promised(remark.value)

    def _names_another(self, text: str) -> bool:
        """Whether a remark quotes something, and not the negotiated skill."""
        quoted = re.findall(r"['\"`]([^'\"`]{1,200})['\"`]", text)
        return bool(quoted) and self.call.skill_id not in quoted

    def _reason(self, reason: str, fault: Fault) -> Iterator[Evidence]:
        said, where = self._said(fault), fault.pointer
        rule = f"error.{reason.lower()}"
        if _SKILL_REASON.search(reason) and _REFUSING_REASON.search(reason):
            others = [field.value for field in fault.fields if field.value and field.field in SKILL_KEYS]
            if self.skills and (not others or self.call.skill_id in others) and not self._names_another(fault.message):
                yield self._unknown_skill("error.reason.skill", said, where)
        elif reason == "METHOD_NOT_FOUND":
            if self.call.method and self.call.method == self.call.skill_id and self.skills:
                yield self._unknown_skill("error.method_is_skill", said, where)
            elif is_promised(self.card, self.call):
                yield self._evidence(
                    EvidenceKind.METHOD_REFUSED, rule, f"{self.call.method or 'the method'} is served", said, where
                )
        elif reason == "PUSH_NOTIFICATION_NOT_SUPPORTED":
            if self.card.push_notifications:
                yield self._capability(rule, "pushNotifications", said, where)
        elif reason in ("UNSUPPORTED_OPERATION", "STREAMING_NOT_SUPPORTED"):
            if self.card.streaming and is_streaming(self.call) and not _about_a_task(fault):
                yield self._capability(rule, "streaming", said, where)
        elif reason == "EXTENDED_AGENT_CARD_NOT_CONFIGURED":
            if self.card.extended_card:
                yield self._capability(rule, "extendedAgentCard", said, where)
        elif reason == "CONTENT_TYPE_NOT_SUPPORTED":
            if self._modes_promised(" ".join(statement.text for statement in fault.statements)):
                yield self._refused_mode(rule, said, where)
        elif reason == "EXTENSION_SUPPORT_REQUIRED":
            required = {extension.uri for extension in self.card.extensions if extension.required}
            if required <= set(self.call.extensions):
                yield self._evidence(
                    EvidenceKind.EXTENSION_REQUIRED,
                    rule,
                    "no extension is required beyond those activated",
                    said,
                    where,
                )
        elif reason == "VERSION_NOT_SUPPORTED" and self._version_promised(fault):
            promised = ", ".join(dict.fromkeys(item.protocol_version for item in self.card.interfaces))
            yield self._evidence(EvidenceKind.VERSION_REFUSED, rule, f"A2A {promised} is served", said, where)

    def _version_promised(self, fault: Fault) -> bool:
        promised = {interface.protocol_version for interface in self.card.interfaces}
        if self.call.protocol_version:
            return ".".join(self.call.protocol_version.split(".")[:2]) in promised
        # A caller that forgot the header is told about 0.3 (1.0 section 3.6): its own mistake where the card has no 0.3.
        forgotten = any(re.search(r"['\" ]0\.3['\" ]", statement.text) for statement in fault.statements)
        return not forgotten or "0.3" in promised

    def _status(self, fault: Fault) -> Iterator[Evidence]:
        """What an HTTP or gRPC status alone says about the endpoint."""
        known = fault.reason or any(field.field in SKILL_KEYS for field in fault.fields)
        if fault.grpc_code == _NO_METHOD and not known and is_promised(self.card, self.call):
            yield self._evidence(
                EvidenceKind.METHOD_REFUSED,
                "grpc.unimplemented",
                "the method is served",
                self._said(fault),
                fault.pointer,
            )
        if fault.http_status not in _GONE or fault.code is not None or fault.reason:
            return
        if _about_a_task(fault) or not is_promised(self.card, self.call):
            return
        yield self._evidence(
            EvidenceKind.ENDPOINT_GONE,
            f"http.{fault.http_status}",
            f"an agent at {self.card.interfaces[0].url if self.card.interfaces else 'its URL'}",
            f"HTTP {fault.http_status}",
            fault.pointer,
        )

    # What is said in words

    def _words(self, statements: Sequence[Statement]) -> list[Evidence]:
        found: list[Evidence] = []
        budget = MAX_SENTENCES
        name = self.skills[0].name if self.skills else ""
        for statement in statements:
            if not self._may_refuse(statement):
                continue
            plain = sentences(statement.text, Named(self.call.skill_id, name), self.observation.echoes)[:budget]
            budget -= len(plain)
            for sentence in plain:
                found += self._sentence(sentence, statement)
        return found

    def _may_refuse(self, statement: Statement) -> bool:
        """Only an agent that did not do the task explains why; a short answer may be a refusal too."""
        if statement.place is Place.ERROR or statement.state in REFUSING:
            return True
        answers = statement.place is Place.MESSAGE or statement.state is TaskState.COMPLETED
        return answers and len(statement.text) <= MAX_ANSWER

    def _sentence(self, sentence: str, statement: Statement) -> Iterator[Evidence]:
        refused = statement.state in REFUSING and statement.place is not Place.ARTIFACT
        refusing = statement.place is Place.ERROR or refused
        for found in self.patterns.find(sentence):
            named = SKILL in found.words or WEAK_SKILL in found.words
            if refusing or named:
                yield from self._contradiction(found, sentence, statement)

    def _contradiction(self, found: Found, sentence: str, statement: Statement) -> Iterator[Evidence]:
        pattern, where = found.pattern, statement.pointer
        said = " ".join(statement.text.split())[:_SHOWN]
        if pattern.kind is EvidenceKind.UNKNOWN_SKILL:
            if self.skills:
                yield self._unknown_skill(pattern.id, said, where)
        elif pattern.kind is EvidenceKind.UNSUPPORTED_MODE:
            if self._modes_promised("" if pattern.names_offered else sentence):
                yield self._refused_mode(pattern.id, said, where)
        elif pattern.kind is EvidenceKind.CAPABILITY_REFUSED:
            if _CAPABILITIES[pattern.capability](self.card):
                yield self._capability(pattern.id, pattern.capability, said, where)
        else:
            yield self._evidence(pattern.kind, pattern.id, "what the card says", said, where)

    def _reported_patterns(self) -> Iterator[Evidence]:
        """Patterns that matched at a client which sends no content."""
        for pattern_id in self.observation.matched_patterns:
            pattern = self.patterns.by_id(pattern_id)
            if pattern is not None:
                statement = Statement(text=pattern_id, pointer="/matched_patterns", place=Place.ERROR)
                yield from self._contradiction(Found(pattern, ""), "", statement)

    # What was promised

    def _modes_promised(self, text: str) -> bool:
        """Whether the snapshot promised the modes that are refused: those that are named, else those of the call."""
        skills = self.skills
        if not skills:
            return False
        inputs = [mode for skill in skills for mode in skill.input_modes]
        outputs = [mode for skill in skills for mode in skill.output_modes]
        taken, given = Modes(inputs), Modes(outputs)
        used = (*self.call.input_modes, *self.call.accepted_output_modes)
        named = [
            item.strip("'") for item in _MEDIA_TYPE.findall(text.lower()) if parse_media_type(item.strip("'")).is_valid
        ]
        about = [item for item in named if any(_same(item, mode) for mode in used)] or named[:1]
        if about:
            return any(taken.cover(item) or given.cover(item) for item in about)
        if taken and not all(taken.cover(mode) for mode in self.call.input_modes):
            return False
        accepted = self.call.accepted_output_modes
        if not (accepted and outputs):
            return True
        wanted = Modes(accepted)
        return any(given.cover(mode) for mode in accepted) or any(wanted.cover(mode) for mode in outputs)

    # Building

    def _unknown_skill(self, rule: str, said: str, where: str) -> Evidence:
        return self._evidence(
            EvidenceKind.UNKNOWN_SKILL, rule, f"skill {self.call.skill_id!r} is advertised", said, where
        )

    def _refused_mode(self, rule: str, said: str, where: str) -> Evidence:
        skill = self.skills[0]
        offered = f"{', '.join(skill.input_modes) or 'any'} -> {', '.join(skill.output_modes) or 'any'}"
        return self._evidence(EvidenceKind.UNSUPPORTED_MODE, rule, offered, said, where)

    def _capability(self, rule: str, capability: str, said: str, where: str) -> Evidence:
        return self._evidence(EvidenceKind.CAPABILITY_REFUSED, rule, f"{capability} is offered", said, where)

    def _said(self, fault: Fault) -> str:
        number = next((str(n) for n in (fault.code, fault.http_status, fault.grpc_code) if n is not None), "")
        return " ".join(filter(None, (fault.reason or number, fault.message)))

    @staticmethod
    def _evidence(kind: EvidenceKind, rule: str, expected: str, observed: str, pointer: str) -> Evidence:
        return Evidence(
            kind=kind,
            rule=rule,
            expected=expected[:_SHOWN],
            observed=" ".join(observed.split())[:_SHOWN],
            pointer=pointer,
        )


_REASONS = frozenset(
    {
        *_CODES.values(),
        *_CODES_1_0.values(),
        "STREAMING_NOT_SUPPORTED",
        "INVALID_PARAMS",
        "INVALID_REQUEST",
        "INTERNAL_ERROR",
        # State, load and rights: never about the card.
        "TASK_NOT_FOUND",
        "TASK_NOT_CANCELABLE",
        "INVALID_AGENT_RESPONSE",
    }
)
_CAPABILITIES: dict[str, Callable[[Card], bool]] = {
    "streaming": lambda card: card.streaming,
    "push_notifications": lambda card: card.push_notifications,
    "extended_card": lambda card: card.extended_card,
    "": lambda card: True,
}


def _same(one: str, other: str) -> bool:
    return parse_media_type(one).essence == parse_media_type(other).essence


def _about_a_task(fault: Fault) -> bool:
    """Whether the error is about a task's state, which is no business of the card."""
    return any(re.search(r"\b(?:task|context|session)\b", statement.text.lower()) for statement in fault.statements)


def _gravest(found: Sequence[Evidence]) -> Iterator[Evidence]:
    """Each kind once: an error's message and its data say the same in other words."""
    told: set[EvidenceKind] = set()
    for item in found:
        if item.kind not in told:
            told.add(item.kind)
            yield item
