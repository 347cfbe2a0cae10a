"""Take a webhook's URL apart once, strictly, so that nothing else reads it in another way."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv6Address
from urllib.parse import urlsplit

from signalbox.errors import Refused
from signalbox.runtime.settings import Settings

MOST_CHARACTERS = 2000
DEFAULT_PORTS = {"https": 443, "http": 80}
# No blanks, control characters or other alphabets: readers of URLs disagree on them.
_CHARACTERS = re.compile(r"[!#-;=?-\[\]_a-z~]+")
_LABEL = r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(\.{_LABEL})*")


class ReceiverRefused(Refused):
    """No webhook is sent to this URL."""


@dataclass(frozen=True, slots=True)
class Receiver:
    """Hold a URL's parts, as they go into a request."""

    scheme: str
    host: str  # a name, or an address without brackets
    port: int
    path: str  # with the query

    @property
    def authority(self) -> str:
        """Return the host and port for the header Host."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def read_url(url: str) -> Receiver:
    """Return the URL's parts, or raise why it can't be read. Its path may be a secret, so no error shows the URL."""
    if len(url) > MOST_CHARACTERS or not _CHARACTERS.fullmatch(url):
        raise ReceiverRefused(
            f"the URL is not one of at most {MOST_CHARACTERS} plain characters: encode others as %XX, names as xn--…"
        )
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ReceiverRefused("the URL has a host or a port that can't be read") from None
    if parts.scheme not in DEFAULT_PORTS:
        raise ReceiverRefused("the URL does not start with https://")
    if "@" in parts.netloc or "#" in url:
        raise ReceiverRefused("the URL holds a user or a fragment: a webhook's URL must have neither")
    if not (_NAME.fullmatch(host) or ("[" in parts.netloc and _is_address_6(host))):
        raise ReceiverRefused("the URL's host is neither a name nor an address")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Receiver(parts.scheme, host, port if port is not None else DEFAULT_PORTS[parts.scheme], path)


def require_allowed(target: Receiver, settings: Settings) -> None:
    """Raise where this stack sends nothing that way."""
    if target.scheme == "http" and not settings.webhook_allow_http:
        raise ReceiverRefused(
            f"{target.host}: webhooks go over https, and this stack's SIGNALBOX_WEBHOOK_ALLOW_HTTP is off"
        )
    if not any(target.port in ports for ports in settings.webhook_ports):
        raise ReceiverRefused(f"{target.host}: port {target.port} is not among this stack's SIGNALBOX_WEBHOOK_PORTS")


def _is_address_6(host: str) -> bool:
    try:
        return not IPv6Address(host).scope_id
    except AddressValueError:
        return False
