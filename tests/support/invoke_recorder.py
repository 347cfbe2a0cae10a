"""A stand-in for Lambda's asynchronous Invoke: answers 202 and keeps what it was given, or refuses on request."""

from __future__ import annotations

import json
import re
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self

_PATH = re.compile(r"/2015-03-31/functions/([^/]+)/invocations")


class InvokeRecorder:
    """Holds (function, payload) pairs in the order of their coming."""

    def __init__(self) -> None:
        self.received: deque[tuple[str, dict[str, Any]]] = deque()
        self.refusing = False
        recorder = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                found = _PATH.fullmatch(self.path)
                if recorder.refusing or found is None:
                    return self._answer(503, b'{"Type": "Server", "message": "try later"}')
                recorder.received.append((found[1], json.loads(body)))
                return self._answer(202, b"")

            def _answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @property
    def payloads(self) -> list[dict[str, Any]]:
        return [payload for _, payload in self.received]

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
