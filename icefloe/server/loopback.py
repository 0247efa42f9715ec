"""Decides which names and addresses only this machine reaches."""

import ipaddress
from functools import lru_cache

_NAMES = ("localhost", "ip6-localhost")


@lru_cache(maxsize=1024)
def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host.lower() in _NAMES:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
