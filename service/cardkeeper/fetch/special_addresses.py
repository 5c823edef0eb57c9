"""What an IP address is for, by the IANA special-purpose address registries. Pure.

`ipaddress.is_global` does not serve: on Python 3.11.7 it calls multicast, site-local and most addresses with an IPv4
address inside global, and its answers change between patch releases.
"""

from dataclasses import dataclass
from enum import Enum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network


class Reach(Enum):
    """Who may allow a fetch from an address."""

    PUBLIC = "nobody needs to"
    LOOPBACK = "the operator, by a switch or by listing the network"
    PRIVATE = "the operator, by another switch or by listing the network"
    SPECIAL = "the operator, by listing the network"
    NEVER = "nobody"


@dataclass(frozen=True, slots=True)
class AddressRange:
    """A block of addresses; `rule` names it in refusals."""

    network: IPv4Network | IPv6Network
    rule: str
    reach: Reach


# https://www.iana.org/assignments/iana-ipv4-special-registry and iana-ipv6-special-registry (2025-10), multicast, and
# the addresses at which clouds hand out credentials. The longest prefix decides.
_RANGES: tuple[tuple[str, str, Reach], ...] = (
    ("0.0.0.0/0", "public", Reach.PUBLIC),
    ("0.0.0.0/8", "this-network", Reach.NEVER),
    ("10.0.0.0/8", "private", Reach.PRIVATE),
    ("100.64.0.0/10", "shared-address-space", Reach.SPECIAL),
    ("100.100.100.200/32", "cloud-metadata", Reach.NEVER),  # Alibaba
    ("127.0.0.0/8", "loopback", Reach.LOOPBACK),
    ("168.63.129.16/32", "cloud-metadata", Reach.NEVER),  # Azure
    ("169.254.0.0/16", "link-local", Reach.SPECIAL),
    ("169.254.169.254/32", "cloud-metadata", Reach.NEVER),
    ("169.254.170.2/32", "cloud-metadata", Reach.NEVER),  # AWS: credentials of a task
    ("169.254.170.23/32", "cloud-metadata", Reach.NEVER),  # AWS: credentials of a pod
    ("172.16.0.0/12", "private", Reach.PRIVATE),
    ("192.0.0.0/24", "protocol-assignments", Reach.SPECIAL),
    ("192.0.0.9/32", "public", Reach.PUBLIC),
    ("192.0.0.10/32", "public", Reach.PUBLIC),
    ("192.0.0.192/32", "cloud-metadata", Reach.NEVER),  # Oracle
    ("192.0.2.0/24", "documentation", Reach.SPECIAL),
    ("192.88.99.0/24", "6to4-relay", Reach.NEVER),
    ("192.168.0.0/16", "private", Reach.PRIVATE),
    ("198.18.0.0/15", "benchmarking", Reach.SPECIAL),
    ("198.51.100.0/24", "documentation", Reach.SPECIAL),
    ("203.0.113.0/24", "documentation", Reach.SPECIAL),
    ("224.0.0.0/4", "multicast", Reach.NEVER),
    ("240.0.0.0/4", "reserved", Reach.SPECIAL),
    ("255.255.255.255/32", "broadcast", Reach.NEVER),
    ("::/0", "unallocated", Reach.SPECIAL),
    ("::/96", "ipv4-compatible", Reach.NEVER),
    ("::/128", "unspecified", Reach.NEVER),
    ("::1/128", "loopback", Reach.LOOPBACK),
    ("::ffff:0:0/96", "ipv4-mapped", Reach.NEVER),
    ("::ffff:0:0:0/96", "ipv4-translated", Reach.NEVER),
    ("64:ff9b:1::/48", "local-nat64", Reach.NEVER),
    ("100::/64", "discard-only", Reach.SPECIAL),
    ("100:0:0:1::/64", "dummy-prefix", Reach.SPECIAL),
    ("2000::/3", "public", Reach.PUBLIC),
    ("2001::/23", "protocol-assignments", Reach.SPECIAL),
    ("2001::/32", "teredo", Reach.NEVER),
    ("2001:1::1/128", "public", Reach.PUBLIC),
    ("2001:1::2/128", "public", Reach.PUBLIC),
    ("2001:1::3/128", "public", Reach.PUBLIC),
    ("2001:2::/48", "benchmarking", Reach.SPECIAL),
    ("2001:3::/32", "public", Reach.PUBLIC),
    ("2001:4:112::/48", "public", Reach.PUBLIC),
    ("2001:10::/28", "orchid", Reach.SPECIAL),
    ("2001:20::/28", "public", Reach.PUBLIC),
    ("2001:30::/28", "public", Reach.PUBLIC),
    ("2001:db8::/32", "documentation", Reach.SPECIAL),
    ("2002::/16", "6to4", Reach.NEVER),
    ("3fff::/20", "documentation", Reach.SPECIAL),
    ("5f00::/16", "segment-routing", Reach.SPECIAL),
    ("fc00::/7", "private", Reach.PRIVATE),
    ("fd00:ec2::23/128", "cloud-metadata", Reach.NEVER),  # AWS: credentials of a pod
    ("fd00:ec2::254/128", "cloud-metadata", Reach.NEVER),  # AWS
    ("fd20:ce::254/128", "cloud-metadata", Reach.NEVER),  # Google
    ("fe80::/10", "link-local", Reach.SPECIAL),
    ("fec0::/10", "site-local", Reach.SPECIAL),
    ("ff00::/8", "multicast", Reach.NEVER),
)

RANGES: tuple[AddressRange, ...] = tuple(
    sorted(
        (AddressRange(ip_network(network), rule, reach) for network, rule, reach in _RANGES),
        key=lambda block: -block.network.prefixlen,
    )
)
"""Longest prefix first."""

NAT64 = IPv6Network("64:ff9b::/96")
"""How the whole of IPv4 looks from an IPv6-only network (RFC 6052): an address in it is what it embeds."""


def classify(address: IPv4Address | IPv6Address) -> AddressRange:
    """Return the narrowest block that holds the address.

    A special IPv4 address is refused for ever once it hides in a NAT64 address: what the operator allows is meant as
    it is written.
    """
    if address in NAT64:
        embedded = classify(IPv4Address(int(address) & 0xFFFFFFFF))
        return (
            embedded if embedded.reach is Reach.PUBLIC else AddressRange(NAT64, f"nat64-{embedded.rule}", Reach.NEVER)
        )
    return next(block for block in RANGES if address in block.network)
