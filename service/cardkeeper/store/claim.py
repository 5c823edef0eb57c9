"""The claim of one process on a store's file, and the witness of how far its log had come.

Both live in one small file beside it, `<file>.lock`. The kernel's lock on it ends with the process, however that ends, so
the file itself never needs to be removed. Its one line holds the owner's process id, the epoch, and the last revision
that was acknowledged. A store that opens behind its witness has lost revisions (an older copy was put back, or its
write-ahead log was deleted or damaged), and one without its witness may have: neither may go on in its epoch.
"""

import contextlib
import fcntl
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Witness:
    """How far a revision log had come."""

    epoch: str
    sequence: int


class Held(Exception):
    """Another process holds the claim; `owner` is its process id as it saw it, empty where unknown."""

    def __init__(self, owner: str) -> None:
        super().__init__(owner)
        self.owner = owner


class Claim:
    """An exclusive claim, held until it is released or the process ends."""

    def __init__(self, path: Path) -> None:
        """Take the claim on the store's file `path`. Raises Held, and OSError where the claim's file cannot be had."""
        self._file = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = self._words()[:1]
            os.close(self._file)
            raise Held(owner[0] if owner else "") from None
        except OSError:
            os.close(self._file)
            raise

    def witness(self) -> Witness | None:
        """Return what the last owner left; None where there is nothing legible."""
        match self._words():
            case [_, epoch, sequence] if sequence.isdecimal():
                return Witness(epoch, int(sequence))
        return None

    def testify(self, epoch: str, sequence: int, *, sync: bool = False) -> None:
        """Write how far the log has come. Raises OSError.

        Without `sync` it outlives the process, not the machine: after a power loss it may lag, which is harmless.
        """
        # Always of one length, and so overwritten in place: needs no space and is never seen half written.
        os.pwrite(self._file, f"{os.getpid():10d} {epoch} {sequence:020d}\n".encode(), 0)
        if sync:
            os.fsync(self._file)

    def release(self) -> None:
        """Give the claim up."""
        with contextlib.suppress(OSError):
            os.close(self._file)

    def _words(self) -> list[str]:
        return os.pread(self._file, 200, 0).decode("ascii", "replace").split()
