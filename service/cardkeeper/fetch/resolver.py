"""Names to addresses, with a deadline that the system's resolver does not have."""

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol


class Resolver(Protocol):
    """Looks names up."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host in order of preference. Raises OSError where it has none."""
        ...

    def close(self) -> None:
        """Give threads back; lookups in the air are forgotten."""
        ...


class SystemResolver:
    """`getaddrinfo` in threads of its own.

    A lookup cannot be cancelled. Stalled ones hold these few threads, and nothing else of the process.
    """

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="resolve")

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host, each once."""
        found = await asyncio.get_running_loop().run_in_executor(self._threads, _look_up, host, port)
        return tuple(dict.fromkeys(found))

    def close(self) -> None:
        """Give threads back."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int) -> list[str]:
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [str(address[0]) for *_, address in answers]
