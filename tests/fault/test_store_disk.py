"""The embedded store on a bad disk: full, locked, hanging, damaged."""

import asyncio
import os
import random
import shutil
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from cardkeeper.store.base import StoreUnavailable
from cardkeeper.store.sqlite import BACKLOG, SqliteStore
from cardkeeper.store.sqlite_database import SqliteDatabase
from store_records import change_to, drift_of, held_sequence


async def test_on_a_full_disk_nothing_changes_and_later_commits_work(tmp_path: Path):
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    await store.commit(change_to("a", "d1", expected=0))
    before = await store.agent("a"), await store.events_after(0), await store.cards("a", before=0, limit=9)
    await pragma(store, "max_page_count = 1")  # SQLite takes the current size, the least it can
    for _ in range(3):
        with pytest.raises(StoreUnavailable, match=r"store.db: the disk is full: free some space; nothing was changed"):
            await store.commit(change_to("a", "d2", expected=1, body=bytes(100_000)))
    assert before == (await store.agent("a"), await store.events_after(0), await store.cards("a", before=0, limit=9))
    await pragma(store, "max_page_count = 1000000")
    event = await store.commit(change_to("a", "d3", expected=1, body=bytes(100_000)))
    assert event.sequence == 2
    await store.close()
    assert (await store.open()).sequence == 2
    await store.close()


async def test_a_file_that_cannot_be_written_is_read_and_refuses_commits(tmp_path: Path):
    store = SqliteStore(tmp_path / "store.db")
    await store.open()
    await store.commit(change_to("a", "d1", expected=0))
    await pragma(store, "query_only = ON")
    with pytest.raises(StoreUnavailable, match="cannot be written"):
        await store.commit(change_to("a", "d2", expected=1))
    assert await held_sequence(store, "a") == 1
    await store.close()


async def pragma(store: SqliteStore, text: str) -> None:
    await store._thread.run(5, lambda: store._database._connection.execute(f"PRAGMA {text}").fetchall())


async def test_another_programs_lock_delays_is_said_and_passes(tmp_path: Path):
    store = SqliteStore(tmp_path / "store.db", timeout=1)
    await store.open()
    other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="another program keeps it locked: close that program"):
        await store.commit(change_to("a", "d1", expected=0))
    assert await store.agent("a") is None  # reading goes on
    other.execute("ROLLBACK")
    other.close()
    assert (await store.commit(change_to("a", "d1", expected=0))).sequence == 1
    await store.close()


async def test_a_disk_that_hangs_fails_calls_by_their_deadline_and_holds_up_nothing_else(tmp_path: Path):
    store = SqliteStore(tmp_path / "store.db", timeout=1)
    await store.open()
    disk = threading.Event()
    hanging = asyncio.create_task(store._thread.run(10, disk.wait))
    begun = time.monotonic()
    commits = [store.commit(change_to(str(number), "d1", expected=0)) for number in range(BACKLOG + 10)]
    results = await asyncio.gather(*commits, return_exceptions=True)
    assert time.monotonic() - begun < 5
    assert all(isinstance(result, StoreUnavailable) for result in results)
    assert sum("calls wait already" in str(result) for result in results) >= 10
    assert "slow or failing disk" in str(results[0])
    disk.set()
    await hanging
    while store._thread._jobs.qsize():
        await asyncio.sleep(0.001)
    assert await store.events_after(0) == ()  # none of them had begun: all were taken back
    assert (await store.commit(change_to("a", "d1", expected=0))).sequence == 1
    await store.close()


@pytest.mark.parametrize("gives_up", ["cancelled", "deadline"])
async def test_a_commit_that_had_begun_when_its_caller_gave_up_is_there_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gives_up: str
):
    store = SqliteStore(tmp_path / "store.db", timeout=5 if gives_up == "cancelled" else 1)
    await store.open()
    begun, disk = threading.Event(), threading.Event()

    def evict_slowly(database: SqliteDatabase, bound: int) -> None:
        begun.set()
        assert disk.wait(10)

    monkeypatch.setattr(SqliteDatabase, "_evict_events", evict_slowly)
    commit = asyncio.create_task(store.commit(change_to("a", "d1", expected=0)))
    while not begun.is_set():
        await asyncio.sleep(0.001)
    if gives_up == "cancelled":
        commit.cancel()
    (outcome,) = await asyncio.gather(commit, return_exceptions=True)
    assert isinstance(outcome, asyncio.CancelledError if gives_up == "cancelled" else StoreUnavailable)
    disk.set()
    record = await store.agent("a")
    card = await store.card("a", "d1")
    log = await store.events_after(0)
    assert record is not None
    assert card is not None
    assert [record.sequence, card.sequence, *(event.sequence for event in log)] == [1, 1, 1]
    await store.close()


def damaged(content: bytes, seed: int) -> bytes:
    """What a failing disk may make of a file."""
    chance = random.Random(seed)  # noqa: S311 - a schedule, no secret
    at = chance.randrange(len(content))
    match seed % 4:
        case 0:
            return content[:at]
        case 1:
            return content[:at] + chance.randbytes(1) + content[at + 1 :]
        case 2:
            page = at // 4096 * 4096
            return content[:page] + chance.randbytes(4096) + content[page + 4096 :]
        case _:
            return content[:at] + bytes(20_000) + content[at + 20_000 :]


def damage(path: Path, seed: int) -> None:
    path.write_bytes(damaged(path.read_bytes(), seed))


def epoch_in(folder: Path) -> str:
    return (folder / "store.db.lock").read_text().split()[1]


@pytest.fixture
async def crashed(tmp_path: Path) -> Path:
    """The folder of a store whose process died: part of it in the file, the rest in its write-ahead log."""
    path = tmp_path / "running" / "store.db"
    os.mkdir(path.parent)
    for commits in (range(40), range(40, 60)):
        store = SqliteStore(path)
        await store.open()
        for number in commits:
            agent = f"agent-{number % 5}"
            expected = await held_sequence(store, agent)
            await store.commit(change_to(agent, f"d{number}", expected=expected, body=b"x" * 3000))
            await store.add_drift(drift_of(agent))
        if commits.stop == 60:
            shutil.copytree(path.parent, tmp_path / "crashed", ignore=shutil.ignore_patterns("*-shm"))
        await store.close()
    return tmp_path / "crashed"


@pytest.mark.parametrize(("part", "refusals"), [("store.db", 20), ("store.db-wal", 0)])
async def test_damage_is_refused_or_harmless_and_never_takes_an_epoch_back(
    crashed: Path, tmp_path: Path, part: str, refusals: int
):
    """A write-ahead log that breaks off is no damage to SQLite: its rest is lost without a word, but not to the witness."""
    refused = []
    for seed in range(60):
        folder = tmp_path / str(seed)
        shutil.copytree(crashed, folder)
        damage(folder / part, seed)
        store = SqliteStore(folder / "store.db")
        try:
            image = await store.open()
            assert image.sequence == 60 or image.epoch != epoch_in(crashed)
            await use(store)
        except StoreUnavailable as error:
            refused.append(str(error))
        finally:
            await store.close()
    assert len(refused) >= refusals
    assert all("store.db: it is damaged" in text or "no SQLite file" in text for text in refused)


async def use(store: SqliteStore) -> None:
    """Touch every row; raises StoreUnavailable."""
    for agent in (f"agent-{number}" for number in range(5)):
        for card in await store.cards(agent, before=0, limit=99):
            await store.card(agent, card.card_digest)
        await store.commit(change_to(agent, "new", expected=await held_sequence(store, agent)))
    await store.events_after(0)
    await store.drift("", before=0, limit=99)
