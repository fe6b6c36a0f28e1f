"""Whose address it is: in IPv6 everybody has a network of 2**64 addresses, so the network is counted, not the address."""

import ipaddress


def counted(address: str) -> str:
    """Returns what stands for an address wherever somebody is counted: an IPv4 address itself, an IPv6 address's /64."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    if found.is_loopback:
        return str(found)
    return str(ipaddress.ip_network((found, 64), strict=False))


def is_loopback(address: str) -> bool:
    """Is it this machine itself?"""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
