"""`cardkeeper lint | fingerprint | diff | replay`: the rules for cards, on files and URLs, without a service."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cardkeeper.card.change import Change, ChangeSet, Severity
from cardkeeper.card.compare import compare
from cardkeeper.card.finding import Finding, Level
from cardkeeper.card.fingerprint import canonical_document, fingerprint_document
from cardkeeper.card.model import Card
from cardkeeper.card.parse import normalise, parse_card
from cardkeeper.card.read import read_document
from cardkeeper.cli.connection import REFUSED, USAGE, AsJson, print_json, stop
from cardkeeper.cli.source import load
from cardkeeper.errors import CardInvalid

app = typer.Typer()

Source = Annotated[str, typer.Argument(help="File, URL of the agent or of its card, or - for standard input.")]

_COLOURS = {Severity.BREAKING: "red", Severity.COMPATIBLE: "green", Severity.COSMETIC: "dim", Severity.NONE: ""}
_LEVELS = {Level.ERROR: "red", Level.REPAIR: "yellow", Level.WARNING: "yellow", Level.NOTE: "dim"}


class FailOn(StrEnum):
    """From which severity on a difference fails a gate."""

    BREAKING = "breaking"
    COMPATIBLE = "compatible"
    COSMETIC = "cosmetic"
    NEVER = "never"


@app.command()
def lint(source: Source, as_json: AsJson = False) -> None:
    """Say what is repaired, odd, or wrong in a card. Exit 1 where it is refused."""
    body, card_url = load(source)
    card, findings, refusal = _read(body, card_url)
    if as_json:
        print_json(
            {
                "accepted": card is not None,
                "dialect": card.dialect.value if card else "",
                "skills": [skill.id for skill in card.skills] if card else [],
                "refusal": refusal,
                "findings": [_finding(finding) for finding in findings],
            }
        )
    else:
        table = Table("level", "finding", "where", "what", box=None)
        for finding in sorted(findings, key=lambda item: -item.level):
            level = Text(finding.level.name.lower(), style=_LEVELS[finding.level])
            table.add_row(level, finding.id, finding.pointer or "/", finding.message)
        if findings:
            _console().print(table)
        if card is None:
            print(f"refused: {refusal}")
        else:
            print(f"accepted: A2A {card.dialect.value}, {len(card.skills)} skills, {len(findings)} findings")
    if card is None:
        raise typer.Exit(REFUSED)


@app.command()
def fingerprint(source: Source, as_json: AsJson = False) -> None:
    """Print the skill fingerprint of a card, and the canonical negotiation surface that it is the SHA-256 of.

    Works on any JSON object, so that a card can be fingerprinted before it is complete.
    """
    body, _ = load(source)
    try:
        document, _ = read_document(body)
    except CardInvalid as error:
        stop(error.message, REFUSED)
    digest, canonical = fingerprint_document(document), canonical_document(document)
    if as_json:
        print_json({"skill_fingerprint": digest, "canonical": canonical})
    else:
        print(f"{digest}\n{canonical}")


@app.command()
def diff(
    old: Source,
    new: Source,
    fail_on: Annotated[
        FailOn, typer.Option(help="Exit 1 from this severity on: a gate for deployments.")
    ] = FailOn.BREAKING,
    as_json: AsJson = False,
) -> None:
    """Class the differences between two cards. Exit 1 where they reach --fail-on."""
    changes = compare(_card(old), _card(new))
    if as_json:
        print_json(_change_set(changes))
    else:
        _print_changes(changes)
    if fail_on is not FailOn.NEVER and changes.severity >= Severity[fail_on.name]:
        raise typer.Exit(REFUSED)


@app.command()
def replay(
    directory: Annotated[Path, typer.Argument(help="Folder whose files, by name, are one agent's cards in time.")],
    as_json: AsJson = False,
) -> None:
    """Take the files of a folder as one agent's history, and say what each step changed.

    A file that is no usable card changes nothing: the last good card stays, as in the service.
    """
    try:
        files = sorted(path for path in directory.iterdir() if path.is_file())
    except OSError as error:
        stop(f"cannot read {directory}: {error.strerror}", USAGE)
    held: Card | None = None
    steps = []
    for path in files:
        card, _, refusal = _read(path.read_bytes(), "")
        if card is None:
            steps.append({"file": path.name, "refused": refusal})
            continue
        changes = compare(held, card) if held else None
        steps.append(_step(path.name, card, changes))
        held = card
    if as_json:
        print_json(steps)
        return
    table = Table("file", "surface", "severity", "classes", "version", "silent", box=None)
    for step in steps:
        if "refused" in step:
            table.add_row(step["file"], Text("refused", style="red"), "", str(step["refused"])[:80], "", "")
        else:
            surface = Text("changed", style="yellow") if step["surface_changed"] else Text("same", style="dim")
            silent = Text("SILENT", style="red") if step["silent"] else ""
            moved = "moved" if step["version_changed"] else ""
            table.add_row(step["file"], surface, step["severity"], ", ".join(step["classes"]), moved, silent)
    _console().print(table)


def _read(body: bytes, card_url: str) -> tuple[Card | None, tuple[Finding, ...], str]:
    """The card, or None and why not; the findings in either case."""
    try:
        card = parse_card(body, card_url)
    except CardInvalid as error:
        return None, error.findings, error.message
    return card, card.findings, ""


def _card(source: str) -> Card:
    """A card to compare. What is no whole card is compared by what it has, where it is an object at all."""
    body, card_url = load(source)
    try:
        document, findings = read_document(body)
        return normalise(document, card_url, findings)
    except CardInvalid as error:
        stop(f"{source} is refused: {error.message}", USAGE)


def _step(name: str, card: Card, changes: ChangeSet | None) -> dict[str, Any]:
    return {
        "file": name,
        "skill_fingerprint": card.skill_fingerprint,
        "version": card.version,
        "surface_changed": changes is not None and changes.surface_changed,
        "severity": changes.severity.name.lower() if changes else "none",
        "classes": list(dict.fromkeys(change.kind.value for change in changes.changes)) if changes else [],
        "version_changed": changes is not None and changes.version_changed,
        "silent": changes is not None and changes.silent,
        "changes": [_change(change) for change in changes.changes] if changes else [],
    }


def _change_set(changes: ChangeSet) -> dict[str, Any]:
    return {
        "previous_skill_fingerprint": changes.previous_skill_fingerprint,
        "skill_fingerprint": changes.skill_fingerprint,
        "surface_changed": changes.surface_changed,
        "severity": changes.severity.name.lower(),
        "version_changed": changes.version_changed,
        "silent": changes.silent,
        "changes": [_change(change) for change in changes.changes],
    }


def _change(change: Change) -> dict[str, str]:
    return {
        "kind": change.kind.value,
        "severity": change.severity.name.lower(),
        "skill_id": change.skill_id,
        "pointer": change.pointer,
        "before": change.before,
        "after": change.after,
    }


def _finding(finding: Finding) -> dict[str, str]:
    return {
        "id": finding.id,
        "level": finding.level.name.lower(),
        "pointer": finding.pointer,
        "message": finding.message,
    }


def _print_changes(changes: ChangeSet) -> None:
    table = Table("severity", "change", "where", "before", "after", box=None)
    for change in changes.changes:
        severity = Text(change.severity.name.lower(), style=_COLOURS[change.severity])
        table.add_row(severity, change.kind.value, change.pointer or "/", change.before, change.after)
    if changes.changes:
        _console().print(table)
    surface = "changed" if changes.surface_changed else "is the same"
    silent = ", and version did not move: a silent mutation" if changes.silent else ""
    print(f"the negotiation surface {surface}{silent}; {changes.severity.name.lower()}")


def _console() -> Console:
    return Console(highlight=False)
