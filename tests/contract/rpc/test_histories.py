"""Real histories of real cards, served over HTTP to a running service: each step as a reader of the two files would class it.

`tests/data/histories.tsv` was made by a script that knows nothing of this code, and read over by eye: per step whether the
surface changed, silently or not, and which of the classes that concern it.
"""

from pathlib import Path

import pytest

from card_server import CARD, card_server
from cardkeeper.card.compare import compare
from cardkeeper.cli.cards import _read, _step
from cardkeeper.fetch.ip_policy import EgressPolicy
from cardkeeper.fleet.policy import FleetPolicy
from cardkeeper.settings import Settings
from cardkeeper.v1 import change_pb2
from cardkeeper.v1 import fleet_service_pb2 as pb
from contract_requests import ref
from rpc_errors import failure
from running_service import running_service

ROOT = Path(__file__).resolve().parents[3]
HISTORIES = ROOT.parent / "shared" / "corpus" / "histories"
SURFACE = {"skill_removed", "skill_added", "skill_narrowed", "skill_widened", "capability_lost", "capability_gained"}

pytestmark = pytest.mark.skipif(not HISTORIES.exists(), reason="the shared corpus is not here")


def table() -> dict[str, list[list[str]]]:
    histories: dict[str, list[list[str]]] = {}
    for line in (ROOT / "tests" / "data" / "histories.tsv").read_text().splitlines()[1:]:
        name, *step = line.split("\t")
        histories.setdefault(name, []).append(step)
    return histories


def classes(changes: change_pb2.ChangeSet) -> set[str]:
    names = {change_pb2.ChangeKind.Name(item.kind).removeprefix("CHANGE_KIND_").lower() for item in changes.changes}
    return names & SURFACE


async def test_histories_replayed_through_a_running_service() -> None:
    settings = Settings(egress=EgressPolicy(allow_loopback=True), fleet=FleetPolicy(agent_refetch_burst=100_000))
    seen = 0
    async with card_server() as served, running_service(settings) as service:
        for number, (name, steps) in enumerate(table().items()):
            folder = HISTORIES / name
            assert [step[0] for step in steps] == sorted(path.name for path in folder.iterdir())
            agent = f"{served.url}/agents/{number}"
            for file, surface, silent, version, expected in steps:
                served.serve((folder / file).read_bytes(), f"/agents/{number}{CARD}")
                if surface in ("first", "refused"):
                    registered = await service.fleet.RegisterAgent(pb.RegisterAgentRequest(agent_url=agent))
                    assert bool(registered.agent.skill_fingerprint) == (surface == "first"), (name, file)
                    continue
                answer = await service.fleet.RefreshAgent(pb.RefreshAgentRequest(agent=ref(agent)))
                found = answer.changes
                changed = found.previous_skill_fingerprint != found.skill_fingerprint
                got = (changed, found.silent, found.version_changed, classes(found))
                wanted = (surface == "changed", bool(silent), bool(version), set(filter(None, expected.split(","))))
                assert got == wanted, (name, file)
                seen += changed
        stats = await service.fleet.GetFleetStats(pb.GetFleetStatsRequest())
        assert stats.changes == seen
    assert seen > 30


def test_replay_on_the_command_line_says_the_same() -> None:
    for name, steps in table().items():
        held = None
        for file, surface, silent, version, expected in steps:
            card, _, _ = _read((HISTORIES / name / file).read_bytes(), "")
            assert (card is None) == (surface == "refused"), (name, file)
            if card is None:
                continue
            step = _step(file, card, compare(held, card) if held else None)
            held = card
            if surface != "first":
                assert step["surface_changed"] == (surface == "changed"), (name, file)
                assert (step["silent"], step["version_changed"]) == (bool(silent), bool(version)), (name, file)
                assert set(step["classes"]) & SURFACE == set(filter(None, expected.split(","))), (name, file)


async def test_a_history_whose_cards_are_none_leaves_nothing_behind() -> None:
    refused = next(name for name, steps in table().items() if all(step[1] == "refused" for step in steps))
    async with card_server() as served, running_service(Settings(egress=EgressPolicy(allow_loopback=True))) as service:
        served.serve(next((HISTORIES / refused).iterdir()).read_bytes())
        failed = await failure(service.fleet.GetCard(pb.GetCardRequest(agent=ref(served.url))))
        assert failed.reason == "AGENT_UNKNOWN"
