"""Receive webhooks over a raw socket, which can misbehave in each way that HTTP allows, and in others.

What it does with a request is a function of its connection; `stopped` is set when the test is over.
"""

from __future__ import annotations

import socket
import ssl
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Self

Behaviour = Callable[[socket.socket, Event], None]


@dataclass(frozen=True)
class Received:
    """Hold one request as it came over the wire."""

    line: str
    headers: dict[str, str]
    body: bytes


def answer(status: int, body: bytes = b"", **headers: str) -> Behaviour:
    lines = [f"HTTP/1.1 {status} Because", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]

    def behave(connection: socket.socket, stopped: Event) -> None:
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        stopped.wait(5)  # keeps the connection open: the client must know by itself that this is all

    return behave


def say(words: bytes, then_wait: bool = False) -> Behaviour:
    """Send just these bytes, and hang up or never do."""

    def behave(connection: socket.socket, stopped: Event) -> None:
        connection.sendall(words)
        if then_wait:
            stopped.wait()

    return behave


def drip(first: bytes, drop: bytes, every: float = 0.02) -> Behaviour:
    """Send without long silence, and without end."""

    def behave(connection: socket.socket, stopped: Event) -> None:
        connection.sendall(first)
        while not stopped.wait(every):
            connection.sendall(drop)

    return behave


def pour(first: bytes, flood: bytes) -> Behaviour:
    """Send as fast as it goes, without end."""

    def behave(connection: socket.socket, stopped: Event) -> None:
        connection.sendall(first)
        while not stopped.is_set():
            connection.sendall(flood)

    return behave


class WebhookReceiver:
    """Own a listening socket on loopback. Each request uses one of `behaviours`, and the last serves all that
    follow."""

    def __init__(self, *behaviours: Behaviour, chain: Path | None = None) -> None:
        self.received: deque[Received] = deque()
        self.connections = 0
        self.names_asked: deque[str | None] = deque()  # by TLS
        self._behaviours = deque(behaviours or [answer(200)])
        self._stopped = Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self._tls = self._context(chain) if chain else None
        self._open: list[socket.socket] = []

    def url(self, host: str = "127.0.0.1", scheme: str = "http", path: str = "/hook") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    def __enter__(self) -> Self:
        Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for one in (self._socket, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _context(self, chain: Path) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain)
        context.sni_callback = lambda _socket, name, _context: self.names_asked.append(name)
        return context

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self.connections += 1
                self._open.append(connection)
                Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection:
            secured = self._tls.wrap_socket(connection, server_side=True) if self._tls else connection
            with secured:
                self.received.append(_read(secured))
                behave = self._behaviours.popleft() if len(self._behaviours) > 1 else self._behaviours[0]
                behave(secured, self._stopped)


def _read(connection: socket.socket) -> Received:
    data = b""
    while b"\r\n\r\n" not in data:
        data += _more(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    line, *fields = head.decode().split("\r\n")
    headers = dict(field.split(": ", 1) for field in fields)
    while len(body) < int(headers["Content-Length"]):
        body += _more(connection)
    return Received(line, headers, body)


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise ConnectionResetError
    return data
