"""One URL, taken apart and written in one way (RFC 3986 section 6.2, RFC 5891 for names). Pure."""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import quote

import idna

MAX_URL_LENGTH = 2048
DEFAULT_PORTS = {"http": 80, "https": 443}

_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(\?(?P<query>[^#]*))?(#.*)?"
)
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^\[\]:]*)(:(?P<port>[0-9]{0,5}))?")
# Underscores are no host names by RFC 1123, and common in container networks.
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9._~!$&'()*+,;=:@/?-]")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


@dataclass(frozen=True, slots=True, kw_only=True)
class Url:
    """An http or https URL in normal form, without userinfo and fragment."""

    scheme: str
    host: str
    """A-labels in lower case, or an address; an IPv6 address without its brackets."""
    port: int
    path: str
    """Starts with "/"; dot segments removed, escapes in one spelling."""
    query: str = ""

    @property
    def origin(self) -> str:
        """Scheme, host and port, the port only where it is not the scheme's own (RFC 6454)."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == DEFAULT_PORTS[self.scheme] else f":{self.port}")

    def __str__(self) -> str:
        """Return the URL's one spelling."""
        return self.origin + self.path + (f"?{self.query}" if self.query else "")


def parse_url(text: str) -> Url:
    """Take a URL apart. A fragment is dropped.

    Raises ValueError whose message is a predicate that says what to fix ("has no host"); it quotes nothing, because
    what is refused may hold a password.
    """
    if len(text) > MAX_URL_LENGTH:
        raise ValueError(f"is longer than {MAX_URL_LENGTH} characters")
    if not text.isprintable() or " " in text:
        raise ValueError("contains a space or a character that cannot be printed; escape it as %XX or remove it")
    if "\\" in text:
        raise ValueError("contains a backslash; write / instead")
    match = _URL.fullmatch(text)
    if match is None:
        raise ValueError('is no absolute URL; write it with its scheme, as in "https://agent.example.com"')
    scheme = match["scheme"].lower()
    if scheme not in DEFAULT_PORTS:
        raise ValueError("has a scheme that is neither http nor https")
    if "@" in match["authority"]:
        raise ValueError("contains a user name or password; remove what stands before @")
    authority = _AUTHORITY.fullmatch(match["authority"])
    if authority is None:
        raise ValueError("has an unreadable host or port")
    port = int(authority["port"] or DEFAULT_PORTS[scheme])
    if not 1 <= port <= 65535:
        raise ValueError("has a port outside 1 to 65535")
    url = Url(
        scheme=scheme,
        host=_host(authority["host"]),
        port=port,
        path=_without_dot_segments(_escaped(match["path"])),
        query=_escaped(match["query"] or ""),
    )
    if len(str(url)) > MAX_URL_LENGTH:
        raise ValueError(f"is longer than {MAX_URL_LENGTH} characters once it is escaped")
    return url


def _host(text: str) -> str:
    if text.startswith("["):
        try:
            address = IPv6Address(text[1:-1])
        except ValueError:
            raise ValueError("has brackets around something that is no IPv6 address") from None
        if address.scope_id is not None:
            raise ValueError("names a network interface in its address; remove what stands after %")
        return address.compressed
    if not text.isascii():
        try:
            text = idna.encode(text, uts46=True).decode("ascii")
        except idna.IDNAError:
            raise ValueError("has a host that is no valid international domain name") from None
    host = text.lower().removesuffix(".")
    if not host:
        raise ValueError("has no host")
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError("has a host that is no valid domain name or address")
    if _NUMERIC_LABEL.fullmatch(labels[-1]):
        # Resolvers read "127.1" and "2130706433" as addresses; one spelling is enough.
        try:
            return str(IPv4Address(host))
        except ValueError:
            raise ValueError('has a numeric host that is no IPv4 address; write it as in "192.0.2.1"') from None
    return host


def _escaped(text: str) -> str:
    def one_spelling(match: re.Match[str]) -> str:
        found = match[0]
        if len(found) == 1:
            return quote(found, safe="")
        char = chr(int(found[1:], 16))
        return char if char in _UNRESERVED else found.upper()

    return _ESCAPE.sub(one_spelling, text)


def _without_dot_segments(path: str) -> str:
    """RFC 3986 section 5.2.4."""
    segments = path.split("/")[1:]
    kept: list[str] = []
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments and segments[-1] in {".", ".."}:
        kept.append("")
    return "/" + "/".join(kept)
