"""Real agents, a real service process, and real HTTP between them."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from process import agent, service
from send import send_task

from cardkeeper_client import Cardkeeper, Resolution


class Agent:
    """An agent in a process of its own, and its back door."""

    def __init__(self, url: str) -> None:
        self.url = url

    def become(self, variant: str) -> None:
        httpx.post(f"{self.url}/admin/variant/{variant}", timeout=5.0).raise_for_status()

    @property
    def fetched(self) -> int:
        """How often its card was asked for."""
        return int(httpx.get(f"{self.url}/admin/counts", timeout=5.0).json()["cards"])

    @staticmethod
    def run(resolution: Resolution) -> bytes:
        return send_task(resolution.endpoint_url, resolution.skill_id, protocol_version=resolution.protocol_version)


@pytest.fixture
def peer() -> Iterator[Agent]:
    with agent() as url:
        yield Agent(url)


@pytest.fixture
def target() -> Iterator[str]:
    with service() as address:
        yield address


@pytest.fixture
def cards(target: str) -> Iterator[Cardkeeper]:
    with Cardkeeper(target) as client:
        yield client


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state.db"
