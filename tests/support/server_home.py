"""Keep the tests' PostgreSQL in memory if the machine has room there, else on its disk.

A database for each test is three hundred files each time, for which some disks' file systems take a fifth of a second
of processor, and memory a hundredth.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest

_MEMORY = Path("/dev/shm")
_PREFIX = "signalbox-tests-"
_ROOM = 4 * 1024**3  # bytes: for the write-ahead log, and for tests with a million rows


@contextmanager
def server_home(factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make a folder for one server; remove it in the end if it takes up memory."""
    if not _has_room():
        yield factory.mktemp("server")
        return
    _clear_away()
    with TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-", dir=_MEMORY, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def lies_in_memory(server: str) -> bool:
    """Say whether a DSN is of such a server: its socket lies beside its files."""
    return f"{_MEMORY}/{_PREFIX}" in server


def _has_room() -> bool:
    if not _MEMORY.is_dir() or not os.access(_MEMORY, os.W_OK):
        return False
    return bool(min(shutil.disk_usage(_MEMORY).free, psutil.virtual_memory().available) > _ROOM)


def _clear_away() -> None:
    """Remove what killed tests have left."""
    for left in _MEMORY.glob(f"{_PREFIX}*"):
        if not psutil.pid_exists(int(left.name.removeprefix(_PREFIX).partition("-")[0])):
            shutil.rmtree(left, ignore_errors=True)
