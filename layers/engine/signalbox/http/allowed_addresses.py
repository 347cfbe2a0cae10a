"""Decide which addresses a webhook may go to: the public internet, as the stack's settings extend or limit it.

Tenants name the receivers. An address inside our own network, or one that leads there by translation, would let a
tenant make the worker call what only the worker can reach. Pure, and from lists of our own: what the standard library
calls global differs from release to release.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# IANA's special purposes, and everything that is not unicast.
_NOT_PUBLIC_4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this host
            "10.0.0.0/8",
            "100.64.0.0/10",  # behind a carrier's translation; clouds have their metadata here
            "127.0.0.0/8",
            "169.254.0.0/16",  # link-local: the metadata of EC2, ECS and Lambda's neighbours
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.31.196.0/24",
            "192.52.193.0/24",
            "192.88.99.0/24",  # relays from 6to4
            "192.168.0.0/16",
            "192.175.48.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
# All public IPv6 addresses are here, so mapped, translated (NAT64), local and multicast ones need no entry.
_UNICAST_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # Teredo, benchmarks, ORCHID: IETF's own
            "2001:db8::/32",
            "2002::/16",  # 6to4: an IPv4 address in disguise
            "3fff::/20",
        ),
    )
)


def read_address(text: str) -> Address | None:
    """Read an address as a resolver gives it. Return None for one bound to an interface, such as fe80::1%eth0."""
    return None if "%" in text else ip_address(text)


def is_public(address: Address) -> bool:
    """Return whether this is the address of one host on the public internet."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    return address in _UNICAST_6 and not any(address in network for network in _NOT_PUBLIC_6)


def may_receive(address: Address, allowed: Sequence[Network], refused: Sequence[Network]) -> bool:
    """Return whether webhooks may go to the address. A refused network stays refused, even if it is also allowed."""
    if any(address in network for network in refused):
        return False
    return is_public(address) or any(address in network for network in allowed)
