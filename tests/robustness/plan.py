"""What a seed decides. Pure: the same seed and length give the same plan."""

import random
from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    """What can go wrong during a run."""

    KILL_SERVER = "kill -9 of the server"
    DRAIN_SERVER = "graceful drain of the server"
    FREEZE_SERVER = "SIGSTOP of the server"
    FREEZE_CLIENT = "SIGSTOP of a client process"
    KILL_CLIENT = "kill -9 of a client process"
    FULL_DISK = "no space for the server's files"
    LOST_DATABASE = "database removed"
    OLD_DATABASE = "older copy of the database put back"
    DAMAGED_DATABASE = "damaged database, then the good one again"


WEIGHTS = {
    Fault.KILL_SERVER: 8,
    Fault.DRAIN_SERVER: 2,
    Fault.FREEZE_SERVER: 2,
    Fault.FREEZE_CLIENT: 3,
    Fault.KILL_CLIENT: 3,
    Fault.FULL_DISK: 2,
    Fault.LOST_DATABASE: 1,
    Fault.OLD_DATABASE: 1,
    Fault.DAMAGED_DATABASE: 1,
}


@dataclass(frozen=True, slots=True)
class Blow:
    """One fault of a plan."""

    pause: float
    """Seconds of quiet before it."""
    fault: Fault
    strength: float
    """0 to 1: how long it lasts, within the fault's own bounds."""
    victim: int
    """Which client process, modulo their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run."""

    seed: int
    seconds: float
    agents: int
    history: int
    """Entries of the revision log that the service keeps."""
    client_processes: int
    watchers: int
    """In each client process."""
    blows: tuple[Blow, ...]


def make_plan(seed: int, seconds: float) -> Plan:
    """Decide everything that a seed decides. More faults are planned than a run of that length can take."""
    chance = random.Random(f"plan {seed}")  # noqa: S311 - no secret
    faults = tuple(
        Blow(
            pause=chance.expovariate(1 / 1.5),
            fault=fault,
            strength=chance.random(),
            victim=chance.randrange(1000),
        )
        for fault in chance.choices(list(WEIGHTS), list(WEIGHTS.values()), k=int(seconds) + 1)
    )
    return Plan(
        seed=seed,
        seconds=seconds,
        agents=chance.randint(5, 40),
        history=chance.choice((100, 300, 10_000)),
        client_processes=2,
        watchers=chance.randint(4, 12),
        blows=faults,
    )
