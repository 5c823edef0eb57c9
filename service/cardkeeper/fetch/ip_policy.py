"""Where the service may fetch from. Pure."""

from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from cardkeeper.errors import EgressRefused
from cardkeeper.fetch.special_addresses import Reach, classify
from cardkeeper.fetch.url import Url

_REMEDY = {
    Reach.LOOPBACK: "; the operator may allow loopback",
    Reach.PRIVATE: "; the operator may allow private networks, or list this one",
    Reach.SPECIAL: "; the operator may list the network",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EgressPolicy:
    """What the operator allows beyond the public internet.

    Addresses at which clouds hand out credentials, multicast, and IPv6 addresses with an IPv4 address inside are
    allowed by nothing. Raises ValueError for a network that is none.
    """

    allow_networks: tuple[str, ...] = ()
    """Networks in CIDR notation, such as "10.20.0.0/16"."""
    allow_loopback: bool = False
    """127.0.0.0/8 and ::1."""
    allow_private: bool = False
    """RFC 1918 and unique local addresses (RFC 4193)."""
    allowed_schemes: frozenset[str] = frozenset({"http", "https"})
    allowed_ports: frozenset[int] | None = None
    """None: any."""
    _listed: tuple[IPv4Network | IPv6Network, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Read the networks once."""
        object.__setattr__(self, "_listed", tuple(ip_network(network) for network in self.allow_networks))

    def check_url(self, url: Url) -> None:
        """Raise EgressRefused where the scheme or the port is not allowed."""
        if url.scheme not in self.allowed_schemes:
            raise EgressRefused(f"policy does not allow {url.scheme}", metadata={"rule": "scheme"})
        if self.allowed_ports is not None and url.port not in self.allowed_ports:
            raise EgressRefused(f"policy does not allow port {url.port}", metadata={"rule": "port"})

    def check_address(self, address: str) -> None:
        """Raise EgressRefused, which names the rule and never the address, where a connection is not allowed."""
        parsed = ip_address(address)
        block = classify(parsed)
        if block.reach is Reach.PUBLIC:
            return
        if block.reach is not Reach.NEVER and (
            (block.reach is Reach.LOOPBACK and self.allow_loopback)
            or (block.reach is Reach.PRIVATE and self.allow_private)
            or any(parsed in network for network in self._listed)
        ):
            return
        raise EgressRefused(
            f"its host has a {block.rule} address, which policy refuses{_REMEDY.get(block.reach, '')}",
            metadata={"rule": block.rule},
        )
