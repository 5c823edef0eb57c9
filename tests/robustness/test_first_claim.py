"""Nothing claims to be complete before a client has what it missed."""

from cardkeeper.settings import Settings
from cardkeeper.v1 import fleet_service_pb2
from contract_requests import subscribe
from running_service import running_service
from scripted_fetcher import ScriptedFetcher
from watcher import Watcher


async def test_no_bookmark_comes_before_the_first_synced() -> None:
    async with running_service(Settings(), fetcher=ScriptedFetcher()) as service:
        watcher = Watcher(service)
        await watcher.call.wait_for_connection()
        while not len(service.app.watch):
            await service.fleet.GetFleetStats(fleet_service_pb2.GetFleetStatsRequest())
        for stream in service.app.watch._streams:
            stream.pulse()
        await service.fleet.GetFleetStats(fleet_service_pb2.GetFleetStatsRequest())
        await watcher.say(subscribe())
        await watcher.next("synced")
        watcher.close()
