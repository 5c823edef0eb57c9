"""How an agent is reached: the interfaces of every generation as one list, in order of preference (a2a-facts 2.6). Pure."""

import re
from ipaddress import ip_address
from urllib.parse import urljoin, urlsplit

from cardkeeper.card.members import Members
from cardkeeper.card.model import Dialect, Interface
from cardkeeper.card.remarks import shown

MAX_INTERFACES = 64
"""Interfaces that are read."""

_IMPLIED = {Dialect.V0_1: "0.1", Dialect.V0_2: "0.2", Dialect.V0_3: "0.3", Dialect.HYBRID: "0.3"}
"""What a legacy card without `protocolVersion` speaks."""
_VERSION = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.\d+.*)?")
_HOST_PORT = re.compile(r"(?:dns:(?:///)?)?[A-Za-z0-9._\[\]:-]+:\d{1,5}")


def read_interfaces(card: Members, dialect: Dialect, card_url: str) -> tuple[Interface, ...]:
    """Return the interfaces, each once: those of 1.0, then those of 0.x that say something else."""
    found = [
        _interface(item, item.text("url"), item.text("protocolBinding") or item.text("transport"), "0.3", card_url)
        for item in card.objects("supportedInterfaces")
    ]
    implied = _major_minor(card.text("protocolVersion")) or _IMPLIED.get(dialect, "")
    if card.value("url") is not None:
        found.append(
            _interface(card, card.text("url"), card.text("preferredTransport") or "JSONRPC", implied, card_url)
        )
    found += [
        _interface(item, item.text("url"), item.text("transport") or item.text("protocolBinding"), implied, card_url)
        for item in card.objects("additionalInterfaces")
    ]
    distinct = {(item.url, item.binding.upper(), item.tenant): item for item in reversed(found) if item is not None}
    interfaces = tuple(reversed(distinct.values()))
    if not interfaces:
        card.remarks.warn("interface.missing", card.pointer, "no interface with a URL: nobody can call this agent")
    if len(interfaces) > MAX_INTERFACES:
        card.remarks.warn("interface.too_many", card.pointer, f"only the first {MAX_INTERFACES} interfaces are read")
    return interfaces[:MAX_INTERFACES]


def _interface(holder: Members, url: str, binding: str, version: str, card_url: str) -> Interface | None:
    url = url.strip()
    if not url:
        holder.remarks.warn("interface.url.missing", holder.at("url"), "an interface without a URL is ignored")
        return None
    binding = binding.strip() or "JSONRPC"
    stated = holder.text("protocolVersion") if holder.pointer else ""
    if holder.pointer and not stated and "supported" in holder.pointer:
        holder.remarks.note(
            "interface.version.missing", holder.at("protocolVersion"), "no protocolVersion: read as 0.3, as SDKs do"
        )
    return Interface(
        url=_usable_url(holder, url, binding, card_url),
        binding=binding,
        protocol_version=_major_minor(stated) or version,
        tenant=holder.text("tenant") if holder.pointer else "",
    )


def _usable_url(holder: Members, url: str, binding: str, card_url: str) -> str:
    """The URL, resolved against the card's where it is relative; what is odd about it becomes a finding."""
    where, remarks = holder.at("url"), holder.remarks
    if _HOST_PORT.fullmatch(url) and (binding.upper() == "GRPC" or "://" not in url):
        if binding.upper() != "GRPC":
            remarks.warn("interface.url.scheme", where, f"{shown(url)} has no scheme; write https:// before it")
        return url
    try:
        scheme, host = urlsplit(url).scheme, urlsplit(url).hostname
        if not scheme:
            if not card_url:
                remarks.warn("interface.url.relative", where, "the URL is relative; write it with scheme and host")
                return url
            remarks.repair(
                "interface.url.relative", where, "the URL is relative; it is resolved against the card's own"
            )
            url = urljoin(card_url, url)
            host = urlsplit(url).hostname
        elif scheme not in ("http", "https", "grpc", "grpcs", "ws", "wss", "dns"):
            remarks.warn("interface.url.scheme", where, f'"{scheme[:20]}" is no scheme that an agent is called by')
    except ValueError:
        remarks.warn("interface.url.unreadable", where, f"{shown(url)} is no URL")
        return url
    if host and _is_private(host):
        remarks.warn("interface.url.private", where, "the URL leads to this machine or a private network")
    return url


def _is_private(host: str) -> bool:
    if host == "localhost" or host.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        return not ip_address(host).is_global
    except ValueError:
        return False


def _major_minor(text: str) -> str:
    """`1.0.1` speaks 1.0: a patch digit must not influence behaviour (1.0 section 3.6)."""
    match = _VERSION.fullmatch(text.strip())
    return f"{match[1]}.{match[2] or 0}" if match else text.strip()[:32]
