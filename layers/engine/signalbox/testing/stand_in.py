"""Run an HTTP server on loopback that answers a test in place of an outside service, inside a `with` block."""

from __future__ import annotations

import socketserver
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler
from threading import Thread
from typing import Self
from urllib.parse import parse_qs


@dataclass(frozen=True, slots=True)
class Request:
    """Describe one request, with its body read. `target` is the raw path and query, still encoded."""

    method: str
    target: str
    headers: Message
    body: bytes

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> dict[str, str]:
        """Return the first value of each parameter."""
        return {name: values[0] for name, values in parse_qs(self.target.partition("?")[2]).items()}


@dataclass(frozen=True, slots=True)
class Response:
    """Describe one answer. Content-Length is added where the headers do not give it, as for HEAD."""

    status: int
    body: bytes = b""
    headers: Iterable[tuple[str, str]] = ()

    def to_bytes(self) -> bytes:
        headers = {"Content-Length": str(len(self.body))} | dict(self.headers)
        lines = [f"HTTP/1.1 {self.status} -", *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode() + self.body


class StandIn(ABC):
    """Own the server; a subclass says what the service answers."""

    def __init__(self) -> None:
        self._server = _Server(("127.0.0.1", 0), _Exchange)
        self._server.stand_in = self

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @abstractmethod
    def answer(self, request: Request) -> Response | None:
        """Answer one request, from a thread of its connection; None hangs up."""


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    stand_in: StandIn


class _Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def exchange(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        response = self.server.stand_in.answer(Request(self.command, self.path, self.headers, body))
        if response is None:
            self.close_connection = True
        else:
            self.wfile.write(response.to_bytes())

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = exchange  # noqa: N815 - http.server's names

    def log_message(self, *_: object) -> None:
        """Log nothing: a test reads what the stand-in holds."""
