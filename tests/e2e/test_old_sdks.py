"""Agents on the SDKs of earlier generations, each in an environment of its own, over real HTTP.

0.2 serves `agent.json` alone and no media type with text; 0.3 serves both names. Neither sends a validator.
"""

import fcntl
import json
import subprocess
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from process import started
from send import send_task

from cardkeeper_client import (
    AgentContradictsCardError,
    ArtifactSchemaDriftError,
    Cardkeeper,
    Resolution,
    StaleAgentCardError,
)
from cardkeeper_client.v1 import discovery_service_pb2, verdict_pb2

HERE = Path(__file__).parent
PEERS = HERE.parents[1] / "build" / "peers"
SKILL = "summarize-v2"
VERSIONS = {"0.2.16": "0.2", "0.3.26": "0.3"}


def environment(version: str) -> Path:
    """The interpreter of an environment that has that SDK; made once, whoever comes first."""
    home = PEERS / version
    PEERS.mkdir(parents=True, exist_ok=True)
    with (PEERS / f"{version}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "ready").exists():
            venv.create(home, clear=True, with_pip=True)
            packages = [f"a2a-sdk[http-server]=={version}", "uvicorn", "starlette", "sse-starlette"]
            subprocess.run([home / "bin" / "pip", "install", "--quiet", *packages], check=True, timeout=300)
            (home / "ready").touch()
    return home / "bin" / "python"


@pytest.fixture(params=VERSIONS)
def old(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """An old agent's URL, and the protocol version that its card should be read as."""
    with started(str(environment(request.param)), str(HERE / "old_agent.py")) as (url, _):
        yield url, VERSIONS[request.param]


def send(resolution: Resolution, text: str = "a long text") -> bytes:
    """Send a task as a client of that generation does."""
    return send_task(resolution.endpoint_url, resolution.skill_id, protocol_version="0.3", text=text)


def become(url: str, variant: str) -> None:
    httpx.post(f"{url}/admin/variant/{variant}", timeout=5.0).raise_for_status()


def fetched(url: str) -> int:
    return int(httpx.get(f"{url}/admin/counts", timeout=5.0).json()["cards"])


@pytest.mark.timeout(400)
def test_an_old_agent_resolves_and_what_it_sends_without_a_type_is_its_habit(old: tuple[str, str], target: str) -> None:
    url, version = old
    with Cardkeeper(target) as cards:
        held = cards.resolve(url, SKILL)
        assert (held.protocol_binding, held.protocol_version) == ("JSONRPC", version)
        assert held.output_modes == ("text/markdown",)
        done = json.loads(cards.call(url, SKILL, send))
        assert done["result"]["status"]["state"] == "completed"


@pytest.mark.timeout(400)
@pytest.mark.parametrize("variant", ["A", "A-strict"])
def test_an_old_agent_that_retires_its_skill_is_found_by_how_it_fails(
    old: tuple[str, str], target: str, variant: str
) -> None:
    url, _ = old
    with Cardkeeper(target) as cards:
        held = cards.resolve(url, SKILL)
        asked = fetched(url)
        become(url, variant)
        answer = json.loads(send(held))
        assert (
            answer["error"]["code"] == -32602
            if variant == "A-strict"
            else answer["result"]["status"]["state"] == "failed"
        )
        with pytest.raises(StaleAgentCardError) as caught:
            cards.call(url, SKILL, send)
        assert caught.value.judgement.changes.silent
        assert caught.value.near_skill_ids == ["summarize-v3"]
        assert caught.value.evidence[0].kind == verdict_pb2.EVIDENCE_KIND_UNKNOWN_SKILL
        assert fetched(url) == asked + 1


@pytest.mark.timeout(400)
@pytest.mark.parametrize("text", ["answer as text", "answer as a file"])
def test_an_old_agent_that_reuses_its_skill_id_is_found_by_what_it_returns(
    old: tuple[str, str], target: str, text: str
) -> None:
    url, _ = old
    with Cardkeeper(target) as cards:
        cards.resolve(url, SKILL)
        asked = fetched(url)
        become(url, "B")
        with pytest.raises(ArtifactSchemaDriftError) as caught:
            cards.call(url, SKILL, lambda resolution: send(resolution, text))
        assert caught.value.judgement.verdict == verdict_pb2.VERDICT_CARD_CHANGED
        assert caught.value.evidence[0].kind == verdict_pb2.EVIDENCE_KIND_ARTIFACT_TYPE
        assert fetched(url) == asked + 1


@pytest.mark.timeout(400)
def test_strict_refuses_what_an_old_agent_sends_without_a_type(old: tuple[str, str], target: str) -> None:
    url, _ = old
    with Cardkeeper(target) as cards:
        held = cards.resolve(url, SKILL)
        answer: Any = send(held)
        strict = cards.validate(held, answer, policy=discovery_service_pb2.ARTIFACT_POLICY_STRICT, raise_on_drift=False)
        assert not strict.accepted
        assert cards.validate(held, answer).accepted
        with pytest.raises(AgentContradictsCardError):
            cards.report(held, '{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unknown skill"}}')
