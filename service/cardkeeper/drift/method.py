"""Which methods a card promises: those of the generations that its interfaces speak (a2a-facts 4.1). Pure."""

from cardkeeper.card.model import Card
from cardkeeper.drift.model import Call

_0_1 = {
    "send": ("tasks/send",),
    "stream": ("tasks/sendSubscribe", "tasks/resubscribe"),
    "task": ("tasks/get", "tasks/cancel"),
    "push": ("tasks/pushNotification/set", "tasks/pushNotification/get"),
}
_0_3 = {
    "send": ("message/send",),
    "stream": ("message/stream", "tasks/resubscribe"),
    "task": ("tasks/get", "tasks/cancel"),
    "push": tuple(f"tasks/pushNotificationConfig/{verb}" for verb in ("set", "get", "list", "delete")),
    "card": ("agent/getAuthenticatedExtendedCard",),
}
_1_0 = {
    "send": ("SendMessage",),
    "stream": ("SendStreamingMessage", "SubscribeToTask"),
    "task": ("GetTask", "CancelTask", "ListTasks"),
    "push": tuple(
        f"{verb}TaskPushNotificationConfig{plural}"
        for verb, plural in (("Create", ""), ("Get", ""), ("List", "s"), ("Delete", ""))
    ),
    "card": ("GetExtendedAgentCard",),
}
_STREAMING = frozenset(name for generation in (_0_1, _0_3, _1_0) for name in generation["stream"])


def is_streaming(call: Call) -> bool:
    """Whether the call asks for a stream."""
    return call.streaming or plain_method(call.method) in _STREAMING


def is_promised(card: Card, call: Call) -> bool:
    """Whether the card promises the method; a call that names none is taken for one that sends."""
    method = plain_method(call.method)
    if not method or ("/" in call.method and call.method.startswith(("GET ", "POST "))):
        return True
    versions = [interface.protocol_version for interface in card.interfaces] or [""]
    return any(method in _methods(card, version) for version in versions)


def plain_method(method: str) -> str:
    """The method without the service's path that gRPC puts before it: "/lf.a2a.v1.A2AService/SendMessage"."""
    return method.rpartition("/")[2] if method.startswith("/") or ".A2AService/" in method else method


def _methods(card: Card, version: str) -> set[str]:
    generation = _0_1 if version.startswith("0.1") else _0_3 if version.startswith("0.") else _1_0
    offered = {
        "send": True,
        "task": True,
        "stream": card.streaming,
        "push": card.push_notifications,
        "card": card.extended_card,
    }
    return {name for group, names in generation.items() if offered[group] for name in names}
