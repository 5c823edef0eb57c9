"""The service under test: a real process that can be killed, frozen, drained and robbed of its disk."""

import asyncio
import re
import resource
import shutil
import signal
import sys
from pathlib import Path

START_TIMEOUT = 30.0
DRAIN_TIMEOUT = 25.0


class ServiceFailed(Exception):
    """The process did what no fault excuses."""


class Service:
    """One `cardkeeper serve` after the other, on one port and one file."""

    def __init__(self, folder: Path, history: int) -> None:
        self.file = folder / "fleet.db"
        self.log = folder / "service.log"
        self._copy = folder / "copy"
        self._history = history
        self._process: asyncio.subprocess.Process | None = None
        self.port = 0
        self.starts = 0

    @property
    def target(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    @property
    def is_running(self) -> bool:
        """Whether there is a process now."""
        return self._process is not None and self._process.returncode is None

    @property
    def pid(self) -> int:
        """The process; raises ServiceFailed if there is none."""
        if self._process is None or self._process.returncode is not None:
            raise ServiceFailed(f"the service ended by itself; see {self.log}")
        return self._process.pid

    async def start(self) -> None:
        """Start it and wait until it listens."""
        process = await self._spawn()
        assert process.stdout is not None
        try:
            async with asyncio.timeout(START_TIMEOUT):
                line = (await process.stdout.readline()).decode()
        except TimeoutError:
            raise ServiceFailed(f"the service did not start within {START_TIMEOUT} s") from None
        found = re.search(r"listens on \S+:(\d+)", line)
        if found is None:
            raise ServiceFailed(f"the service did not start: {line!r}; see {self.log}")
        self.port = int(found[1])

    async def refuses_to_start(self) -> str:
        """Start it where it must refuse, and return what it says. Raises ServiceFailed if it serves."""
        process = await self._spawn()
        try:
            async with asyncio.timeout(START_TIMEOUT):
                code = await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
            raise ServiceFailed("the service serves a damaged database") from None
        words = self.log.read_text("utf-8").splitlines()[-1]
        if code != 3 or "damaged" not in words:
            raise ServiceFailed(f"on a damaged database the service ends with {code} and says {words!r}")
        return words

    async def kill(self) -> None:
        """SIGKILL, and wait for the end."""
        self.signal(signal.SIGKILL)
        assert self._process is not None
        await self._process.wait()

    async def drain(self) -> None:
        """SIGTERM; it has to end by itself with 0."""
        self.signal(signal.SIGTERM)
        assert self._process is not None
        try:
            async with asyncio.timeout(DRAIN_TIMEOUT):
                code = await self._process.wait()
        except TimeoutError:
            await self.kill()
            raise ServiceFailed(f"the drain takes longer than {DRAIN_TIMEOUT} s") from None
        if code:
            raise ServiceFailed(f"the drain ended with {code}; see {self.log}")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def fill_disk(self) -> None:
        """Let no file of the process grow beyond where its write-ahead log stands."""
        wal = self.file.with_name(self.file.name + "-wal")
        size = wal.stat().st_size if wal.exists() else 0
        _, hard = resource.prlimit(self.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (size, hard))

    def free_disk(self) -> None:
        """Let files grow again."""
        _, hard = resource.prlimit(self.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (hard, hard))

    def remove_files(self) -> None:
        """Lose everything."""
        for path in self.file.parent.glob(self.file.name + "*"):
            path.unlink()

    def keep_copy(self) -> None:
        """Copy what a backup of the files would hold. The process must not run."""
        shutil.rmtree(self._copy, ignore_errors=True)
        self._copy.mkdir()
        for path in self._database_files():
            shutil.copy2(path, self._copy)

    def put_copy_back(self) -> bool:
        """Replace the database, not its witness, with the copy; False if none was kept."""
        if not self._copy.exists():
            return False
        for path in self._database_files():
            path.unlink()
        for path in self._copy.iterdir():
            shutil.copy2(path, self.file.parent)
        return True

    def damage(self) -> None:
        """Overwrite the heart of the file, and lose its write-ahead log."""
        for path in self._database_files():
            if path != self.file:
                path.unlink()
        with self.file.open("r+b") as file:
            file.seek(100)
            file.write(b"\xff" * 8000)

    def _database_files(self) -> list[Path]:
        return [path for path in self.file.parent.glob(self.file.name + "*") if not path.name.endswith(".lock")]

    async def _spawn(self) -> asyncio.subprocess.Process:
        self.starts += 1
        options = {
            "--listen": self.target,
            "--data": str(self.file),
            "--history": str(self._history),
            "--soft-ttl": "1",
            "--min-ttl": "1",
            "--log-level": "WARNING",
        }
        words = [word for pair in options.items() for word in pair]
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "cardkeeper",
                "serve",
                "--allow-loopback",
                *words,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
            )
        return self._process
