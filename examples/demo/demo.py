"""What a naive client and a Cardkeeper client experience while an agent changes behind its version. Under a minute.

Real agents (a2a-sdk), a real service, and real clients, each in a process of its own but for the two that are compared.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "agents"))

from naive import NaiveClient
from process import agent, service
from send import send_task

from cardkeeper_client import (
    ArtifactSchemaDriftError,
    Cardkeeper,
    Resolution,
    SkillRefusedError,
    StaleAgentCardError,
)

SKILL = "summarize-v2"

CASES = {
    "A": ("skill retired: summarize-v2 became summarize-v3", "A"),
    "A'": ("the same, and the agent refuses it with -32602", "A-strict"),
    "B": ("id reused: summarize-v2 now returns text/plain", "B"),
    "C": ("only the description changed", "C"),
    "silent": ("skill retired while nobody calls", "A"),
}


def counts(agent_url: str) -> dict[str, int]:
    """What the agent was asked so far."""
    asked: dict[str, int] = httpx.get(f"{agent_url}/admin/counts", timeout=5.0).json()
    return asked


def change(agent_url: str, variant: str) -> None:
    """Change the agent behind everybody's back."""
    httpx.post(f"{agent_url}/admin/variant/{variant}", timeout=5.0).raise_for_status()


def run_task(resolution: Resolution) -> bytes:
    """What a user of the client writes: send the task, return what came back."""
    return send_task(
        resolution.endpoint_url, resolution.skill_id, protocol_version=resolution.protocol_version or "1.0"
    )


def in_words(answer: dict[str, Any]) -> str:
    """What a client makes of a response by itself."""
    if "error" in answer:
        return f"RPC error {answer['error']['code']} on a skill that its card still has"
    task = answer["result"]["task"]
    if task["status"]["state"] != "TASK_STATE_COMPLETED":
        said = task["status"]["message"]["parts"][0]["text"]
        return f"task accepted, then failed: {said}"
    media_type = task["artifacts"][0]["parts"][0].get("mediaType", "untyped")
    wrong = "" if media_type == "text/markdown" else ": stored, although markdown was promised"
    return f"completed with {media_type}{wrong}"


def guarded(cards: Cardkeeper, agent_url: str) -> str:
    """What a Cardkeeper client experiences."""
    try:
        return in_words(json.loads(cards.call(agent_url, SKILL, run_task)))
    except StaleAgentCardError as error:
        near = f"; did you mean {', '.join(error.near_skill_ids)}?" if error.near_skill_ids else ""
        return f"StaleAgentCardError: the card changed, the skill is gone{near}"
    except ArtifactSchemaDriftError as error:
        return f"ArtifactSchemaDriftError before anything is stored: {error.evidence[0].observed}"
    except SkillRefusedError as error:
        return f"refused before any task is sent; did you mean {', '.join(error.near)}?"


def pushed(other: Cardkeeper, agent_url: str, before: Resolution, deadline: float = 6.0) -> str:
    """What a second client, which neither called nor fetched, knows by now."""
    until = time.monotonic() + deadline
    while time.monotonic() < until:
        try:
            now = other.resolve(agent_url, SKILL)
        except SkillRefusedError:
            return "told by push: the skill is gone"
        if now.sequence != before.sequence:
            same = now.skill_fingerprint == before.skill_fingerprint
            return "told by push: wording only, same fingerprint" if same else "told by push: another fingerprint"
        time.sleep(0.05)
    return "not told"


def show(case: str, target: str, settle: Callable[[], None]) -> list[str]:
    """Play one variant against a fresh agent, and return the row."""
    title, variant = CASES[case]
    with agent() as agent_url, Cardkeeper(target) as cards, Cardkeeper(target) as other:
        naive = NaiveClient()
        naive.run(agent_url, SKILL)
        cards.call(agent_url, SKILL, run_task)
        other.wait_until_in_sync()
        held = other.resolve(agent_url, SKILL)
        asked = counts(agent_url)["cards"]
        change(agent_url, variant)
        if case in ("C", "silent"):
            settle()  # nobody reports anything: the background refresh finds it
            told = pushed(other, agent_url, held)
        mine = guarded(cards, agent_url)
        if case not in ("C", "silent"):
            told = pushed(other, agent_url, held)
        fetched = counts(agent_url)["cards"] - asked
        his = in_words(naive.run(agent_url, SKILL))
        return [f"{case}: {title}", his, f"{mine}\nanother client: {told}\ncard fetches: {fetched}"]


def main() -> None:
    """Play every variant and print what happened."""
    console = Console()
    console.print("Agents change behind an unmoved version. What does a client experience that ...\n")
    table = Table(show_lines=True)
    for column, width in (("the agent", 20), ("caches cards for five minutes", 22), ("asks Cardkeeper", 28)):
        table.add_column(column, width=width)
    # Two-second lifetimes, so that the background refresh can be watched; five minutes are the default.
    with service("--soft-ttl", "2") as target:
        for case in CASES:
            console.print(f"  playing {case}: {CASES[case][0]}")
            table.add_row(*show(case, target, settle=lambda: time.sleep(3.0)))
    console.print()
    console.print(table)
    console.print(
        "\nCard fetches are what Cardkeeper asked of the agent after it changed, for both of its clients together: one on "
        "evidence, and where there is none, its own gentle refresh. Its clients never fetch."
    )


if __name__ == "__main__":
    main()
