"""Run `make build` for Lambda and for this machine, each once in a run of tests, for all its workers."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from signalbox_laptop.errors import DeployFailed
from tests.support.build import Built, Interpreter, build
from tests.support.sam import sam_build

UNREACHABLE = "Failed to fetch"


@pytest.fixture(scope="session")
def built_for_lambda(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Return the folder that `make build` makes."""

    def make(folder: Path) -> None:
        done = sam_build(folder, {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"})
        _require(done.returncode == 0, done.stderr)

    return _made_once(_shared(tmp_path_factory, worker_id) / "built-for-lambda", make)


@pytest.fixture(scope="session")
def built_here(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Built:
    """Build the same for this machine, to be run."""

    def make(folder: Path) -> None:
        try:
            build(folder)
        except DeployFailed as error:
            _require(False, str(error))

    folder = _made_once(_shared(tmp_path_factory, worker_id) / "built-here", make)
    return Built(folder, Interpreter.like_lambdas())


def _require(well: bool, said: str) -> None:
    if not well and UNREACHABLE in said:
        pytest.skip("the package index can't be reached")
    assert well, said


def _shared(factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Return a folder that all workers of one run have in common."""
    own = factory.getbasetemp()
    return own if worker_id == "master" else own.parent


def _made_once(folder: Path, make: Callable[[Path], None]) -> Path:
    with _locked(folder.with_suffix(".lock")):
        if not (done := folder.with_suffix(".done")).exists():
            make(folder)
            done.touch()
    return folder


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
