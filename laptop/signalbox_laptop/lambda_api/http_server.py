"""Serve HTTP/1.1 on loopback: keep-alive, one thread per connection, an answer in one send.

The front and each process's Runtime API are such servers. The standard library's own looks up the host's name when it
binds and notices its end only at the next poll; this one does neither.
"""

from __future__ import annotations

import logging
import socket
import socketserver
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs

LOOPBACK = "127.0.0.1"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Request:
    """Describe one request, its body read. `target` is as it came: path and query, still encoded."""

    method: str
    target: str
    headers: Message
    body: bytes
    connection: socket.socket | None = None

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> dict[str, str]:
        """Return the first value of each parameter."""
        return {name: values[0] for name, values in parse_qs(self.target.partition("?")[2]).items()}

    def abandoned(self) -> bool:
        """Say whether the client has hung up, as far as this side knows."""
        if self.connection is None:
            return False
        try:
            return self.connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True


@dataclass(frozen=True, slots=True)
class Response:
    """Describe one answer. Content-Length is added if the headers lack it."""

    status: int
    body: bytes = b""
    headers: Iterable[tuple[str, str]] = ()


# None closes the connection without an answer.
Answer = Callable[[Request], Response | None]


class HttpServer(socketserver.ThreadingTCPServer):
    """Bind at once, and serve between start() and stop()."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, port: int, answer: Answer) -> None:
        self.answer = answer
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._stopping = False
        self._thread = threading.Thread(target=self._accept, name="http-server", daemon=True)
        super().__init__((LOOPBACK, port), _Exchange)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop listening and hang up on every client."""
        self._stopping = True
        if self._thread.is_alive():
            with suppress(OSError):
                # The accepting thread waits in the kernel; a connection wakes it.
                socket.create_connection((LOOPBACK, self.port), timeout=1).close()
            self._thread.join()
        self.server_close()
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while not self._stopping:
            self.handle_request()

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, client = super().get_request()
        # Otherwise the second of two small sends waits for the first one's delayed acknowledgement: 40 ms.
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._connections.add(connection)
        return connection, client

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.exception("http.failed")


class _Exchange(BaseHTTPRequestHandler):
    """Read requests from one connection and write answers, until either side hangs up."""

    protocol_version = "HTTP/1.1"
    server: HttpServer

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except ConnectionError:
            # The client has gone, or stop() hung up: no one can be answered.
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base class's name)
        _log.debug(format, *args)

    def exchange(self) -> None:
        request = Request(self.command, self.path, self.headers, self._body(), self.connection)
        response = self.server.answer(request)
        if response is None:
            self.close_connection = True
        else:
            self.wfile.write(_bytes_of(response, bodiless=self.command == "HEAD"))

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_QUERY = exchange  # noqa: N815 (http.server's)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return b"".join(self._chunks())
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _chunks(self) -> Iterable[bytes]:
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline() not in (b"\r\n", b"\n", b""):
            pass


def _bytes_of(response: Response, *, bodiless: bool) -> bytes:
    headers = list(response.headers)
    given = {name.lower() for name, _ in headers}
    empty_by_rule = response.status in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
    if "content-length" not in given and not empty_by_rule:
        headers.append(("Content-Length", str(len(response.body))))
    lines = [
        f"HTTP/1.1 {response.status} {_reason(response.status)}",
        *(f"{name}: {value}" for name, value in headers),
    ]
    head = "\r\n".join(lines) + "\r\n\r\n"
    return head.encode("latin-1") + (b"" if bodiless or empty_by_rule else response.body)


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
