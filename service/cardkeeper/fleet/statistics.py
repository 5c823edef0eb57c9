"""Counters of this process since its start."""

from dataclasses import dataclass


@dataclass(slots=True)
class Statistics:
    """Plain counts; read by GetFleetStats and by tests."""

    fetches: int = 0
    failed_fetches: int = 0
    changes: int = 0
    silent_changes: int = 0
    judgements: int = 0
    evidence: int = 0
    refetches_on_evidence: int = 0
    streams: int = 0
