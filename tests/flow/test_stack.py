"""The laptop's stack announces itself, answers, and keeps its data."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import urllib3

from signalbox_laptop.errors import DatabaseUnfit, PortTaken, StackRunning
from signalbox_laptop.home import StackState
from signalbox_laptop.up import StackOptions, down, status, up
from tests.support.laptop import AT, belonging_to, control, quiet, seen, send_to_inbox, supervisor_of, tick
from tests.support.small_project import text_of, write_small_project


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_project(tmp_path_factory.mktemp("project"))


@dataclass(frozen=True)
class Running:
    home: Path
    state: StackState
    said: list[str]


@pytest.fixture(scope="module")
def running(project: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Start a stack for the tests that leave it up."""
    home, said = tmp_path_factory.mktemp("running"), list[str]()
    options = StackOptions(home=home, template=project, port=0, clock=False, durable=False)
    yield Running(home, up(options, said.append), said)
    down(home, quiet)


@pytest.fixture
def options(project: Path, tmp_path: Path) -> Iterator[StackOptions]:
    options = StackOptions(home=tmp_path / "home", template=project, port=0, clock=False, durable=False)
    yield options
    down(options.home, lambda _: None)


def test_stack_reports_its_progress_and_announces_when_it_is_ready(running: Running) -> None:
    assert running.said[0] == "starting PostgreSQL and the stand-in for AWS"
    assert running.said[1:3] == ["deploying template.yaml", "Migrations: asking signalbox-migrator"]
    assert sorted(running.state.announcement()) == [
        *("api", "database", "endpoint", "region", "stack", "stand_ins", "token"),
    ]
    assert {"bedrock", "textract", "ses", "sns"} <= set(running.state.stand_ins)


def test_what_is_announced_is_written_down(running: Running) -> None:
    assert status(running.home).state == running.state
    assert json.loads((running.home / "state.json").read_text()) == {
        **running.state.announcement(),
        "pid": supervisor_of(running.home).pid,
        "started_at": running.state.started_at,
    }


def test_tick_runs_the_function_on_the_database_and_idle_waits(running: Running) -> None:
    before = len(seen(running.state))
    assert tick(running.state, "signalbox.poll_data") == [
        {"rule": "signalbox.poll_data", "time": AT, "targets": 1, "failed": 0}
    ]
    assert seen(running.state)[before:] == [{"task": "poll_data", "scheduled_time": AT}]


def test_a_tick_with_due_fires_what_is_due_then(running: Running) -> None:
    fired = control(running.state, "POST", "tick", at="2026-03-29T00:46:10Z", due=True)["fired"]
    assert [one["rule"] for one in fired] == ["signalbox.tick"]


@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        ({"at": "yesterday"}, "not an ISO-8601 instant"),
        ({"at": "2026-03-29T00:45:00"}, "without a time zone"),
        ({"rules": ["signalbox.pol"]}, "no rule is named signalbox.pol"),
        ({"rules": "signalbox.poll_data"}, "rules is 'signalbox.poll_data'"),
    ],
)
def test_a_tick_that_makes_no_sense_is_refused(running: Running, asked: dict[str, Any], fault: str) -> None:
    answer = urllib3.request("POST", f"{running.state.endpoint}/_signalbox/tick", json=asked)
    assert answer.status == 400
    assert fault in answer.json()["message"]


def test_unknown_control_call_is_answered_with_the_known_ones(running: Running) -> None:
    answer = urllib3.request("GET", f"{running.state.endpoint}/_signalbox/stats")
    assert answer.status == 404
    assert "GET status" in answer.json()["message"]


def test_a_message_in_a_queue_reaches_its_function(running: Running) -> None:
    before = len(seen(running.state))
    send_to_inbox(running.state, "from the queue")
    assert control(running.state, "GET", "idle?timeout=30")["idle"] is True
    ((event,),) = [event["Records"] for event in seen(running.state)[before:]]
    assert event["body"] == "from the queue"


def test_a_second_up_says_that_one_is_running_and_leaves_it_alone(running: Running) -> None:
    where = rf"{running.state.endpoint} \(process {running.state.pid}\): `signalbox down`"
    with pytest.raises(StackRunning, match=where):
        up(StackOptions(home=running.home, port=0), quiet)
    assert status(running.home).state == running.state
    assert control(running.state, "GET", "status")["clock"] is False


def test_a_busy_port_is_named_and_nothing_is_started(options: StackOptions) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortTaken, match=f"port {port} .* --port"):
            up(StackOptions(home=options.home, template=options.template, port=port), quiet)
    assert belonging_to(options.home) == []
    assert status(options.home).running is False


def test_two_stacks_stand_side_by_side(options: StackOptions, tmp_path: Path) -> None:
    other = StackOptions(home=tmp_path / "other", template=options.template, stack="other", port=0, clock=False)
    one, two = up(options, quiet), up(other, quiet)
    try:
        tick(one, "signalbox.poll_data")
        tick(two, "other.poll_data", "other.tick")
        assert [len(seen(state)) for state in (one, two)] == [1, 1]
        down(options.home, quiet)
        assert control(two, "GET", "status")["clock"] is False
    finally:
        down(other.home, quiet)


def test_the_database_is_kept_unless_a_fresh_one_is_asked_for(options: StackOptions) -> None:
    state = up(options, quiet)
    tick(state, "signalbox.poll_data")
    down(options.home, quiet)
    said = list[str]()
    assert len(seen(up(options, said.append))) == 1
    assert "using the last database; --fresh starts with an empty one" in said
    down(options.home, quiet)
    assert seen(up(replace(options, fresh=True), quiet)) == []


def test_a_kept_database_that_no_longer_fits_is_refused(options: StackOptions, tmp_path: Path) -> None:
    up(options, quiet)
    down(options.home, quiet)
    migrator = text_of("functions/migrator/handler.py").replace("CREATE TABLE", "CREATE TABEL")
    path = write_small_project(tmp_path / "changed", **{"functions/migrator/handler.py": migrator})
    with pytest.raises(
        DatabaseUnfit, match=r"(?s)Migrations failed: .*`signalbox up --fresh` starts with an empty one"
    ):
        up(replace(options, template=path), quiet)


def test_a_kept_database_of_another_version_is_refused(options: StackOptions) -> None:
    up(options, quiet)
    down(options.home, quiet)
    (options.home / "postgres" / "PG_VERSION").write_text("16\n")
    with pytest.raises(DatabaseUnfit, match=r"made by PostgreSQL 16, and this is 18; .*--fresh"):
        up(options, quiet)
    assert belonging_to(options.home) == []
    up(replace(options, fresh=True), quiet)
