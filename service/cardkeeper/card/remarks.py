"""Gathering of findings while a document is read."""

from collections.abc import Iterable

from cardkeeper.card.finding import Finding, Level

MAX_FINDINGS = 200
"""Findings kept of one document; a hostile one could cause a million."""

_SHOWN = 60


def pointer_token(key: str) -> str:
    """Escape one reference token of a JSON Pointer (RFC 6901 section 3)."""
    return key.replace("~", "~0").replace("/", "~1")


def shown(value: object) -> str:
    """A short quotation of a document's value, safe for messages of any size and encoding."""
    if isinstance(value, str):
        text = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
        return f'"{text}"'
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int):
        return str(value) if value.bit_length() < 200 else "a huge number"
    if isinstance(value, float):
        return repr(value)
    return "a list" if isinstance(value, list | tuple) else "an object"


class Remarks:
    """Findings in the order in which they were made, each once, and never more than `MAX_FINDINGS`."""

    def __init__(self, findings: Iterable[Finding] = ()) -> None:
        self._found: dict[Finding, None] = dict.fromkeys(findings)
        self._cut = 0

    def add(self, level: Level, finding_id: str, pointer: str, message: str) -> None:
        """Remember a finding."""
        finding = Finding(finding_id, pointer, message, level)
        if len(self._found) < MAX_FINDINGS or finding in self._found:
            self._found[finding] = None
        else:
            self._cut += 1

    def note(self, finding_id: str, pointer: str, message: str) -> None:
        """Odd, without consequence."""
        self.add(Level.NOTE, finding_id, pointer, message)

    def warn(self, finding_id: str, pointer: str, message: str) -> None:
        """Likely a mistake; used as it stands, or ignored where it has no meaning."""
        self.add(Level.WARNING, finding_id, pointer, message)

    def repair(self, finding_id: str, pointer: str, message: str) -> None:
        """Repaired, where the meaning is beyond doubt."""
        self.add(Level.REPAIR, finding_id, pointer, message)

    def error(self, finding_id: str, pointer: str, message: str) -> None:
        """A reason to refuse the document."""
        self.add(Level.ERROR, finding_id, pointer, message)

    def findings(self) -> tuple[Finding, ...]:
        """Return what was found so far."""
        cut: tuple[Finding, ...] = ()
        if self._cut:
            cut = (Finding("findings.cut", "", f"{self._cut} more findings are not listed", Level.NOTE),)
        return (*self._found, *cut)
