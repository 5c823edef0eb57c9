"""Programs that say in their first line where they listen, started as processes of their own and ended for certain."""

import selectors
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
READY_TIMEOUT = 30.0


@contextmanager
def started(*command: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """Start a program; yield its first line of output, and the process. Raises RuntimeError where it says nothing."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = _first_line(process)
            if not line:
                raise RuntimeError(f"{command} did not start")
            yield line, process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def _first_line(process: "subprocess.Popen[str]") -> str:
    """The first line that a program prints; empty where it ends or takes too long."""
    if process.stdout is None:
        return ""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        return process.stdout.readline().strip() if selector.select(READY_TIMEOUT) else ""


@contextmanager
def agent(*options: str) -> Iterator[str]:
    """Run an agent on a free port; yield its URL."""
    with started(sys.executable, str(HERE / "agent.py"), "--port", "0", *options) as (url, _):
        yield url


@contextmanager
def service(*options: str) -> Iterator[str]:
    """Run Cardkeeper on a free port, allowed to fetch from this machine; yield its target."""
    command = (sys.executable, "-m", "cardkeeper", "serve", "--listen", "127.0.0.1:0", "--allow-loopback", *options)
    with started(*command, "--log-level", "WARNING") as (line, _):
        yield line.rpartition(" ")[2]
