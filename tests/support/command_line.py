"""Run `signalbox` as a person does: a process of its own, with its output, its errors and its exit code.

Commands that start or end a stack run in a new interpreter, like everything that they start. The others are forked from
a process in which all is imported.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.template import ROOT
from tests.support.warm_command_line import PATIENCE, warm

STARTED_ANEW = {(), ("up",), ("down",), ("demo",)}
_OURS = ("AWS_", "SIGNALBOX_", "COLUMNS", "NO_COLOR", "FORCE_COLOR")


@dataclass(frozen=True)
class Ran:
    """Hold how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


@dataclass(frozen=True)
class Signalbox:
    """Run the command in one environment, whatever that of the tests is."""

    variables: dict[str, str] = field(default_factory=dict)

    def with_(self, **variables: str) -> Signalbox:
        return replace(self, variables=self.variables | variables)

    def __call__(self, *words: str, given: str = "") -> Ran:
        if words[:1] not in STARTED_ANEW:
            return Ran(*warm(ROOT).run(words, given, self._environment(), ROOT))
        done = subprocess.run(
            self._command(words),
            input=given,
            env=self._environment(),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """Keep it at work until the end of the block at the latest."""
        process = subprocess.Popen(
            self._command(words),
            env=self._environment(),
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with process:
            try:
                yield process
            finally:
                process.kill()

    def _command(self, words: tuple[str, ...]) -> list[str]:
        return [str(Path(sys.executable).with_name("signalbox")), *words]

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        return {**kept, "COLUMNS": "100", **self.variables}


def interrupt(process: subprocess.Popen[str]) -> Ran:
    """Send Ctrl-C; return how it ended."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    return Ran(process.returncode, out, err)


def await_line(stream: Any, words: str) -> str:
    """Return the first line that holds the words; fail at the stream's end."""
    for line in stream:
        if words in line:
            return str(line)
    raise AssertionError(f"no line with '{words}' came")


def refusal(signalbox: Signalbox, *words: str, code: int = 1) -> str:
    """Return the one line that says what is wrong."""
    ran = signalbox(*words)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith("signalbox: ")
    assert ran.err.count("\n") == 1
    return ran.err


@contextmanager
def detached_stack(factory: pytest.TempPathFactory, *words: str) -> Iterator[dict[str, Any]]:
    """Run a stack whose clock stands, as `up --detach` leaves it; yield what that printed, with its `home`."""
    home = str(factory.mktemp("laptop"))
    signalbox = Signalbox({"SIGNALBOX_HOME": home})
    try:
        yield {"home": home, **signalbox("up", "--detach", "--json", "--port", "0", "--no-clock", *words).json}
    finally:
        assert signalbox("down").code == 0
