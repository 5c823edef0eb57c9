"""Clients that were made before a fork: the child has their memory, and neither their threads nor their sockets."""

import os
import weakref
from typing import Protocol


class Forkable(Protocol):
    """A client that can be told that it lives on in another process only."""

    def disown(self) -> None:
        """In the child, before anything else runs: answer nothing any more, and leave the parent's channel alone."""


_clients: "weakref.WeakSet[Forkable]" = weakref.WeakSet()


def guard(client: Forkable) -> None:
    """Disown the client in each process that is forked from this one."""
    _clients.add(client)


def _disown_all() -> None:
    for client in list(_clients):
        client.disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_all)
