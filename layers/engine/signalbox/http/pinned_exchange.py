"""Send one request to an untrusted receiver, and read its answer: within a time, and no more than is wanted.

The socket goes straight to a checked address, so that no proxy, redirect or second look-up comes in between;
http.client only reads the answer. TLS is verified against the name in the URL.
"""

from __future__ import annotations

import io
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException, HTTPResponse
from typing import Any

from signalbox.errors import Unavailable
from signalbox.http.allowed_addresses import Address
from signalbox.http.url import Receiver

CONNECT_SECONDS = 5.0  # for each address
BODY_SECONDS = 5.0  # once the status is there, which decides; the rest is for people
MOST_OF_HEAD = 32 * 1024
MOST_OF_BODY = 64 * 1024
MOST_BEHIND_HEAD = 512 * 1024  # on the wire: chunks of one byte cost six
PIECE = 16 * 1024


class ReceiverFailed(Unavailable):
    """There was no answer: nobody listens, the connection broke, or the answer is unreadable or too late."""


class _TooMuch(HTTPException):
    """The other side sends more than we read."""


@dataclass(frozen=True, slots=True)
class WebhookResponse:
    """Describe a receiver's answer."""

    status: int
    headers: Mapping[str, str]  # by names in lower case
    body: bytes
    whole: bool  # False: the body was longer, too slow, or broke off


def send(
    target: Receiver,
    addresses: Sequence[Address],
    headers: Mapping[str, str],
    body: bytes = b"",
    *,
    ends_at: float,
    method: str = "POST",
) -> WebhookResponse:
    """Send once to the first address that takes a connection. Raise ReceiverFailed where no answer came."""
    try:
        with _connect(target, addresses, ends_at) as connection:
            # A receiver that answers before it has read everything may hang up on the rest: the answer is what counts.
            with suppress(BrokenPipeError, ConnectionResetError):
                _write(connection, _request(method, target, headers, body), ends_at)
            return _read(connection, ends_at)
    except ssl.SSLCertVerificationError as error:
        raise ReceiverFailed(f"{target.host} has no certificate that can be trusted: {error.verify_message}") from None
    except TimeoutError:
        raise ReceiverFailed(f"{target.host} did not answer in time") from None
    except (OSError, HTTPException) as error:
        raise ReceiverFailed(f"{target.host} gave no answer: {type(error).__name__}") from None


def _connect(target: Receiver, addresses: Sequence[Address], ends_at: float) -> socket.socket:
    last: OSError = TimeoutError()
    for address in addresses:
        try:
            connection = _open(address, target.port, min(CONNECT_SECONDS, _left(ends_at)))
        except OSError as error:
            last = error
            continue
        if target.scheme == "http":
            return connection
        return _secure(connection, target.host, ends_at)
    raise last


def _open(address: Address, port: int, seconds: float) -> socket.socket:
    connection = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        connection.connect((str(address), port))
        return connection
    except BaseException:
        connection.close()
        raise


def _secure(connection: socket.socket, host: str, ends_at: float) -> ssl.SSLSocket:
    try:
        connection.settimeout(_left(ends_at))
        return trust().wrap_socket(connection, server_hostname=host)
    except BaseException:
        connection.close()
        raise


@cache
def trust() -> ssl.SSLContext:
    """Return the system's authorities, or those of SSL_CERT_FILE: read once, since there are many."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _request(method: str, target: Receiver, headers: Mapping[str, str], body: bytes) -> bytes:
    ours = {"Host": target.authority, "Content-Length": str(len(body)), "Connection": "close"}
    lines = [f"{method} {target.path} HTTP/1.1", *(f"{name}: {value}" for name, value in {**ours, **headers}.items())]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


def _write(connection: socket.socket, request: bytes, ends_at: float) -> None:
    """Send in pieces, each with the time that is left: a receiver may read as slowly as it writes."""
    rest = memoryview(request)
    while rest:
        connection.settimeout(_left(ends_at))
        rest = rest[connection.send(rest[:PIECE]) :]


def _read(connection: socket.socket, ends_at: float) -> WebhookResponse:
    wire = _Wire(connection, ends_at, MOST_OF_HEAD)
    response = HTTPResponse(_Source(wire), method="POST")  # type: ignore[arg-type]
    response.begin()
    if wire.ended:  # http.client takes half a head for a whole one
        raise ConnectionResetError
    wire.allow(MOST_BEHIND_HEAD, min(ends_at, time.monotonic() + BODY_SECONDS))
    body, whole = _read_body(response)
    headers = {name.lower(): value for name, value in response.getheaders()}
    return WebhookResponse(response.status, headers, body, whole)


def _read_body(response: HTTPResponse) -> tuple[bytes, bool]:
    """Read what comes of the body, up to the limit. A break changes nothing: the status is already known."""
    announced, body = response.length, b""
    most = MOST_OF_BODY if announced is None else min(announced, MOST_OF_BODY)
    with suppress(OSError, HTTPException):
        while len(body) < most:
            piece = response.read1(most - len(body))
            if not piece:
                return body, announced is None
            body += piece
    return body, len(body) == announced


class _Wire(io.RawIOBase):
    """Read from the socket, within a time and a number of bytes."""

    def __init__(self, connection: socket.socket, ends_at: float, most: int) -> None:
        self._connection = connection
        self.ended = False  # the other side has hung up
        self.allow(most, ends_at)

    def allow(self, most: int, ends_at: float) -> None:
        self._most, self._ends_at = most, ends_at

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._most <= 0:
            raise _TooMuch
        self._connection.settimeout(_left(self._ends_at))
        count = self._connection.recv_into(buffer)
        self._most -= count
        self.ended = count == 0
        return count


class _Source:
    """Offer as much of a socket as http.client uses."""

    def __init__(self, wire: _Wire) -> None:
        self._wire = wire

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self._wire)


def _left(ends_at: float) -> float:
    left = ends_at - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
