"""Count the round trips of a connection by standing between it and the server.

A round trip begins whenever the client sends after the server has answered: what goes out together counts once.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from select import select
from tempfile import TemporaryDirectory

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from bench.stage.job_plant import as_url

SOCKET = ".s.PGSQL.5432"


@dataclass(slots=True)
class RoundTrips:
    """Count over all connections that were opened with its DSN."""

    dsn: str
    number: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def relay(self, client: socket.socket, server: socket.socket) -> None:
        answered = True
        with client, server, suppress(OSError):
            while True:
                end = select([client, server], [], [])[0][0]
                if not (said := end.recv(1 << 16)):
                    return
                self._count(begun=end is client and answered)
                answered = end is server
                (server if end is client else client).sendall(said)

    def _count(self, *, begun: bool) -> None:
        with self.lock:
            self.number += begun


@contextmanager
def count_round_trips(dsn: str) -> Iterator[RoundTrips]:
    with TemporaryDirectory(prefix="signalbox-relay-") as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(Path(folder) / SOCKET))
        listener.listen()
        trips = RoundTrips(as_url(make_conninfo(dsn, host=folder, port=5432)))
        target = str(Path(str(conninfo_to_dict(dsn)["host"])) / SOCKET)
        threading.Thread(target=_accept, args=(listener, target, trips), daemon=True).start()
        yield trips


def _accept(listener: socket.socket, target: str, trips: RoundTrips) -> None:
    with suppress(OSError):  # closed: the relay is over
        while True:
            client, _ = listener.accept()
            server = socket.socket(socket.AF_UNIX)
            server.connect(target)
            threading.Thread(target=trips.relay, args=(client, server), daemon=True).start()
