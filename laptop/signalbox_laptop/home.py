"""Manage the folder of one laptop stack: its state, its logs, its database, and its supervisor's lock.

Everything that a stack writes lies below it. The holder of the lock is the stack; anything else is left over.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

from signalbox_laptop.processes import ProcessRecord


@dataclass(frozen=True, slots=True)
class StackState:
    """Describe a running stack, as state.json has it."""

    stack: str
    endpoint: str
    database: str  # DSN
    region: str
    api: str | None  # the URL of the HTTP API, if the template has one
    token: str | None  # opens it, for an operator
    pid: int
    started_at: str
    stand_ins: Mapping[str, str] = field(default_factory=dict)  # the outside services' addresses, by name

    def announcement(self) -> dict[str, Any]:
        """Return what others are told once the stack is ready."""
        return {
            "stack": self.stack,
            "endpoint": self.endpoint,
            "database": self.database,
            "region": self.region,
            "api": self.api,
            "token": self.token,
            "stand_ins": self.stand_ins,
        }


def home_folder(given: str | None, environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that an option or SIGNALBOX_HOME names, else `.signalbox` in the current one."""
    return Path(given or environ.get("SIGNALBOX_HOME") or ".signalbox").resolve()


class Home:
    """Name the folder's paths, and read and write its records."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.logs = self.folder / "log"
        self.stack_log = self.logs / "stack.log"
        self.database = self.folder / "postgres"
        self._state = self.folder / "state.json"
        self._supervisor = self.folder / "supervisor.json"
        self._lock = self.folder / "lock"

    def make(self) -> None:
        """Make the folder if it is missing."""
        self.logs.mkdir(parents=True, exist_ok=True)

    def clear_logs(self) -> None:
        """Empty the logs. Their writers append, so they continue from the beginning."""
        for log in self.logs.glob("*.log"):
            os.truncate(log, 0)

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Hold the lock, if no other process does; the system releases it when its holder ends for any reason."""
        with self._lock.open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True

    def write_state(self, state: StackState) -> None:
        _write(self._state, asdict(state))

    def read_state(self) -> StackState | None:
        """Return the stack's state, once it is ready and until it stops."""
        found = _read(self._state)
        return StackState(**found) if found else None

    def write_supervisor(self, record: ProcessRecord) -> None:
        _write(self._supervisor, asdict(record))

    def supervisor(self) -> psutil.Process | None:
        """Return the process that holds the lock, or None if none does, whatever the last one left behind."""
        found = _read(self._supervisor)
        return ProcessRecord(**found).find() if found else None

    def forget(self) -> None:
        """Remove the records of a stack that no longer runs."""
        self._state.unlink(missing_ok=True)
        self._supervisor.unlink(missing_ok=True)


def _write(path: Path, content: Mapping[str, Any]) -> None:
    """Write the file whole or not at all: others may read it meanwhile."""
    partial = path.with_suffix(".partial")
    partial.touch(0o600)  # the state holds a token
    partial.write_text(json.dumps(content, indent=2) + "\n")
    partial.replace(path)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
