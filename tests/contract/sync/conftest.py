"""pytest-grpc over the real asyncio service: a second, synchronous client of the same contract.

The plugin knows no asyncio and races for its port (style: see CONTRIBUTING); two of its fixtures are replaced, the rest is
its own.
"""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from cardkeeper.app import Application
from cardkeeper.settings import Settings
from scripted_fetcher import ScriptedFetcher, card_document

AGENT = "http://agent.example"


@pytest.fixture(scope="module")
def grpc_addr(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"unix:{tmp_path_factory.mktemp('grpc') / 's.sock'}"


@pytest.fixture(scope="module")
def fetcher() -> ScriptedFetcher:
    fetcher = ScriptedFetcher()
    fetcher.answers[AGENT] = card_document("summarize-v2", "translate")
    return fetcher


@pytest.fixture(scope="module")
def grpc_server(grpc_addr: str, fetcher: ScriptedFetcher) -> Iterator[Application]:
    """The service on a loop in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="service")
    thread.start()

    async def start() -> Application:
        return await Application(Settings(listen=grpc_addr, drain_timeout=2.0), fetcher=fetcher).__aenter__()

    app = asyncio.run_coroutine_threadsafe(start(), loop).result(10)
    yield app
    asyncio.run_coroutine_threadsafe(app.__aexit__(None, None, None), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()
