"""Opening the file: what is refused and with which words, and when an epoch ends."""

import logging
import os
import shutil
import sqlite3
import stat
from pathlib import Path

import pytest

from cardkeeper.store.base import FleetImage, StoreUnavailable
from cardkeeper.store.claim import Claim, Held, Witness
from cardkeeper.store.sqlite import SqliteStore
from cardkeeper.store.sqlite_file import SCHEMAS, refusal
from store_records import change_to


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


async def written(path: Path, commits: int = 3, *, begin: int = 0) -> FleetImage:
    """Open, commit, close, and return what a reopening sees."""
    store = SqliteStore(path)
    await store.open()
    for number in range(begin, begin + commits):
        await store.commit(change_to("a", f"d{number}", expected=number))
    await store.close()
    return await reopened(path)


async def reopened(path: Path) -> FleetImage:
    store = SqliteStore(path)
    image = await store.open()
    await store.close()
    return image


async def refused(path: Path) -> str:
    """What opening is refused with; the claim must be free again afterwards."""
    with pytest.raises(StoreUnavailable) as caught:
        await SqliteStore(path).open()
    assert not claimed(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def claimed(path: Path) -> bool:
    try:
        Claim(path).release()
    except Held:
        return True
    except FileNotFoundError:
        return False
    return False


def edit(path: Path, statement: str, *values: str) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement, values)
    connection.close()


def contents(path: Path) -> bytes:
    return path.read_bytes()


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


async def test_a_reopened_file_holds_what_was_committed_in_the_same_epoch(path: Path):
    first = await written(path)
    assert (first.sequence, [record.sequence for record in first.agents]) == (3, [3])
    assert await reopened(path) == first


async def test_a_store_can_be_opened_again_after_close_but_not_twice_at_once(path: Path):
    store = SqliteStore(path)
    first = await store.open()
    with pytest.raises(StoreUnavailable, match="open already"):
        await store.open()
    await store.commit(change_to("a", "d", expected=0))
    await store.close()
    assert (await store.open()).epoch == first.epoch
    await store.close()


async def test_a_clean_close_leaves_one_file_and_the_lock(path: Path):
    await written(path)
    assert sorted(file.name for file in path.parent.iterdir()) == ["store.db", "store.db.lock"]


async def test_only_the_owner_may_read_the_files(path: Path):
    store = SqliteStore(path)
    await store.open()
    await store.commit(change_to("a", "d", expected=0))
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    await store.close()
    assert set(modes) == {"store.db", "store.db-wal", "store.db-shm", "store.db.lock"}
    assert set(modes.values()) == {0o600}


async def test_a_second_store_on_the_file_is_refused_whatever_name_it_uses(path: Path):
    store = SqliteStore(path)
    await store.open()
    other_name = path.with_name("link.db")
    os.symlink(path, other_name)
    for name in (path, other_name, path.parent / ".." / path.parent.name / path.name):
        with pytest.raises(
            StoreUnavailable, match=r"store.db: another process \(process \d+\) uses this file: stop it"
        ):
            await SqliteStore(name).open()
    assert await store.commit(change_to("a", "d", expected=0))
    await store.close()
    assert (await reopened(path)).sequence == 1


async def test_a_newer_schema_is_refused_and_left_alone(path: Path):
    await written(path)
    edit(path, "UPDATE meta SET value = ? WHERE key = 'schema'", str(len(SCHEMAS) + 1))
    before = contents(path)
    assert "run the newer release" in await refused(path)
    assert contents(path) == before


@pytest.mark.parametrize("value", ["", "x", "-1"])
async def test_a_schema_version_that_is_no_number_is_damage(path: Path, value: str):
    await written(path)
    edit(path, "UPDATE meta SET value = ? WHERE key = 'schema'", value)
    assert "damaged" in await refused(path)


async def test_the_file_of_another_program_is_refused_and_left_alone(path: Path):
    edit(path, "CREATE TABLE meta AS SELECT 'schema' AS key, '1' AS value")
    before = contents(path)
    assert "another program" in await refused(path)
    assert contents(path) == before


async def test_what_is_no_sqlite_file_is_refused_and_left_alone(path: Path):
    write(path, b"name: some configuration\n" * 100)
    before = contents(path)
    assert "no SQLite file" in await refused(path)
    assert contents(path) == before


async def test_an_empty_file_is_a_new_store(path: Path):
    write(path, b"")
    assert (await written(path)).sequence == 3


async def test_a_missing_folder_and_a_folder_in_the_files_place_are_refused(tmp_path: Path):
    assert "folder must exist" in await refused(tmp_path / "missing" / "store.db")
    os.mkdir(tmp_path / "folder")
    assert "folder" in await refused(tmp_path / "folder")


def spoil_table(path: Path, table: str) -> None:
    """Overwrite the root page of a table."""
    connection = sqlite3.connect(path)
    (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : page * size] = b"\xaa" * size
    path.write_bytes(content)


@pytest.mark.parametrize("table", ["agent", "event", "card", "drift", "card_of_agent"])
async def test_damage_anywhere_in_the_file_is_said_at_opening(path: Path, table: str):
    await written(path)
    spoil_table(path, table)
    assert "damaged" in await refused(path)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE agent SET record = '{'",
        "UPDATE agent SET record = '{\"v\": 1}'",
        "UPDATE agent SET record = CAST(X'fffe' AS TEXT)",
        "UPDATE agent SET record = 5",
    ],
)
async def test_an_illegible_agent_is_damage_and_said_at_opening(path: Path, statement: str):
    await written(path)
    edit(path, statement)
    assert "damaged" in await refused(path)


async def test_an_illegible_card_is_damage_and_leaves_the_rest_readable(path: Path):
    await written(path)
    edit(path, "UPDATE card SET record = '[]' WHERE card_digest = 'd0'")
    store = SqliteStore(path)
    await store.open()
    with pytest.raises(StoreUnavailable, match="damaged"):
        await store.card("a", "d0")
    assert await store.card("a", "d2") is not None
    await store.close()


async def test_an_older_copy_put_back_begins_a_new_epoch_and_says_so(path: Path, caplog: pytest.LogCaptureFixture):
    first = await written(path)
    shutil.copy(path, path.with_name("backup.db"))
    await written(path, 2, begin=3)
    shutil.copy(path.with_name("backup.db"), path)
    with caplog.at_level(logging.WARNING):
        image = await reopened(path)
    assert image.epoch != first.epoch
    assert image.sequence == 3
    assert "revision 5 was acknowledged, the file ends at 3" in caplog.text
    assert (await reopened(path)).epoch == image.epoch  # once, not at every start


async def test_a_deleted_write_ahead_log_begins_a_new_epoch(path: Path, tmp_path: Path):
    first = await written(path)
    store = SqliteStore(path)
    await store.open()
    await store.commit(change_to("a", "d3", expected=3))
    for folder, left_out in {"crashed": "", "robbed": "*-wal"}.items():
        shutil.copytree(tmp_path, tmp_path / folder, ignore=shutil.ignore_patterns("*-shm", "crashed", left_out))
    await store.close()
    crashed = await reopened(tmp_path / "crashed" / "store.db")
    robbed = await reopened(tmp_path / "robbed" / "store.db")
    assert (crashed.sequence, crashed.epoch) == (4, first.epoch)
    assert robbed.sequence == 3
    assert robbed.epoch != first.epoch


@pytest.mark.parametrize(
    "content", [None, "", "\x00" * 60, "12 another 00000000000000000003", "12 x y z", "\xff\xfe 1"]
)
async def test_without_a_matching_witness_the_epoch_is_not_trusted(path: Path, content: str | None):
    first = await written(path)
    witness = path.with_name("store.db.lock")
    os.unlink(witness)
    if content is not None:
        write(witness, content.encode("latin-1"))
    image = await reopened(path)
    assert image.epoch != first.epoch
    assert (image.sequence, image.agents) == (first.sequence, first.agents)


async def test_a_file_that_is_ahead_of_its_witness_keeps_its_epoch(path: Path):
    """A process may die between a commit and its testimony."""
    first = await written(path)
    claim = Claim(path)
    claim.testify(first.epoch, 1)
    claim.release()
    assert (await reopened(path)).epoch == first.epoch


def test_a_testimony_comes_back(path: Path):
    claim = Claim(path)
    assert claim.witness() is None
    claim.testify("0123456789abcdef", 12, sync=True)
    claim.testify("0123456789abcdef", 2**62)
    assert claim.witness() == Witness("0123456789abcdef", 2**62)
    claim.release()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (sqlite3.SQLITE_FULL, "disk is full"),
        (sqlite3.SQLITE_IOERR_WRITE, "disk refuses"),
        (sqlite3.SQLITE_READONLY_DBMOVED, "cannot be written"),
        (sqlite3.SQLITE_CANTOPEN, "cannot be opened"),
        (sqlite3.SQLITE_BUSY, "close that program"),
        (sqlite3.SQLITE_NOTADB, "no SQLite file"),
        (sqlite3.SQLITE_CORRUPT_INDEX, "damaged"),
        (sqlite3.SQLITE_MISUSE, "SQLite refuses"),
    ],
)
def test_each_error_of_sqlite_says_what_to_do(code: int, words: str):
    error = sqlite3.OperationalError("text")
    error.sqlite_errorcode, error.sqlite_errorname = code, "SQLITE_X"
    assert words in str(refusal(Path("/x.db"), error))
    assert "/x.db" in str(refusal(Path("/x.db"), error))
