"""The seam at which egress policy holds: no connection is made but to an address that was judged.

The name is looked up once, here, and the connection goes to the address itself, so that no second lookup can answer
differently (DNS rebinding). TLS still checks the name, because httpcore keeps it.
"""

import asyncio
from collections.abc import Iterable, Sequence
from ipaddress import ip_address

import httpcore

from cardkeeper.errors import EgressRefused
from cardkeeper.fetch.ip_policy import EgressPolicy
from cardkeeper.fetch.limits import FetchLimits
from cardkeeper.fetch.resolver import Resolver


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """A network backend of httpcore that connects where the policy allows."""

    def __init__(self, policy: EgressPolicy, limits: FetchLimits, resolver: Resolver) -> None:
        self._policy = policy
        self._limits = limits
        self._resolver = resolver
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first address that answers.

        Raises EgressRefused where any address of the name is refused: a mixture is how rebinding looks. Raises
        httpcore.ConnectError or ConnectTimeout where nothing answers.
        """
        addresses = await self._judged(host, port)
        last = len(addresses) - 1
        for attempt, address in enumerate(addresses):
            try:
                stream = await self._network.connect_tcp(
                    address,
                    port,
                    timeout=self._limits.connect_timeout,
                    local_address=local_address,
                    socket_options=socket_options,
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if attempt == last:
                    raise
            else:
                return await _with_peer(stream, address)
        raise httpcore.ConnectError("the name has no address")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    async def _judged(self, host: str, port: int) -> Sequence[str]:
        try:
            async with asyncio.timeout(self._limits.connect_timeout):
                found = await self._resolver.resolve(host, port)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout("the name lookup took too long") from error
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError("the name is not known") from error
        found = found[: self._limits.addresses]
        for address in found:
            self._policy.check_address(address)
        return found[: self._limits.connect_attempts]


async def _with_peer(stream: httpcore.AsyncNetworkStream, address: str) -> httpcore.AsyncNetworkStream:
    """Make sure that the other end is who was judged."""
    peer = stream.get_extra_info("server_addr")
    if peer and ip_address(peer[0]) == ip_address(address):
        return stream
    await stream.aclose()
    raise EgressRefused("its host was reached at another address than the one judged", metadata={"rule": "peer"})
