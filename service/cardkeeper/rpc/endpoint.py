"""What every unary method has around it: decoding, rules, authorisation, deadline, error mapping, counting.

Methods are registered with raw bytes, so that an answer that is ready as bytes is sent as it is.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from cardkeeper.errors import CardkeeperError, DeadlineTooShort, InvalidInput, Unavailable
from cardkeeper.rpc.authorization import Authorization
from cardkeeper.rpc.rules import Rules
from cardkeeper.rpc.status import abort
from cardkeeper.store.base import StoreUnavailable

log = logging.getLogger(__name__)

Context = grpc.aio.ServicerContext[bytes, bytes]
Request = TypeVar("Request", bound=Message)

DEFAULT_TIMEOUT = 15.0
"""Seconds granted to a call without a deadline."""
MAX_TIMEOUT = 60.0
MARGIN = 0.05
"""Seconds kept back from the caller's deadline, so that a typed error still arrives before it."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and how long they wait."""

    peer: str
    """Transport address without the port: what budgets are kept by."""
    timeout: float
    """Seconds."""
    raw: bytes
    """The request as it came."""


class Endpoint(Generic[Request]):
    """One unary method, as a raw gRPC handler."""

    def __init__(
        self,
        request_class: type[Request],
        method: Callable[[Request, Caller], Awaitable[Message]],
        rules: Rules,
        authorization: Authorization,
        *,
        privileged: bool = False,
    ) -> None:
        self._request_class = request_class
        self._method = method
        self._rules = rules
        self._authorization = authorization
        self._privileged = privileged

    async def __call__(self, raw: bytes, context: Context) -> bytes:
        """Answer one call, or abort it with a typed error."""
        try:
            if self._privileged:
                self._authorization.check(context)
            request = decode(self._request_class, raw)
            self._rules.check(request)
            timeout = allowed_time(context)
            try:
                async with asyncio.timeout(timeout + MARGIN / 2):
                    response = await self._method(request, Caller(peer_of(context), timeout, raw))
            except TimeoutError:
                raise DeadlineTooShort("the call's deadline ended the wait") from None
            return response.SerializeToString()
        except CardkeeperError as error:
            await abort(context, error)
        except StoreUnavailable as error:
            await abort(context, Unavailable(str(error), reason="STORE_UNAVAILABLE", retry_after=1.0))
        except grpc.aio.AbortError:
            raise
        except Exception as error:  # noqa: BLE001 - the boundary: a defect must become a status that its log line can be found by
            await abort(context, incident(error))
        raise AssertionError("abort does not return")


def decode(request_class: type[Request], raw: bytes) -> Request:
    """Parse a request. Raises InvalidInput for bytes that are none."""
    try:
        return request_class.FromString(raw)
    except DecodeError:
        raise InvalidInput(f"the bytes are no {request_class.DESCRIPTOR.full_name}") from None


def allowed_time(context: Context) -> float:
    """Seconds that a call may take: the caller's deadline less a margin, within the server's own bounds."""
    remaining = context.time_remaining()
    if remaining is None:
        return DEFAULT_TIMEOUT
    return max(min(remaining - MARGIN, MAX_TIMEOUT), 0.001)


def peer_of(context: Context) -> str:
    """Transport address without the port."""
    return context.peer().rpartition(":")[0] or context.peer()


def incident(error: Exception) -> CardkeeperError:
    """Log a defect, and return what its caller may know of it."""
    number = secrets.token_hex(6)
    log.error("incident %s", number, exc_info=error)
    return CardkeeperError(f"a defect of the service; its log has incident {number}", metadata={"incident": number})
