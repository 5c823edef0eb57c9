"""A step of wall time changes nothing that a stream promises."""

import asyncio

import pytest

from cardkeeper.clock import SystemClock
from cardkeeper.rpc.lag import Lag
from cardkeeper.rpc.stream_policy import StreamPolicy
from cardkeeper.settings import Settings
from contract_requests import resolve, subscribe
from running_service import running_service
from scripted_fetcher import ScriptedFetcher, card_document
from watcher import Watcher, ack

ONE = "http://agent-one.example"
DAY = 86_400.0


class SteppedClock(SystemClock):
    """A clock whose wall time can be set, as an administrator or NTP does it."""

    def __init__(self) -> None:
        self.step = 0.0

    def now(self) -> float:
        return super().now() + self.step


@pytest.mark.parametrize("step", [DAY, -DAY], ids=["a day forward", "a day back"])
async def test_a_stream_and_its_acknowledgements_outlive_a_step_of_wall_time(step: float) -> None:
    clock, fetcher = SteppedClock(), ScriptedFetcher()
    fetcher.answers[ONE] = card_document("summarize")
    policy = StreamPolicy(bookmark_interval=0.5, ack_timeout=20.0)
    async with running_service(Settings(streams=policy), clock=clock, fetcher=fetcher) as service:
        watcher = Watcher(service)
        await watcher.say(subscribe())
        synced = await watcher.next("synced")
        await watcher.say(ack(synced.revision))
        clock.step = step
        await service.discovery.ResolveSkill(resolve(ONE, "summarize"))
        told = (await watcher.until("invalidation"))[-1]
        assert told.revision.sequence == synced.revision.sequence + 1
        for _ in range(2):
            assert (await watcher.until("bookmark"))[-1].revision == told.revision
        before = fetcher.count(ONE)
        await service.discovery.ResolveSkill(resolve(ONE, "summarize"))
        await asyncio.sleep(0)
        assert fetcher.count(ONE) == before, "the card did not age with the wall"
        watcher.close()


def test_lag_does_not_look_at_wall_time() -> None:
    clock = SteppedClock()
    lag = Lag(clock, timeout=30.0)
    lag.sent(1)
    lag.acknowledge(1)
    lag.sent(2)
    clock.step = DAY
    assert not lag.overdue()
