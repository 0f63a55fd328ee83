"""Addresses of servers, as a config may name them."""

import ipaddress
from urllib.parse import urlsplit


def is_address(url: str) -> bool:
    """Whether `url` is http or https, a host that can be looked up, perhaps a port and a path, and nothing else.

    >>> is_address("http://localhost:8000/v1"), is_address("https://user:secret@host/v1"), is_address("http://../v1")
    (True, False, False)
    """
    if not url.startswith(("http://", "https://")) or "@" in url or "?" in url or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        host.encode("idna")  # an empty label, or one that is too long
        return bool(host) and parts.port != 0
    except ValueError:  # UnicodeError is one
        return False


def is_loopback(url: str) -> bool:
    """Whether an address is one of this machine, which nothing leaves on its way there.

    >>> is_loopback("http://localhost:8000/v1"), is_loopback("http://[::1]/v1"), is_loopback("http://10.0.0.7:8000/v1")
    (True, True, False)
    """
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    if host == "localhost" or host.endswith(".localhost"):  # RFC 6761
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
