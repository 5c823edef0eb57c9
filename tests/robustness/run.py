"""One run: a plan carried out, and judged."""

import asyncio
import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

import grpc

from robustness.card_site import Site, card_site
from robustness.client_process import CHANNEL
from robustness.log_reader import LogReader
from robustness.notebook import read_record
from robustness.plan import Blow, Fault, Plan
from robustness.service import Service, ServiceFailed
from robustness.traffic import Traffic
from trace_fault import Violation
from trace_history import Entry, History
from trace_record import Record
from trace_validator import judge

FINISH_TIMEOUT = 90.0


@dataclass(slots=True)
class Outcome:
    """What a run came to."""

    history: History
    records: list[Record]
    violations: list[Violation]
    complaints: list[str]
    faults: Counter[Fault] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)

    @property
    def revisions(self) -> int:
        """Revisions taken, over all epochs; what an older copy brought along counts once."""
        taken = 0
        before: list[Entry] = []
        for epoch in self.history.epochs.values():
            pairs = zip(epoch.entries, before, strict=False)
            taken += len(epoch.entries) - sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            before = epoch.entries
        return taken


class Run:
    """Carries a plan out in a folder."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self._plan = plan
        self._folder = folder
        self._service = Service(folder, plan.history)
        self._reader = LogReader(self._service.file)
        self._chance = random.Random(f"run {plan.seed}")  # noqa: S311 - no secret
        self._clients: list[asyncio.subprocess.Process] = []
        self._born = 0
        self._faults: Counter[Fault] = Counter()

    async def carry_out(self) -> Outcome:
        """Do all of it. Raises ServiceFailed, log_reader.LogLost."""
        plan = self._plan
        async with AsyncExitStack() as stack:
            site = await stack.enter_async_context(card_site(plan.agents, self._chance))
            stack.push_async_callback(self._end_processes)
            await self._service.start()
            reading = asyncio.create_task(self._reader.follow())
            stack.callback(reading.cancel)
            async with grpc.aio.insecure_channel(self._service.target, options=CHANNEL) as channel:
                traffic = Traffic(channel, site.urls, self._chance)
                await traffic.register_all()
                for _ in range(plan.client_processes):
                    await self._bear(site)
                await self._strike_under_load(site, traffic, reading)
                site.heal()
                await self._finish_clients()
            await self._service.drain()
            self._reader.read(alone=True)
            return self._judged(traffic)

    async def _strike_under_load(self, site: Site, traffic: Traffic, reading: "asyncio.Task[None]") -> None:
        """Faults, while cards change and everybody calls. A part that fails ends the run."""
        strikes = asyncio.create_task(self._strike(site))
        rest = [
            asyncio.create_task(site.change_for_ever(0.02)),
            *(asyncio.create_task(traffic.run()) for _ in range(3)),
        ]
        try:
            done, _ = await asyncio.wait((strikes, reading, *rest), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in (strikes, *rest):
                task.cancel()
            await asyncio.gather(strikes, *rest, return_exceptions=True)

    async def _strike(self, site: Site) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self._plan.seconds
        for blow in self._plan.blows:
            await asyncio.sleep(min(blow.pause, max(0.0, end - loop.time())))
            if loop.time() >= end:
                return
            await self._fault(blow, site)
            self._faults[blow.fault] += 1

    async def _fault(self, blow: Blow, site: Site) -> None:
        service = self._service
        match blow.fault:
            case Fault.KILL_SERVER:
                await service.kill()
                await asyncio.sleep(blow.strength**2)
                await service.start()
            case Fault.DRAIN_SERVER:
                await service.drain()
                service.keep_copy()
                await service.start()
            case Fault.FREEZE_SERVER:
                async with _frozen(service.pid):
                    await asyncio.sleep(blow.strength * 8)
            case Fault.FREEZE_CLIENT:
                victim = self._victim(blow)
                async with _frozen(victim.pid):
                    await asyncio.sleep(blow.strength * 12)
            case Fault.KILL_CLIENT:
                victim = self._victim(blow)
                self._clients.remove(victim)
                victim.kill()
                await victim.wait()
                await self._bear(site)
            case Fault.FULL_DISK:
                service.fill_disk()
                await asyncio.sleep(blow.strength * 3)
                service.free_disk()
            case _:
                async with self._reader.exclusive:
                    await self._replace_database(blow.fault)

    async def _replace_database(self, fault: Fault) -> None:
        service = self._service
        if fault is Fault.DAMAGED_DATABASE:
            await service.drain()
            service.keep_copy()
            service.damage()
            await service.refuses_to_start()
            service.put_copy_back()
        else:
            await service.kill()
            self._reader.read(alone=True)
            if fault is Fault.LOST_DATABASE:
                service.remove_files()
            else:
                service.put_copy_back()
        await service.start()

    async def _bear(self, site: Site) -> None:
        """Start a process of watchers."""
        self._born += 1
        arguments = {
            "--target": self._service.target,
            "--folder": str(self._folder),
            "--name": f"client-{self._born}",
            "--watchers": str(self._plan.watchers),
            "--agents": json.dumps(site.urls),
            "--seed": str(self._plan.seed),
        }
        words = [word for pair in arguments.items() for word in pair]
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "robustness.client_process", *words)
        self._clients.append(process)

    async def _finish_clients(self) -> None:
        self._check_clients()
        for client in self._clients:
            client.terminate()
        try:
            async with asyncio.timeout(FINISH_TIMEOUT):
                codes = [await client.wait() for client in self._clients]
        except TimeoutError:
            raise ServiceFailed(f"clients did not come in sync within {FINISH_TIMEOUT} s") from None
        if any(codes):
            raise ServiceFailed(f"client processes ended with {codes}")

    def _victim(self, blow: Blow) -> asyncio.subprocess.Process:
        self._check_clients()
        return self._clients[blow.victim % len(self._clients)]

    def _check_clients(self) -> None:
        ended = [client.returncode for client in self._clients if client.returncode is not None]
        if ended:
            raise ServiceFailed(f"client processes ended by themselves with {ended}")

    async def _end_processes(self) -> None:
        for client in self._clients:
            if client.returncode is None:
                client.kill()
                await client.wait()
        if self._service.is_running:
            await self._service.kill()

    def _judged(self, traffic: Traffic) -> Outcome:
        history = self._reader.history
        records = [read_record(path) for path in sorted(self._folder.glob("*.trace"))]
        complaints = [*traffic.complaints]
        for path in self._folder.glob("*.complaints"):
            complaints += path.read_text("utf-8").splitlines()
        if "Traceback" in self._service.log.read_text("utf-8"):
            complaints.append(f"the service logged a traceback: see {self._service.log}")
        return Outcome(history, records, judge(history, records), complaints, self._faults, traffic.calls)


@asynccontextmanager
async def _frozen(pid: int) -> AsyncIterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)
