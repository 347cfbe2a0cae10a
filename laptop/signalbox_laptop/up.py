"""Bring the laptop's stack up, take it down, and ask for its status, from the outside.

The stack is a process of its own, the supervisor, in a session of its own. `up` waits until it is ready and leaves it;
`up_attached` stays with it to the end. The database is kept until a fresh one is asked for. What AWS's stand-in holds,
queues and all, always ends with the process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import IO, Any

import psutil

from signalbox_laptop.errors import LaptopError
from signalbox_laptop.home import Home, StackState
from signalbox_laptop.orphan_cleanup import find_orphans, remove_orphans
from signalbox_laptop.processes import end, wait_for_end
from signalbox_laptop.project import ROOT, require_project

DEFAULT_PORT = 4566
# Tells the supervisor to stay when its input ends.
LET_GO = "let go\n"
_STOP_PATIENCE_SECONDS = 30.0
_DATABASE_PATIENCE_SECONDS = 2  # libpq's minimum

Report = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOptions:
    """Describe how to bring a stack up."""

    home: Path
    template: Path = ROOT / "template.yaml"
    stack: str = "signalbox"
    port: int = DEFAULT_PORT  # 0: any free port
    fresh: bool = False  # an empty database instead of the last one
    clock: bool = True  # off: rules fire only on request
    durable: bool = True  # off: faster, and lost if the machine itself crashes
    parameters: Mapping[str, str] = field(default_factory=dict)  # the template's

    def to_json(self) -> str:
        return json.dumps({**asdict(self), "home": str(self.home.resolve()), "template": str(self.template.resolve())})

    @staticmethod
    def from_json(text: str) -> StackOptions:
        given = json.loads(text)
        return StackOptions(**{**given, "home": Path(given["home"]), "template": Path(given["template"])})


@dataclass(frozen=True, slots=True)
class StackStatus:
    """Describe how a stack is: `detail` is its own answer, if it gives one."""

    running: bool
    state: StackState | None = None
    detail: Mapping[str, Any] | None = None
    database_answers: bool = False
    orphans: Sequence[int] = ()  # if none runs: the processes of one that was killed


def up(options: StackOptions, report: Report) -> StackState:
    """Bring it up and leave it running; raise what went wrong, or the end of its log if it could not say."""
    with _supervisor(options, "detached") as process:
        state = _await_ready(options, process, report)
        _pipe(process.stdin).write(LET_GO)
        return state


def up_attached(options: StackOptions, report: Report, ready: Callable[[StackState], None]) -> None:
    """Bring it up and stay until it has stopped: by Ctrl-C or SIGTERM here, or by `down` elsewhere."""
    with _supervisor(options, "attached") as process, _terminated_like_interrupted():
        try:
            ready(_await_ready(options, process, report))
            process.wait()
        except KeyboardInterrupt:
            report("stopping")
            return
    if process.returncode:
        raise LaptopError(f"the stack ended by itself{_end_of_log(options)}")


def down(home_folder: Path, report: Report) -> bool:
    """Stop what runs there, and remove what a killed stack left. Return False if there was nothing to stop."""
    home = Home(home_folder)
    supervisor = home.supervisor()
    if supervisor is not None:
        state = home.read_state()
        report(f"stopping {state.stack if state else 'the stack that is starting'} (process {supervisor.pid})")
        end(supervisor, patience_seconds=_STOP_PATIENCE_SECONDS)
    return remove_orphans(home) or supervisor is not None


def status(home_folder: Path) -> StackStatus:
    """Return the status of the stack there, with its own answer if it gives one."""
    home = Home(home_folder)
    if home.supervisor() is None:
        return StackStatus(False, orphans=sorted(process.pid for process in find_orphans(home)))
    state = home.read_state()
    return StackStatus(True, state, _ask(state), _database_answers(state)) if state else StackStatus(True)


@contextmanager
def _supervisor(options: StackOptions, mode: str) -> Iterator[subprocess.Popen[str]]:
    """Run the supervisor's process. Its input ends with us: unless told to stay, it stops then, even after a kill."""
    require_project(options.template)
    home = Home(options.home)
    home.make()
    with home.stack_log.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "signalbox_laptop.supervisor", mode, options.to_json()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=ROOT,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(map(str, [ROOT, ROOT / "laptop", *sorted(ROOT.glob("layers/*/"))])),
            },
            start_new_session=True,
            text=True,
        )
    try:
        yield process
    finally:
        _pipe(process.stdin).close()
        # A detached one ends at once, since its child carries on; an attached one when it has stopped.
        process.wait()
        _pipe(process.stdout).close()


def _await_ready(options: StackOptions, process: subprocess.Popen[str], report: Report) -> StackState:
    """Pass on the supervisor's messages until it is ready, or says why it never will be."""
    for line in _pipe(process.stdout):
        message = json.loads(line)
        if "ready" in message:
            return StackState(**message["ready"])
        if "refused" in message:
            _wait_for(message["pid"])
            raise _error_of(message)
        report(message["report"])
    raise LaptopError(f"the stack ended before it was ready{_end_of_log(options)}")


def _wait_for(pid: int) -> None:
    with suppress(psutil.NoSuchProcess):
        wait_for_end(psutil.Process(pid), _STOP_PATIENCE_SECONDS)


def _error_of(message: Mapping[str, Any]) -> LaptopError:
    kinds = {kind.__name__: kind for kind in LaptopError.__subclasses__()}
    return kinds.get(message["kind"], LaptopError)(message["refused"])


def _end_of_log(options: StackOptions) -> str:
    log = Home(options.home).stack_log
    return "\n  ".join([f"; the end of {log}:", *log.read_text(errors="replace").splitlines()[-5:]])


def _pipe(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise ValueError("the supervisor was started without pipes")
    return stream


def _ask(state: StackState) -> dict[str, Any] | None:
    """Ask the stack for its status, without a proxy of the shell, which would not reach this machine's loopback."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{state.endpoint}/_signalbox/status", timeout=5) as answer:
            detail: dict[str, Any] = json.load(answer)
            return detail
    except (OSError, ValueError):
        return None


def _database_answers(state: StackState) -> bool:
    import psycopg  # up and down do not need it

    try:
        psycopg.connect(state.database, connect_timeout=_DATABASE_PATIENCE_SECONDS).close()
    except psycopg.OperationalError:
        return False
    return True


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
