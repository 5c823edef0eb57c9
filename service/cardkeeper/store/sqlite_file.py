"""Opening the SQLite file: its schema, its settings, and every reason to refuse it.

Nothing is written to a file before it is known to be ours and of a schema that this release understands.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from cardkeeper.store.base import StoreUnavailable, new_epoch
from cardkeeper.store.codec import Undecodable

APPLICATION_ID = 0x436B7072
""""Ckpr" in the file's header: tells our files from those of other programs."""

SCHEMAS = (
    """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE agent (id TEXT PRIMARY KEY, sequence INTEGER NOT NULL, record TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE event (sequence INTEGER PRIMARY KEY, agent TEXT NOT NULL, record TEXT NOT NULL);
    CREATE INDEX event_of_agent ON event (agent);
    CREATE TABLE card (
        sequence INTEGER PRIMARY KEY,
        agent TEXT NOT NULL,
        skill_fingerprint TEXT NOT NULL,
        card_digest TEXT NOT NULL,
        record TEXT NOT NULL,
        body BLOB NOT NULL
    );
    CREATE INDEX card_of_agent ON card (agent, sequence, skill_fingerprint, card_digest);
    CREATE TABLE drift (number INTEGER PRIMARY KEY, agent TEXT NOT NULL, record TEXT NOT NULL);
    CREATE INDEX drift_of_agent ON drift (agent, number);
    """,
)
"""Entry n brings a file of schema version n to n + 1. Entries are only ever appended."""

SETTINGS = """
    PRAGMA synchronous = FULL;
    PRAGMA journal_size_limit = 16777216;
    PRAGMA cell_size_check = ON;
    PRAGMA trusted_schema = OFF;
"""
# synchronous = FULL: a commit is on the disk before it is acknowledged. Under NORMAL a power loss would take back
# revisions that clients already hold, and the same numbers would be given to other changes in the same epoch.

_ADVICE = {
    sqlite3.SQLITE_FULL: "the disk is full: free some space; nothing was changed",
    sqlite3.SQLITE_IOERR: "the disk refuses: look for a full disk, a file size limit, or a failing device",
    sqlite3.SQLITE_READONLY: "it cannot be written: give this process write access to the file and its folder",
    sqlite3.SQLITE_PERM: "it cannot be read: give this process access to the file and its folder",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened: the folder must exist and be writable for this process",
    sqlite3.SQLITE_BUSY: "another program keeps it locked: close that program",
    sqlite3.SQLITE_LOCKED: "another program keeps it locked: close that program",
    sqlite3.SQLITE_NOTADB: "it is no SQLite file: give another path, or move the file away to begin anew",
    sqlite3.SQLITE_CORRUPT: "it is damaged: stop the service, then restore a copy or move the file away to begin anew",
}
"""What to do, by primary result code."""


def refusal(path: Path, error: sqlite3.Error | OSError | Undecodable) -> StoreUnavailable:
    """Return what to tell: the file, what is wrong with it, and what to do."""
    if isinstance(error, sqlite3.Error):
        # An error without a code is Python's own: text in the file that is no UTF-8.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        return StoreUnavailable(f"{path}: {_ADVICE.get(code, 'SQLite refuses')} ({name}: {error})")
    if isinstance(error, OSError):
        return StoreUnavailable(f"{path}: its folder must exist, be writable for this process and have space ({error})")
    return StoreUnavailable(f"{path}: {_ADVICE[sqlite3.SQLITE_CORRUPT]} ({error})")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Write all or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:  # it failed; after some errors SQLite has rolled back by itself
            connection.execute("ROLLBACK")


def connect(path: Path, *, busy_timeout: float) -> sqlite3.Connection:
    """Open or create the file. Raises StoreUnavailable, sqlite3.Error and OSError."""
    # Cards of private fleets: for the owner's eyes. SQLite gives the files beside it the same mode.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path, timeout=busy_timeout, isolation_level=None)
    try:
        version = _schema_version(connection, path)
        if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
            raise StoreUnavailable(
                f"{path}: no write-ahead log can be kept there: use a local disk, not a network share"
            )
        connection.executescript(SETTINGS)
        _check(connection, path)
        if version < len(SCHEMAS):
            _upgrade(connection, version)
    except BaseException:
        connection.close()
        raise
    return connection


def meta(connection: sqlite3.Connection, key: str) -> str:
    """Return a value of the table of single values; empty where there is none."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return row[0] if row else ""


def set_meta(connection: sqlite3.Connection, key: str, value: str) -> None:
    """Write a value into the table of single values."""
    connection.execute(
        "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (key, value)
    )


def _schema_version(connection: sqlite3.Connection, path: Path) -> int:
    """Return the file's schema version, 0 for an empty file. Raises StoreUnavailable for a file that is not for us."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        return 0
    if connection.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,) or "meta" not in tables:
        raise StoreUnavailable(f"{path}: it is the SQLite file of another program: give another path")
    written = meta(connection, "schema")
    if not written.isdecimal():
        raise StoreUnavailable(f"{path}: {_ADVICE[sqlite3.SQLITE_CORRUPT]} (it states no schema version)")
    if int(written) > len(SCHEMAS):
        raise StoreUnavailable(
            f"{path}: its schema is version {written}, this release knows up to {len(SCHEMAS)}: "
            "run the newer release that wrote it, or give another path"
        )
    return int(written)


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Read the whole structure once, so that damage is said now and not in the middle of a commit."""
    with closing(connection.execute("PRAGMA quick_check(1)")) as found:
        (verdict,) = found.fetchone()
    if verdict != "ok":
        raise StoreUnavailable(f"{path}: {_ADVICE[sqlite3.SQLITE_CORRUPT]} ({verdict})")


def _upgrade(connection: sqlite3.Connection, version: int) -> None:
    with transaction(connection):
        for script in SCHEMAS[version:]:
            for statement in filter(str.strip, script.split(";")):
                connection.execute(statement)  # executescript would commit before it begins
        if not version:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            set_meta(connection, "epoch", new_epoch())
        set_meta(connection, "schema", str(len(SCHEMAS)))
