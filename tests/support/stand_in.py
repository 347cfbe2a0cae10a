"""An HTTP server that answers a test in the place of an outside service, for as long as it is entered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

from signalbox_laptop.lambda_api.http_server import HttpServer, Request, Response


class StandIn(ABC):
    """Owns the server; what it answers is the service's own."""

    def __init__(self) -> None:
        self._server = HttpServer(0, self._answer)

    @property
    def url(self) -> str:
        return f"http://{self._server.address}"

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    @abstractmethod
    def _answer(self, request: Request) -> Response | None:
        """None hangs up."""
