"""Every engine, one suite. An engine joins by one entry in ENGINES."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from cardkeeper.store.base import History, Store
from cardkeeper.store.memory import MemoryStore
from cardkeeper.store.sqlite import SqliteStore

ENGINES: dict[str, Callable[[Path, History], Store]] = {
    "memory": lambda _folder, history: MemoryStore(history),
    "sqlite": lambda folder, history: SqliteStore(folder / "store.db", history),
}

SMALL = History(events=6, cards_per_agent=3, drift_records=4)


@pytest.fixture(params=ENGINES)
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[History], Store]:
    """Makes stores of the engine, all on the same state where it has one that lasts."""
    return lambda history: ENGINES[request.param](tmp_path, history)


@pytest.fixture
async def store(make_store: Callable[[History], Store]) -> AsyncIterator[Store]:
    """An open, empty store."""
    engine = make_store(History())
    await engine.open()
    yield engine
    await engine.close()


@pytest.fixture
async def small_store(make_store: Callable[[History], Store]) -> AsyncIterator[Store]:
    """An open, empty store with the bounds SMALL."""
    engine = make_store(SMALL)
    await engine.open()
    yield engine
    await engine.close()
