"""An agent that is met and registered at the same time is kept once."""

import asyncio

from cardkeeper.settings import Settings
from cardkeeper.store.base import Commit, Event
from cardkeeper.store.memory import MemoryStore
from cardkeeper.v1 import fleet_service_pb2
from contract_requests import resolve
from rpc_errors import failure
from running_service import running_service
from scripted_fetcher import ScriptedFetcher, card_document

ONE = "http://agent-one.example"


class SlowStore(MemoryStore):
    """Holds commits back until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.writing = asyncio.Event()
        self.let_go = asyncio.Event()

    async def commit(self, commit: Commit) -> Event:
        self.writing.set()
        await self.let_go.wait()
        return await super().commit(commit)


async def test_who_comes_second_is_told_that_the_url_is_taken() -> None:
    fetcher, store = ScriptedFetcher(), SlowStore()
    fetcher.answers[ONE] = card_document("summarize")
    async with running_service(Settings(), fetcher=fetcher, store=store) as service:
        met = asyncio.ensure_future(service.discovery.ResolveSkill(resolve(ONE, "summarize")))
        await asyncio.wait_for(store.writing.wait(), 5)
        request = fleet_service_pb2.RegisterAgentRequest(agent_url=ONE, agent_id="mine")
        registered = asyncio.ensure_future(failure(service.fleet.RegisterAgent(request)))
        # Both have seen that nobody holds the URL once the service answers what came after them.
        await service.fleet.GetFleetStats(fleet_service_pb2.GetFleetStatsRequest())
        store.let_go.set()
        assert (await registered).reason == "AGENT_EXISTS"
        agent = (await met).resolution.agent
        listed = (await service.fleet.ListAgents(fleet_service_pb2.ListAgentsRequest())).agents
        assert [item.name for item in listed] == [agent]
