"""Find and end what a stack leaves behind when its supervisor is killed.

Each process names its home in its environment, so that no process of another stack, or of anything else, is taken for
one of ours.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil

from signalbox_laptop.home import Home
from signalbox_laptop.postgres.embedded import running_on, stop_orphan
from signalbox_laptop.processes import end, runs

# moto has the first variable; each function's process, and what it starts, has the second.
HOME_VARIABLE = "SIGNALBOX_LAPTOP_HOME"
_TASK_ROOT = "LAMBDA_TASK_ROOT"


def find_orphans(home: Home) -> list[psutil.Process]:
    """Return the processes that a killed supervisor left. Call this only when no supervisor runs."""
    server = running_on(home.database)
    return [*_belonging_to(home.folder), *([server] if server else [])]


def remove_orphans(home: Home) -> bool:
    """End what a killed supervisor left, and say whether there was anything. Call this only when no supervisor runs."""
    processes = list(_belonging_to(home.folder))
    for process in processes:
        end(process)
    server = stop_orphan(home.database)
    shutil.rmtree(home.folder / "tmp", ignore_errors=True)
    home.forget()
    return server or bool(processes)


def _belonging_to(home: Path) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        try:
            environ = process.environ()
        except (psutil.Error, OSError):
            continue  # another user's, or gone
        belongs = environ.get(HOME_VARIABLE) == str(home) or home in Path(environ.get(_TASK_ROOT, "/")).parents
        if belongs and runs(process):
            yield process
