"""Who may change the fleet: whoever has the operators' token."""

import hmac
from typing import Any

import grpc

from cardkeeper.errors import Unauthenticated


class Authorization:
    """A bearer token for the methods that change the fleet; empty: anybody may, for a service on loopback."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode() if token else b""

    def check(self, context: "grpc.aio.ServicerContext[Any, Any]") -> None:
        """Raise Unauthenticated unless the call carries the token."""
        if not self._expected:
            return
        for key, value in context.invocation_metadata() or ():
            if key == "authorization":
                given = value if isinstance(value, bytes) else value.encode()
                if hmac.compare_digest(given, self._expected):
                    return
        raise Unauthenticated(
            "this method needs the operators' token: send metadata authorization: Bearer TOKEN",
            metadata={"scheme": "Bearer"},
        )
