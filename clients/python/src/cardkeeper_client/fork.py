"""Clients that were made before a fork: the child has their memory, and neither their threads nor their sockets."""

import os
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

Client = TypeVar("Client")

_clients: WeakKeyDictionary[Any, Callable[[Any], None]] = WeakKeyDictionary()
"""With the method that disowns each: a function of its class, so that nothing here keeps a client alive."""


def guard(client: Client, disown: Callable[[Client], None]) -> None:
    """Disown the client in each process that is forked from this one, before anything else runs there.

    It must answer nothing from then on, and leave the channel alone: that is the parent's.
    """
    _clients[client] = disown


def _disown_all() -> None:
    for client, disown in list(_clients.items()):
        disown(client)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_all)
