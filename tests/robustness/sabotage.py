"""`python -m robustness.sabotage`: does the suite notice a service that breaks its promises?

Each sabotage is one small wrong change of the service or of the Python client, made in a copy of it. The suite must fail on
every one: exit 0 if it did.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Sabotage:
    """Put `wrong` in the place of `right`."""

    name: str
    file: str
    right: str
    wrong: str
    package: str = "cardkeeper"


SABOTAGES = (
    Sabotage(
        "a slow client loses what was pending",
        "fleet/mailbox.py",
        "self._pending[key] = merge(earlier, event) if earlier else event",
        "self._pending = {key: event}",
    ),
    Sabotage(
        "pending events lose their order",
        "fleet/mailbox.py",
        "return list(pending.values())",
        "return list(reversed(pending.values()))",
    ),
    Sabotage(
        "removals are filtered by severity",
        "fleet/subscription.py",
        "if event.kind in (EventKind.REMOVED, EventKind.SUSPECTED):",
        "if event.kind is EventKind.SUSPECTED:",
    ),
    Sabotage(
        "a filter lets milder changes pass",
        "fleet/subscription.py",
        "if event.changes.severity < self.min_severity:",
        "if event.changes.severity < self.min_severity - 1:",
    ),
    Sabotage(
        "a resuming client misses the first revision",
        "fleet/difference.py",
        "events_after(resume_from.sequence)",
        "events_after(resume_from.sequence + 1)",
    ),
    Sabotage(
        "another epoch is taken for this one",
        "fleet/difference.py",
        "if resume_from.epoch != registry.revisions.epoch or resume_from.sequence > upto:",
        "if resume_from.sequence > upto:",
    ),
    Sabotage(
        "a removal that history forgot is not told",
        "fleet/difference.py",
        "        return [_gone(registry, agent_id, held)] if _may_cover(subscription, agent_id) else []",
        "        return []",
    ),
    Sabotage(
        "Synced comes before the difference",
        "rpc/watch.py",
        "        events = [*missed.events(self._registry, subscription), *self._mailbox.take()]",
        "        events = [*missed.events(self._registry, subscription), *self._mailbox.take()]\n"
        "        await self._write(self._frames.synced(head, subscription.id, count), head.sequence)",
    ),
    Sabotage(
        "a subscription is in force only after its difference was loaded",
        "rpc/watch.py",
        "        self._fanout.subscribe(self._mailbox, subscription)\n"
        "        self._needs = self._all_needs()\n"
        "        missed = await load_missed(self._registry, subscription, resume_from, held)\n",
        "        missed = await load_missed(self._registry, subscription, resume_from, held)\n"
        "        await asyncio.sleep(0.05)\n"
        "        self._fanout.subscribe(self._mailbox, subscription)\n"
        "        self._needs = self._all_needs()\n",
    ),
    Sabotage(
        "a revision is acknowledged that is not on the disk",
        "fleet/registry.py",
        "event = await self.store.commit(commit)",
        "event = replace(commit.event, sequence=self.revisions.sequence + 1)",
    ),
    Sabotage(
        "a suspicion is told once, not to those who come later",
        "fleet/difference.py",
        "if state.record.suspicion is not None and subscription.covers",
        "if False and subscription.covers",
    ),
    Sabotage(
        "a change is published before the state is swapped",
        "fleet/registry.py",
        "                self._put(replace(commit.record, sequence=event.sequence), card)\n"
        "            self.revisions.append(event)\n",
        "                pass\n"
        "            self.revisions.append(event)\n"
        "            await asyncio.sleep(0.2)\n"
        "            if commit.record is not None:\n"
        "                self._put(replace(commit.record, sequence=event.sequence), card)\n",
    ),
    Sabotage(
        "the near cache overhears an invalidation",
        "session.py",
        "                self._cache.invalidate(told.agent, _sequence(told.agent_revision, frame))",
        "                self._cache.invalidate(told.agent, _sequence(told.agent_revision, frame) - 9)",
        package="cardkeeper_client",
    ),
)


def main() -> int:
    """Try every sabotage, or those whose names contain a word."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a word of the names")
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--seeds", type=int, default=4, help="seeds to try before a sabotage counts as unnoticed")
    args = parser.parse_args()
    unnoticed = 0
    for sabotage in SABOTAGES:
        if args.only in sabotage.name:
            noticed = _noticed(sabotage, args.seconds, args.seeds)
            unnoticed += not noticed
            _say(f"{'noticed' if noticed else 'UNNOTICED'}: {sabotage.name}")
    return 1 if unnoticed else 0


def _noticed(sabotage: Sabotage, seconds: float, seeds: int) -> bool:
    with tempfile.TemporaryDirectory(prefix="sabotage-") as folder:
        copy = Path(folder) / sabotage.package
        shutil.copytree(Path(str(import_module(sabotage.package).__file__)).parent, copy)
        file = copy / sabotage.file
        text = file.read_text("utf-8")
        if text.count(sabotage.right) != 1:
            raise SystemExit(f"{sabotage.name}: {sabotage.file} does not hold once: {sabotage.right!r}")
        file.write_text(text.replace(sabotage.right, sabotage.wrong), "utf-8")
        path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
        words = ("-m", "robustness", "--seed", "1", "--seeds", str(seeds), "--seconds", str(seconds))
        run = subprocess.run(
            (sys.executable, *words), env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
        )
    return run.returncode == 1 and "FAILED" in run.stdout


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
