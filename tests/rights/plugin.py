"""Hook into pytest to compare each run's calls with the list; tests/fixtures.py takes the hooks up."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.rights.recorder import LIST, Recorder, listed

_recorder, _told = Recorder(), set[str]()
_seen_by_workers: set[str] = set()


def pytest_configure(config: pytest.Config) -> None:
    """Record from the start."""
    _recorder.start()


@pytest.fixture(autouse=True)
def only_listed_calls() -> Iterator[None]:
    """Fail a test that led to an unlisted call of AWS."""
    yield
    new = _recorder.seen - _told
    _told.update(new)
    if os.environ.get("SIGNALBOX_RECORD_CALLS") != "1":
        assert new <= set(map(str, listed())), f"{LIST.name} lacks these calls; `make calls` writes the list"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Pass on the calls of a worker of xdist; after all tests, require that each line of the list was seen."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["calls"] = sorted(_recorder.seen)
        return
    seen = _seen_by_workers | _recorder.seen
    if os.environ.get("SIGNALBOX_RECORD_CALLS") == "1":
        heading = LIST.read_text("utf-8").partition("\n\n")[0] if LIST.exists() else "# "
        LIST.write_text("\n".join([heading, "", *sorted(seen), ""]), "utf-8")
    elif _is_whole(session.config) and session.testsfailed == 0 and (left := set(map(str, listed())) - seen):
        print(f"\n{LIST.name} has calls that no test led to:", *sorted(left), sep="\n  ")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take the calls of a worker."""
    _seen_by_workers.update(getattr(node, "workeroutput", {}).get("calls", ()))


def _is_whole(config: pytest.Config) -> bool:
    some = config.option.keyword or config.option.markexpr or config.option.collectonly
    return config.args_source == pytest.Config.ArgsSource.TESTPATHS and not some
