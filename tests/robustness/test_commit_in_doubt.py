"""A change that the store took although its commit seemed to fail is told, even if nothing else happens."""

from cardkeeper.settings import Settings
from cardkeeper.store.base import Commit, Event, EventKind, StoreUnavailable
from cardkeeper.store.memory import MemoryStore
from cardkeeper.v1 import fleet_service_pb2
from contract_requests import ref, resolve, subscribe
from rpc_errors import failure
from running_service import running_service
from scripted_fetcher import ScriptedFetcher, card_document
from watcher import Watcher

ONE = "http://agent-one.example"


class DoubtfulStore(MemoryStore):
    """Takes a removal, and says that it did not: as a disk does that answers too late."""

    async def commit(self, commit: Commit) -> Event:
        event = await super().commit(commit)
        if event.kind is EventKind.REMOVED:
            raise StoreUnavailable("no answer in time; what was begun may still be done")
        return event


async def test_what_was_taken_after_all_is_told_without_another_commit() -> None:
    fetcher = ScriptedFetcher()
    fetcher.answers[ONE] = card_document("summarize")
    async with running_service(Settings(), fetcher=fetcher, store=DoubtfulStore()) as service:
        held = (await service.discovery.ResolveSkill(resolve(ONE, "summarize"))).resolution
        watcher = Watcher(service)
        await watcher.say(subscribe())
        await watcher.next("synced")
        refused = await failure(
            service.fleet.UnregisterAgent(fleet_service_pb2.UnregisterAgentRequest(agent=ref(held.agent)))
        )
        assert refused.reason == "STORE_UNAVAILABLE"
        told = (await watcher.until("invalidation"))[-1].invalidation
        assert told.removed
        assert told.agent == held.agent
        watcher.close()
