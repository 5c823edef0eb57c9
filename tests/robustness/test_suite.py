"""The robustness suite itself, short: real processes under faults, every client judged by the log."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("processes")

TESTS = Path(__file__).parent.parent
CLIENT = TESTS.parent / "clients/python/src"


@pytest.mark.timeout(150)
async def test_a_short_run_under_faults_violates_nothing() -> None:
    path = os.pathsep.join(map(str, (TESTS, TESTS / "support", CLIENT)))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "robustness", "--seed", "1", "--seconds", "15"),
        env={**os.environ, "PYTHONPATH": path},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
