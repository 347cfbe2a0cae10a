"""Resolve a receiver's name to addresses that may be called: looked up once, and all checked before any is used.

The connection then goes to a checked address and asks no resolver again. So a name that leads elsewhere a moment later
("DNS rebinding") changes nothing, and a name with one public address and one of ours is refused whole.
"""

from __future__ import annotations

import socket
import time
from queue import Empty, SimpleQueue
from threading import Thread

from signalbox.errors import Unavailable
from signalbox.http.allowed_addresses import Address, may_receive, read_address
from signalbox.http.url import Receiver, ReceiverRefused
from signalbox.runtime.settings import Settings

MOST_SECONDS = 5.0


class NameUnresolved(Unavailable):
    """The resolver knows no address of the receiver, or does not answer."""


def addresses_of(target: Receiver, settings: Settings, ends_at: float) -> list[Address]:
    """Return each address once, in the resolver's order. Raise if webhooks may not go to one of them."""
    found = resolve(target, ends_at)
    allowed, refused = settings.webhook_allowed_networks, settings.webhook_refused_networks
    checked = [address for address in found if address is not None and may_receive(address, allowed, refused)]
    if len(checked) < len(found):
        # The message does not say which: the people who name receivers would learn our network from it.
        raise ReceiverRefused(f"{target.host} has an address that webhooks are not sent to: it is not a public one")
    return checked


def resolve(target: Receiver, ends_at: float) -> list[Address | None]:
    """Return each address once, in the resolver's order; None stands for one that is bound to an interface."""
    return list(dict.fromkeys(map(read_address, _look_up(target, ends_at))))


def _look_up(target: Receiver, ends_at: float) -> list[str]:
    """Resolve the name in a thread, since the C library's resolver takes no time limit."""
    answers: SimpleQueue[list[str] | OSError] = SimpleQueue()
    Thread(target=_ask, args=(target, answers), name="resolver", daemon=True).start()
    try:
        answer = answers.get(timeout=max(0.0, min(MOST_SECONDS, ends_at - time.monotonic())))
    except Empty:
        raise NameUnresolved(f"{target.host}: the resolver did not answer in time") from None
    if isinstance(answer, OSError) or not answer:
        raise NameUnresolved(f"{target.host}: the resolver found no address")
    return answer


def _ask(target: Receiver, answers: SimpleQueue[list[str] | OSError]) -> None:
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        answers.put([str(where[0]) for *_, where in found])
    except UnicodeError:
        answers.put([])
    except OSError as error:
        answers.put(error)
