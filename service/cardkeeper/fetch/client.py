"""One HTTP GET: the only module that knows httpx."""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType
from typing import Self

import httpcore
import httpx

from cardkeeper.fetch.backend import GuardedBackend
from cardkeeper.fetch.ip_policy import EgressPolicy
from cardkeeper.fetch.limits import FetchLimits
from cardkeeper.fetch.resolver import Resolver

NETWORK_ERRORS = (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, httpx.TransportError)
"""What goes wrong on the wire. Errors of `backend.py` pass through as they are."""


class Client:
    """Gets URLs, each over a judged connection. Follows no redirects, reads no environment, keeps no cookies."""

    def __init__(
        self, policy: EgressPolicy, limits: FetchLimits, resolver: Resolver, tls: ssl.SSLContext | None
    ) -> None:
        pool = httpcore.AsyncConnectionPool(
            ssl_context=tls or _public_and_system_trust(),
            max_connections=limits.total,
            max_keepalive_connections=limits.total,
            keepalive_expiry=limits.keep_alive,
            network_backend=GuardedBackend(policy, limits, resolver),
        )
        self._client = httpx.AsyncClient(
            transport=_PoolTransport(pool),
            trust_env=False,
            timeout=httpx.Timeout(limits.read_timeout, connect=limits.connect_timeout),
            headers={"accept-encoding": "gzip, deflate"},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )

    @asynccontextmanager
    async def get(self, url: str, headers: Mapping[str, str]) -> AsyncIterator[httpx.Response]:
        """Yield the answer, its body unread. Raises NETWORK_ERRORS, EgressRefused."""
        async with self._client.stream("GET", url, headers=headers) as response:
            yield response

    async def close(self) -> None:
        """Close connections."""
        await self._client.aclose()


class _PoolTransport(httpx.AsyncBaseTransport):
    """httpx over a pool of our own: its own transport takes no network backend."""

    def __init__(self, pool: httpcore.AsyncConnectionPool) -> None:
        self._pool = pool

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request."""
        url = httpcore.URL(
            scheme=request.url.raw_scheme, host=request.url.raw_host, port=request.url.port, target=request.url.raw_path
        )
        sent = httpcore.Request(request.method, url, headers=request.headers.raw, extensions=request.extensions)
        answer = await self._pool.handle_async_request(sent)
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer), extensions=answer.extensions)

    async def __aenter__(self) -> Self:
        await self._pool.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self._pool.__aexit__(exc_type, exc_value, traceback)

    async def aclose(self) -> None:
        """Close connections."""
        await self._pool.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._answer.aiter_stream():
            yield chunk

    async def aclose(self) -> None:
        await self._answer.aclose()


def _public_and_system_trust() -> ssl.SSLContext:
    """The public authorities, and those that the machine's administrator added."""
    context = httpcore.default_ssl_context()
    context.load_default_certs()
    return context
