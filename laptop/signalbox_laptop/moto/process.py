"""Run moto, the stand-in for AWS, in a process of its own on a loopback port that the system chooses.

`python -m signalbox_laptop.moto.process` is the process. It ends when its standard input does, and so when its parent
is gone for any reason. `MotoProcess` starts it and stops it.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path

import psutil

from signalbox_laptop.errors import LaptopError
from signalbox_laptop.orphan_cleanup import HOME_VARIABLE
from signalbox_laptop.processes import end

_LAPTOP = Path(__file__).resolve().parents[2]


class MotoProcess:
    """Own one moto. Its contents live in memory and end with it."""

    def __init__(self, home: Path) -> None:
        self._home = home.resolve()
        self._log = home.resolve() / "log" / "moto.log"
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> str:
        """Start it, and return its endpoint once it answers."""
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "signalbox_laptop.moto.process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=_LAPTOP,
                env=_environment(self._home),
                process_group=0,  # a Ctrl-C in the terminal must not stop it before its users
                text=True,
            )
        port = self._process.stdout.readline().strip() if self._process.stdout else ""
        if not port:
            self.stop()
            raise LaptopError(f"moto did not start: {self._last_words()}")
        return f"http://127.0.0.1:{port}"

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        """Stop it for sure."""
        if self._process is None:
            return
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        if self._process.poll() is None:
            end(psutil.Process(self._process.pid))
        self._process.wait()
        self._process = None

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return f"{lines[-1] if lines else 'it said nothing'} (log: {self._log})"


def _environment(home: Path) -> dict[str, str]:
    """Return the caller's environment without what would change moto: a MOTO_ setting, another account or region."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MOTO_", "AWS_"))}
    return {**kept, HOME_VARIABLE: str(home), "AWS_DEFAULT_REGION": "us-east-1", "PYTHONPATH": str(_LAPTOP)}


def main() -> None:
    """Serve, after printing the port."""
    from moto.moto_server.werkzeug_app import (
        DomainDispatcherApplication,
        MotoRequestHandler,
        create_backend_app,
    )
    from werkzeug.serving import make_server

    from signalbox_laptop.moto.patches import patch_moto

    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Each long poll would log a line; errors are logged, with their traceback, in any case.
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    patch_moto()
    application = DomainDispatcherApplication(create_backend_app)
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=MotoRequestHandler)
    print(server.server_port, flush=True)
    server.serve_forever()


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
