"""The laptop's stack leaves nothing behind when it is stopped, killed, or refused half way."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from signalbox_laptop.errors import LaptopError
from signalbox_laptop.home import Home
from signalbox_laptop.processes import runs, wait_for_end
from signalbox_laptop.project import ROOT
from signalbox_laptop.up import StackOptions, down, status, up
from tests.support.laptop import AT, belonging_to, control, kill, quiet, seen, supervisor_of, tick
from tests.support.small_project import text_of, write_small_project


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_project(tmp_path_factory.mktemp("project"))


@pytest.fixture
def options(project: Path, tmp_path: Path) -> Iterator[StackOptions]:
    options = StackOptions(home=tmp_path / "home", template=project, port=0, clock=False, durable=False)
    yield options
    down(options.home, lambda _: None)


def test_down_leaves_no_process_and_no_file_outside_its_home(options: StackOptions, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(tmp_path / "tmp"))
        patch.setenv("HOME", str(tmp_path / "person"))
        for folder in ("tmp", "person"):
            (tmp_path / folder).mkdir()
        patch.chdir(tmp_path / "person")
        state = up(options, quiet)
        control(state, "POST", "tick", at=AT)
        supervisor = psutil.Process(state.pid)
        family = [supervisor, *supervisor.children(recursive=True)]
        assert len(family) > 3
        assert down(options.home, quiet) is True
    assert [process for process in family if runs(process)] == []
    assert belonging_to(options.home) == []
    assert sorted(path.name for path in tmp_path.rglob("*") if options.home not in (path, *path.parents)) == [
        "person",
        "tmp",
    ]
    assert not (options.home / "state.json").exists()
    assert not (options.home / "tmp").exists()


def test_down_where_nothing_runs_says_so(tmp_path: Path) -> None:
    assert down(tmp_path / "nowhere", quiet) is False
    assert not (tmp_path / "nowhere").exists()


def test_a_killed_stack_is_cleared_away_by_down(options: StackOptions) -> None:
    state = up(options, quiet)
    kill(state)
    assert status(options.home).running is False
    assert down(options.home, quiet) is True
    assert belonging_to(options.home) == []
    assert down(options.home, quiet) is False


def test_a_killed_stack_is_cleared_away_by_the_next_up(options: StackOptions) -> None:
    state = up(options, quiet)
    left = belonging_to(options.home)
    kill(state)
    state = up(options, quiet)
    assert [process for process in left if runs(process)] == []
    tick(state, "signalbox.poll_data")
    assert len(seen(state)) == 1


def test_failed_migrations_are_reported_and_nothing_stays(options: StackOptions, tmp_path: Path) -> None:
    migrator = text_of("functions/migrator/handler.py").replace("CREATE TABLE", "CREATE TABEL")
    path = write_small_project(tmp_path / "broken", **{"functions/migrator/handler.py": migrator})
    with pytest.raises(LaptopError, match=r'Migrations failed: .*syntax error at or near "TABEL"'):
        up(StackOptions(home=options.home, template=path, port=0), quiet)
    assert belonging_to(options.home) == []


def test_refused_template_is_reported_and_nothing_stays(options: StackOptions, tmp_path: Path) -> None:
    with pytest.raises(LaptopError, match=r"none\.yaml can't be read"):
        up(StackOptions(home=options.home, template=tmp_path / "none.yaml", port=0), quiet)
    assert belonging_to(options.home) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_attached_stack_ends_with_the_one_who_brought_it_up(options: StackOptions, number: signal.Signals) -> None:
    script = f"""
from signalbox_laptop.up import StackOptions, up_attached
up_attached(StackOptions.from_json({options.to_json()!r}), lambda _: None, lambda state: print("ready", flush=True))
"""
    person = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    with person:
        assert person.stdout is not None
        assert person.stdout.readline() == "ready\n"
        supervisor = supervisor_of(options.home)
        person.send_signal(number)
    assert person.returncode == (-signal.SIGKILL if number == signal.SIGKILL else 0)
    assert wait_for_end(supervisor, 20)
    assert belonging_to(options.home) == []


def test_a_stack_whose_stand_in_dies_stops_and_says_so(options: StackOptions) -> None:
    state = up(options, quiet)
    supervisor = psutil.Process(state.pid)
    (moto,) = [child for child in supervisor.children() if "signalbox_laptop.moto.process" in child.cmdline()]
    moto.kill()
    assert wait_for_end(supervisor, 20)
    assert "stand-in for AWS ended" in Home(options.home).stack_log.read_text()
    assert belonging_to(options.home) == []


@pytest.mark.parametrize("step", ["starting PostgreSQL", "deploying", "Migrations: asking"])
def test_a_stack_that_is_interrupted_on_its_way_up_leaves_nothing(options: StackOptions, step: str) -> None:
    script = f"""
from signalbox_laptop.up import StackOptions, up_attached
up_attached(StackOptions.from_json({options.to_json()!r}), lambda step: print(step, flush=True), lambda _: None)
"""
    person = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    with person:
        assert person.stdout is not None
        next(line for line in person.stdout if line.startswith(step))
        person.terminate()
        person.communicate()
    assert person.returncode == 0
    assert belonging_to(options.home) == []
    assert status(options.home).running is False
