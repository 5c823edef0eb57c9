"""What the negotiated snapshot promised to one call: the other half of every contradiction. Pure."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from cardkeeper.card.media_type import Modes, parse_media_type
from cardkeeper.card.model import Card, Skill
from cardkeeper.drift.grammar import TYPE
from cardkeeper.drift.method import is_promised, is_streaming
from cardkeeper.drift.model import Call

_MEDIA_TYPE = re.compile(TYPE)
_FORGOTTEN_HEADER = re.compile(r"['\" ]0\.3['\" ]")
_CAPABILITIES: dict[str, Callable[[Card], bool]] = {
    "": lambda card: True,
    "streaming": lambda card: card.streaming,
    "push_notifications": lambda card: card.push_notifications,
    "extended_card": lambda card: card.extended_card,
}


@dataclass(frozen=True, slots=True)
class Promise:
    """A card, seen from a call."""

    card: Card
    call: Call

    @property
    def skills(self) -> list[Skill]:
        """The skills of the negotiated id; none: the card does not have it."""
        return [skill for skill in self.card.skills if skill.id == self.call.skill_id]

    @property
    def offered(self) -> str:
        """The modes of the skill, for a log line."""
        inputs = dict.fromkeys(mode for skill in self.skills for mode in skill.input_modes[:8])
        outputs = dict.fromkeys(mode for skill in self.skills for mode in skill.output_modes[:8])
        return f"{', '.join(inputs) or 'anything'} in, {', '.join(outputs) or 'anything'} out"

    @property
    def version(self) -> str:
        """Protocol version that was spoken: the call's, else the first interface's."""
        interfaces = self.card.interfaces
        return self.call.protocol_version or (interfaces[0].protocol_version if interfaces else "")

    @property
    def endpoint(self) -> str:
        """Where the agent was promised to be."""
        return self.card.interfaces[0].url if self.card.interfaces else "its URL"

    def capability(self, name: str) -> bool:
        """Whether a capability is advertised."""
        return _CAPABILITIES[name](self.card)

    def method(self) -> bool:
        """Whether the method that was called is one of a generation that the card speaks."""
        return is_promised(self.card, self.call)

    def stream(self) -> bool:
        """Whether the call asked for a stream, and the card promises streams."""
        return self.card.streaming and is_streaming(self.call)

    def extensions(self) -> bool:
        """Whether the call activated everything that the card requires."""
        required = {extension.uri for extension in self.card.extensions if extension.required}
        return required <= set(self.call.extensions)

    def protocol(self, said: str) -> bool:
        """Whether the version that was spoken is promised.

        A caller that forgot to say its version is told about 0.3 (1.0 section 3.6): its own mistake where the card has no 0.3.
        """
        promised = {interface.protocol_version for interface in self.card.interfaces}
        if self.call.protocol_version:
            return ".".join(self.call.protocol_version.split(".")[:2]) in promised
        return "0.3" in promised or not _FORGOTTEN_HEADER.search(said)

    def modes(self, said: str) -> bool:
        """Whether the modes that are refused are offered: those that `said` names, else those of the call."""
        skills = self.skills
        if not skills:
            return False
        taken = Modes(mode for skill in skills for mode in skill.input_modes)
        outputs = [mode for skill in skills for mode in skill.output_modes]
        given = Modes(outputs)
        if about := self._named(said):
            return any(taken.cover(item) or given.cover(item) for item in about)
        if taken and not all(taken.cover(mode) for mode in self.call.input_modes):
            return False
        accepted = self.call.accepted_output_modes
        if not (accepted and outputs):
            return True
        wanted = Modes(accepted)
        return any(given.cover(mode) for mode in accepted) or any(wanted.cover(mode) for mode in outputs)

    def _named(self, said: str) -> list[str]:
        """The media types that a text is about: those of the call that it names, else the first that it names."""
        found = (item.strip("'") for item in _MEDIA_TYPE.findall(said.lower()))
        named = [item for item in found if parse_media_type(item).is_valid]
        used = {parse_media_type(mode).essence for mode in (*self.call.input_modes, *self.call.accepted_output_modes)}
        return [item for item in named if parse_media_type(item).essence in used] or named[:1]
