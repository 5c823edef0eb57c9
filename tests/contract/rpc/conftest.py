"""A service over a scripted network, on a real channel."""

from collections.abc import AsyncIterator

import pytest

from running_service import Running, running_service
from scripted_fetcher import ScriptedFetcher, card_document

URL = "http://agent.example"


@pytest.fixture
def fetcher() -> ScriptedFetcher:
    fetcher = ScriptedFetcher()
    fetcher.answers[URL] = card_document("summarize-v2", "translate")
    return fetcher


@pytest.fixture
async def service(fetcher: ScriptedFetcher) -> AsyncIterator[Running]:
    async with running_service(fetcher=fetcher) as running:
        yield running
