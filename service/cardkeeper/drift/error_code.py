"""JSON-RPC error codes by the version that was spoken (a2a-facts 5.1): the same number means different things. Pure."""

import re

_ALL = {
    -32003: "PUSH_NOTIFICATION_NOT_SUPPORTED",
    -32004: "UNSUPPORTED_OPERATION",
    -32005: "CONTENT_TYPE_NOT_SUPPORTED",
    -32601: "METHOD_NOT_FOUND",
}
_0_1 = {-32006: "UNSUPPORTED_OPERATION"}  # streaming not supported
_0_3 = {-32007: "EXTENDED_AGENT_CARD_NOT_CONFIGURED"}
_1_0 = _0_3 | {-32008: "EXTENSION_SUPPORT_REQUIRED", -32009: "VERSION_NOT_SUPPORTED"}

# What a message says that means the same as the code.
_WORDING = {
    "PUSH_NOTIFICATION_NOT_SUPPORTED": re.compile(r"push|notif|not supported|unsupported", re.IGNORECASE),
    "UNSUPPORTED_OPERATION": re.compile(r"support|stream|operation|implement|capabilit", re.IGNORECASE),
    "CONTENT_TYPE_NOT_SUPPORTED": re.compile(r"content|media|type|mode|format|mime|part|accepts", re.IGNORECASE),
    "EXTENSION_SUPPORT_REQUIRED": re.compile(r"extension", re.IGNORECASE),
    "VERSION_NOT_SUPPORTED": re.compile(r"version|protocol", re.IGNORECASE),
    "EXTENDED_AGENT_CARD_NOT_CONFIGURED": re.compile(r"card|configur|support", re.IGNORECASE),
}


def reason_of_code(code: int | None, version: str, said: str) -> str:
    """Return the ErrorInfo reason that a code stands for in a protocol version; empty where it stands for none.

    Agents invent their own codes, which collide with A2A's (a2a-facts 5.6): where the error's own words `said` are about
    something else, they speak for themselves.
    """
    if code is None:
        return ""
    if version.startswith("0.1"):
        codes = _ALL | _0_1
    elif version.startswith("0.3"):
        codes = _ALL | _0_3
    else:
        codes = _ALL if version.startswith("0.") else _ALL | _1_0
    reason = codes.get(code, "")
    agrees = _WORDING.get(reason)
    return reason if agrees is None or not said or not said.isascii() or agrees.search(said) else ""
