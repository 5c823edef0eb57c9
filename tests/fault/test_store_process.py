"""The embedded store in processes of its own: kill -9 at any moment, a second process, a limit on the file's size."""

import asyncio
import random
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import store_committer
from cardkeeper.store.base import StoreUnavailable
from cardkeeper.store.sqlite import SqliteStore
from store_committer import HISTORY

COMMITTER = [sys.executable, store_committer.__file__]
KILLS = 20


@dataclass
class Acknowledged:
    """What the children said that the store took."""

    epoch: str = ""
    last: int = 0
    drift_number: int = 0
    agents: dict[int, str] = field(default_factory=dict)
    """Agent by sequence."""
    digests: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Of each agent the newest sequence and digest; "-": removed."""
    refusals: list[str] = field(default_factory=list)

    def hear(self, output: str) -> None:
        """Take in what a child said; a last line that was cut off is no statement."""
        for line in output.splitlines(keepends=True):
            match line.split(" ", 1) if line.endswith("\n") else []:
                case ["open", words]:
                    epoch, sequence = words.split()
                    assert self.epoch in ("", epoch)
                    assert self.last == int(sequence)
                    self.epoch = epoch
                case ["ack", words]:
                    sequence, agent, digest, number = words.split()
                    self.take(int(sequence), agent, digest, int(number))
                case ["refused", words]:
                    self.refusals.append(words)

    def take(self, sequence: int, agent: str, digest: str, drift_number: int) -> None:
        """A commit is there."""
        assert sequence == self.last + 1
        self.last = sequence
        self.drift_number = max(self.drift_number, drift_number)
        self.agents[sequence] = agent
        self.digests[agent] = (sequence, digest)


async def verify(path: Path, acknowledged: Acknowledged) -> None:
    """Every acknowledged commit is there, whole; one that was in flight may be; nothing else is."""
    store = SqliteStore(path, HISTORY)
    image = await store.open()
    assert acknowledged.epoch in ("", image.epoch)
    assert acknowledged.last <= image.sequence <= acknowledged.last + 1
    records = {record.id: record for record in image.agents}
    log = await store.events_after(max(0, image.sequence - HISTORY.events))
    assert [event.sequence for event in log] == list(range(image.sequence - len(log) + 1, image.sequence + 1))
    assert len(log) == min(image.sequence, HISTORY.events)
    if image.sequence > acknowledged.last:
        agent = log[-1].agent
        acknowledged.take(image.sequence, agent, records[agent].card_digest if agent in records else "-", 0)
    assert [acknowledged.agents[event.sequence] for event in log] == [event.agent for event in log]
    held = {record.id: (record.sequence, record.card_digest) for record in image.agents}
    assert held == {agent: fact for agent, fact in acknowledged.digests.items() if fact[1] != "-"}
    for record in image.agents:
        listed = await store.cards(record.id, before=0, limit=99)
        assert 1 <= len(listed) <= HISTORY.cards_per_agent
        assert (listed[0].sequence, listed[0].card_digest) == held[record.id]
        for card in listed:
            body = (await store.card(record.id, card.card_digest)).body
            assert body
            assert body == card.card_digest.encode() * (len(body) // len(card.card_digest))
    drift = await store.drift("", before=0, limit=99)
    assert acknowledged.drift_number <= (drift[0].number if drift else 0) <= acknowledged.drift_number + 1
    acknowledged.drift_number = drift[0].number if drift else 0
    await store.close()


def copied(path: Path, to: Path) -> Path:
    """Copy a store as its dead process left it, so that verifying leaves the original for the next process to recover."""
    to.mkdir()
    for suffix in ("", "-wal", ".lock"):
        if Path(f"{path}{suffix}").exists():
            shutil.copy(f"{path}{suffix}", f"{to / path.name}{suffix}")
    return to / path.name


def kill_once(path: Path, after: float, *, opened: bool) -> str:
    """Let a child commit, kill it `after` seconds past its start or past its opening, and return what it said."""
    with subprocess.Popen([*COMMITTER, path], stdout=subprocess.PIPE, text=True) as child:
        first = child.stdout.readline() if opened else ""
        time.sleep(after)
        child.kill()
        return first + child.stdout.read()


async def test_whatever_was_acknowledged_survives_kill_9_in_the_same_epoch(tmp_path: Path):
    path, acknowledged = tmp_path / "store.db", Acknowledged()
    moments = random.Random(20)  # noqa: S311 - a schedule, no secret
    for number in range(KILLS):
        opened = number % 4 != 3  # the fourth dies while it starts or opens
        after = moments.uniform(0, 0.25) if opened else moments.uniform(0.1, 0.4)
        acknowledged.hear(await asyncio.to_thread(kill_once, path, after, opened=opened))
        await verify(copied(path, tmp_path / str(number)), acknowledged)
    assert acknowledged.last > 10 * KILLS


async def test_a_second_process_is_refused_until_the_first_one_is_dead(tmp_path: Path):
    path = tmp_path / "store.db"
    child = await asyncio.create_subprocess_exec(*COMMITTER, path, stdout=asyncio.subprocess.PIPE)
    await child.stdout.readline()
    with pytest.raises(StoreUnavailable, match=rf"another process \(process {child.pid}\) uses this file: stop it"):
        await SqliteStore(path).open()
    child.kill()
    await child.communicate()
    store = SqliteStore(path)
    assert (await store.open()).sequence >= 0
    await store.close()


async def test_past_a_file_size_limit_commits_are_refused_and_work_again_after_it(tmp_path: Path):
    path, acknowledged = tmp_path / "store.db", Acknowledged()
    child = await asyncio.to_thread(
        subprocess.run, [*COMMITTER, path, "400000"], capture_output=True, text=True, timeout=60, check=True
    )
    acknowledged.hear(child.stdout)
    assert len(acknowledged.refusals) == 1
    assert "the disk refuses" in acknowledged.refusals[0]
    assert str(path) in acknowledged.refusals[0]
    await verify(path, acknowledged)
    assert acknowledged.last > 20
