"""Stand in for receivers of webhooks: one that is well, one that is busy at first, and one that is broken.

`/well` takes everything. `/busy` refuses the first delivery with 503. `/broken` refuses with 410 until it is mended.
"""

from __future__ import annotations

import threading

from signalbox_laptop.lambda_api.http_server import HttpServer, Request, Response


class WebhookReceiver(HttpServer):
    """Serve on a port that the system chooses."""

    def __init__(self) -> None:
        super().__init__(0, self._answer)
        self._rested, self._mended = threading.Event(), threading.Event()

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def mend(self) -> None:
        """Refuse nothing as broken from now on."""
        self._mended.set()

    def _answer(self, request: Request) -> Response:
        if request.path == "/broken":
            return Response(200 if self._mended.is_set() else 410)
        if request.path == "/busy" and not self._rested.is_set():
            self._rested.set()
            return Response(503)
        return Response(200)
