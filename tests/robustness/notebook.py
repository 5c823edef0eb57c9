"""A client's record on disk, step by step, so that it outlives a client that is killed."""

import pickle
from pathlib import Path
from types import TracebackType
from typing import Self

from trace_record import Closed, Ending, Opened, Record, Step


class Notebook:
    """Appends steps to a file."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")

    def note(self, step: Step) -> None:
        """Write one step, at once."""
        pickle.dump(step, self._file)
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def read_record(path: Path) -> Record:
    """Read what a client wrote; a step that a kill cut short is left out."""
    record = Record(path.stem)
    with path.open("rb") as file:
        while True:
            try:
                record.steps.append(pickle.load(file))  # noqa: S301 - written by this suite a moment ago
            except (EOFError, pickle.UnpicklingError):
                break
    inside = False
    for step in record.steps:
        inside = isinstance(step, Opened) or (inside and not isinstance(step, Closed))
    if inside:
        record.steps.append(Closed(Ending.CLIENT))
    return record
