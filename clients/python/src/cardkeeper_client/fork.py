"""Clients that were made before a fork: the child has their memory, and neither their threads nor their sockets."""

import os
import weakref
from collections.abc import Callable

_disowners: "set[weakref.WeakMethod[Callable[[], None]]]" = set()


def guard(disown: Callable[[], None]) -> None:
    """Call a client's method in each process that is forked from this one, before anything else runs there.

    The client must answer nothing from then on, and leave the channel alone: it is the parent's.
    """
    _disowners.add(weakref.WeakMethod(disown, _disowners.discard))


def _disown_all() -> None:
    for reference in list(_disowners):
        disown = reference()
        if disown is not None:
            disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_all)
