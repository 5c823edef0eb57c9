"""`cardkeeper judge`: the evidence rules over a file of labelled outcomes, without a service."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from cardkeeper.card.parse import normalise
from cardkeeper.cli.connection import REFUSED, USAGE, AsJson, print_json, stop
from cardkeeper.cli.source import read
from cardkeeper.drift.evidence import find_evidence
from cardkeeper.drift.model import Binding, Call, Evidence
from cardkeeper.drift.outcome import Observation, observe
from cardkeeper.drift.pattern import Patterns, load_patterns
from cardkeeper.errors import CardkeeperError

app = typer.Typer()

UNTYPED = "_UNTYPED"
"""Suffix in labels for evidence of a part that states no type of its own."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One case: what a careful reader finds, and what the rules find."""

    id: str
    expected: frozenset[str]
    found: frozenset[str]
    rules: tuple[str, ...]

    @property
    def missed(self) -> frozenset[str]:
        """Evidence that the rules do not find."""
        return self.expected - self.found

    @property
    def false_alarms(self) -> frozenset[str]:
        """Evidence that nobody else finds."""
        return self.found - self.expected


@app.command()
def judge(
    file: Annotated[str, typer.Argument(help="JSON Lines, a labelled case a line; - for standard input.")],
    patterns: Annotated[Path | None, typer.Option(help="TOML file of text patterns, beside the built-in ones.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run the evidence rules over labelled outcomes; print misses, false alarms, precision and recall.

    Exit 1 where there is any miss or false alarm. A case has `card`, `skill_id`, `call`, `binding`, `outcome` and `evidence`.
    """
    try:
        rules = load_patterns(read(str(patterns)).decode("utf-8", "replace") if patterns else None)
    except CardkeeperError as error:
        stop(error.message, USAGE)
    cases = [
        _judge(number, line, rules)
        for number, line in enumerate(read(file).decode("utf-8", "replace").splitlines(), start=1)
        if line.strip()
    ]
    hits = sum(len(case.expected & case.found) for case in cases)
    misses = sum(len(case.missed) for case in cases)
    false_alarms = sum(len(case.false_alarms) for case in cases)
    precision = hits / (hits + false_alarms) if hits + false_alarms else 1.0
    recall = hits / (hits + misses) if hits + misses else 1.0
    wrong = [case for case in cases if case.missed or case.false_alarms]
    if as_json:
        print_json(
            {
                "cases": len(cases),
                "hits": hits,
                "misses": misses,
                "false_alarms": false_alarms,
                "precision": precision,
                "recall": recall,
                "wrong": [_as_dict(case) for case in wrong],
            }
        )
    else:
        _print(wrong)
        print(f"{len(cases)} cases: {hits} found, {misses} missed, {false_alarms} false alarms")
        print(f"precision {precision:.3f}, recall {recall:.3f}")
    if wrong:
        raise typer.Exit(REFUSED)


def _judge(number: int, line: str, rules: Patterns) -> Judged:
    try:
        case = json.loads(line)
        card = normalise(case["card"])
        evidence = find_evidence(card, _call(case), _observation(case), rules)
        expected = frozenset(str(kind) for kind in case["evidence"])
    except CardkeeperError as error:
        stop(f"line {number}: {error.message}", USAGE)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        stop(f"line {number} is no labelled outcome: {type(error).__name__} {str(error)[:100]}", USAGE)
    found = frozenset(_label(item) for item in evidence)
    return Judged(str(case.get("id", number)), expected, found, tuple(item.rule for item in evidence))


def _label(evidence: Evidence) -> str:
    return evidence.kind.value + (UNTYPED if evidence.untyped else "")


def _call(case: dict[str, Any]) -> Call:
    call = case.get("call") or {}
    return Call(
        skill_id=case["skill_id"],
        method=call.get("method", ""),
        input_modes=tuple(call.get("input_modes", ())),
        accepted_output_modes=tuple(call.get("accepted_output_modes", ())),
        streaming=bool(call.get("streaming")),
        push_notifications=bool(call.get("push")),
        protocol_version=call.get("version", ""),
        extensions=tuple(call.get("extensions", ())),
    )


def _observation(case: dict[str, Any]) -> Observation:
    outcome = case["outcome"]
    if case.get("binding") == "http+json":
        return observe(outcome.get("body"), binding=Binding.HTTP_JSON, http_status=outcome["http_status"])
    if case.get("binding") == "grpc":
        return observe(outcome.get("status", outcome), binding=Binding.GRPC, grpc_code=outcome.get("grpc_code"))
    return observe(outcome, binding=Binding.JSONRPC)


def _as_dict(case: Judged) -> dict[str, Any]:
    return {
        "id": case.id,
        "missed": sorted(case.missed),
        "false_alarms": sorted(case.false_alarms),
        "rules": list(case.rules),
    }


def _print(wrong: list[Judged]) -> None:
    table = Table("case", "missed", "false alarms", "rules that fired", box=None)
    for case in wrong:
        table.add_row(
            case.id, ", ".join(sorted(case.missed)), ", ".join(sorted(case.false_alarms)), ", ".join(case.rules)
        )
    if wrong:
        Console(highlight=False).print(table)
