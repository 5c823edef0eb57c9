"""`python -m robustness --seed 7 --seconds 60 [--seeds 5]`: exit 0 if nothing was violated, 1 if something was."""

import argparse
import asyncio
import sys
import tempfile
from collections import Counter
from pathlib import Path

from robustness.log_reader import LogLost
from robustness.plan import make_plan
from robustness.run import Outcome, Run
from robustness.service import ServiceFailed
from trace_record import Synced

CONTEXT = 12
"""Steps of a record that are printed before a violation."""


def main() -> int:
    """Run one seed after the other; the first that fails ends it, and its folder is kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds")
    parser.add_argument("--seconds", type=float, default=60.0, help="of faults, for each seed")
    args = parser.parse_args()
    for seed in range(args.seed, args.seed + args.seeds):
        folder = Path(tempfile.mkdtemp(prefix=f"robustness-{seed}-"))
        plan = make_plan(seed, args.seconds)
        _say(f"seed {seed}: {plan.agents} agents, history {plan.history}, {plan.watchers} watchers a process")
        try:
            outcome = asyncio.run(Run(plan, folder).carry_out())
        except (ServiceFailed, LogLost) as error:
            _say(f"seed {seed} FAILED: {error}\nkept: {folder}")
            return 1
        _report(outcome)
        if outcome.violations or outcome.complaints:
            _say(f"seed {seed} FAILED; replay: --seed {seed} --seconds {args.seconds:g}\nkept: {folder}")
            return 1
        _remove(folder)
    return 0


def _say(text: str) -> None:
    print(text, flush=True)


def _report(outcome: Outcome) -> None:
    steps = Counter(type(step).__name__ for record in outcome.records for step in record.steps)
    faults = ", ".join(f"{count} x {fault}" for fault, count in outcome.faults.items())
    _say(f"  {len(outcome.history.epochs)} epochs, {outcome.revisions} revisions; faults: {faults}")
    _say(f"  {len(outcome.records)} clients: {', '.join(f'{count} {name}' for name, count in steps.most_common())}")
    _say(f"  calls: {', '.join(f'{count} {name}' for name, count in sorted(outcome.calls.items()))}")
    _say(f"  {len(outcome.violations)} violations, {len(outcome.complaints)} complaints")
    for complaint in outcome.complaints[:20]:
        _say(f"  complaint: {complaint}")
    for violation in outcome.violations[:10]:
        _say(f"  {violation}")
    if outcome.violations:
        _report_context(outcome)


def _report_context(outcome: Outcome) -> None:
    """The steps that led to the first violation, and the log around them."""
    first = outcome.violations[0]
    record = next((item for item in outcome.records if item.client == first.client), None)
    if record is None:
        return
    for index in range(max(0, first.step - CONTEXT), first.step + 1):
        _say(f"    {record.client}[{index}] {record.steps[index]}")
    claim = record.steps[first.step]
    at = getattr(claim, "at", None)
    if at is not None and not isinstance(claim, Synced):
        epoch = outcome.history.epoch(at.epoch)
        for entry in epoch.between(at.sequence - CONTEXT, at.sequence + 1):
            _say(f"    log {entry.sequence} {entry.kind} {entry.agent} severity {entry.severity}")


def _remove(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()


if __name__ == "__main__":
    sys.exit(main())
