"""Import `signalbox` once in a process, and fork it for each command that it is given.

A command so has a process, an environment and an output of its own, as a person's has, without the half second that the
start of an interpreter and the imports take each time. Run as a module, it is that process: it reads a JSON object a
line, and answers each with an exit code.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

PATIENCE = 60
STREAMS = ("in", "out", "err")


class WarmCommandLine:
    """Own the process, which serves one command after the other and ends with us."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self.close)

    def run(self, words: tuple[str, ...], given: str, environ: dict[str, str], folder: Path) -> tuple[int, str, str]:
        """Return its exit code, its output, and its errors."""
        with TemporaryDirectory(prefix="sb-") as scratch:
            streams = {name: str(Path(scratch, name)) for name in STREAMS}
            Path(streams["in"]).write_text(given, "utf-8")
            order = {"words": words, "environ": environ, "folder": str(folder), "streams": streams}
            code = self._ask(order)
            return code, Path(streams["out"]).read_text("utf-8"), Path(streams["err"]).read_text("utf-8")

    def close(self) -> None:
        if self._process.stdin and not self._process.stdin.closed:
            self._process.kill()
            self._process.communicate()

    def _ask(self, order: dict[str, Any]) -> int:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        print(json.dumps(order), file=stdin, flush=True)
        if not select.select([stdout], [], [], PATIENCE)[0]:
            self.close()
            raise TimeoutError(f"signalbox {' '.join(order['words'])} took more than {PATIENCE} s")
        return int(stdout.readline())


@cache
def warm(folder: Path) -> WarmCommandLine:
    """Return this process's own."""
    return WarmCommandLine(folder)


def _serve() -> None:
    _import_all()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become(json.loads(line))
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        print(code, flush=True)


def _import_all() -> None:
    """Import what a command may need, and what takes botocore longest: the descriptions of services."""
    from signalbox_cli.command import COMMANDS
    from signalbox_laptop.aws import client

    for command in COMMANDS:
        command.load()
    for service in ("cloudformation", "events", "lambda", "logs", "sqs"):
        client(service, "http://127.0.0.1:9").close()


def _become(order: dict[str, Any]) -> NoReturn:
    """Become the command, in this process."""
    import tempfile

    from signalbox_cli.__main__ import main

    flags = (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT)
    for number, (name, flag) in enumerate(zip(STREAMS, flags, strict=True)):
        os.dup2(os.open(order["streams"][name], flag, 0o600), number)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - what was read ahead is the next order
    os.environ.clear()
    os.environ.update(order["environ"])
    os.chdir(order["folder"])
    time.tzset()
    tempfile.tempdir = None
    os._exit(_exit_code(main, order["words"]))


def _exit_code(main: Any, words: list[str]) -> int:
    """End as the interpreter would: return a raised code, or print a traceback."""
    try:
        code = main(words)
    except SystemExit as raised:
        code = raised.code if isinstance(raised.code, int) else 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return int(code)


if __name__ == "__main__":
    _serve()
