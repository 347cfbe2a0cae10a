"""Stand between workers and their server, and keep an answer back on order. The statement is done, and the
connection breaks before its client hears of it."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path
from select import select
from tempfile import TemporaryDirectory
from typing import Self

from psycopg.conninfo import conninfo_to_dict, make_conninfo

SOCKET = ".s.PGSQL.5432"
DONE = b"Z\0\0\0\5I"  # ReadyForQuery, and nothing is left open: whatever it was has committed


class AnswerCutter:
    """Own the socket that `dsn` leads to."""

    def __init__(self, dsn: str) -> None:
        self._target = str(Path(str(conninfo_to_dict(dsn)["host"])) / SOCKET)
        self._folder = TemporaryDirectory(prefix="signalbox-cutter-")
        self._listener = socket.socket(socket.AF_UNIX)
        self._lock = threading.Lock()
        self._word: bytes | None = None
        self.dsn = make_conninfo(dsn, host=self._folder.name, port=5432)
        self.cut: list[bytes] = []  # the words of those that it has cut

    def cut_next(self, word: bytes) -> None:
        """Cut the answer to the next statement that holds this word."""
        with self._lock:
            self._word = word

    def __enter__(self) -> Self:
        self._listener.bind(str(Path(self._folder.name) / SOCKET))
        self._listener.listen(100)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
        self._folder.cleanup()

    def _accept(self) -> None:
        with suppress(OSError):  # closed: it is over
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        asked = b""
        with client, socket.socket(socket.AF_UNIX) as server, suppress(OSError):
            server.connect(self._target)
            while True:
                end = select([client, server], [], [])[0][0]
                if not (said := end.recv(1 << 16)):
                    return
                if end is client:
                    asked = said
                    server.sendall(said)
                elif said.endswith(DONE) and self._takes(asked):
                    return
                else:
                    client.sendall(said)

    def _takes(self, asked: bytes) -> bool:
        with self._lock:
            if self._word is None or self._word not in asked:
                return False
            self.cut.append(self._word)
            self._word = None
            return True
