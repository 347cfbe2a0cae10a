"""`signalbox up`, `down`, `status` and `demo` end what they start in every case, and leave nothing behind."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import psycopg
import pytest

from signalbox.engine_pack import load_packs, registry_of
from signalbox_cli.commands.demo import AT
from signalbox_laptop.packs import NAMES
from signalbox_laptop.postgres.embedded import running_on
from signalbox_laptop.processes import wait_for_end
from tests.support.command_line import Signalbox, await_line, interrupt
from tests.support.laptop import belonging_to, supervisor_of
from tests.support.warm_command_line import PATIENCE

RULES = sum(task.schedule is not None for task in registry_of(NAMES))
ANNOUNCED = ["stack", "endpoint", "database", "region", "api", "token", "stand_ins"]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    home = tmp_path / "home"
    yield home
    Signalbox()("down", "--home", str(home))


def up(home: Path, *words: str) -> tuple[str, ...]:
    return ("up", "--home", str(home), "--port", "0", *words)


def test_detached_stack_stays_until_it_is_taken_down(home: Path) -> None:
    signalbox = Signalbox({"SIGNALBOX_HOME": str(home)})
    ran = signalbox(*up(home, "--detach", "--json"))
    assert list(ran.json) == ANNOUNCED
    assert ran.out.count("\n") == 1
    assert "deploying template.yaml" in ran.err
    second = signalbox(*up(home, "--detach"))
    assert (second.code, second.out) == (1, "")
    assert f"a stack is running in {home} at {ran.json['endpoint']}" in second.err
    assert signalbox("status", "--json").json["ready"] is True
    assert signalbox("down", "--json").json == {"stopped": True, "home": str(home)}
    assert belonging_to(home) == []
    assert signalbox("status").code == 1
    assert signalbox("down").out == f"no stack runs in {home}\n"


def test_a_stack_in_the_foreground_ends_with_ctrl_c(home: Path) -> None:
    with Signalbox().started(*up(home)) as process:
        assert "is up; Ctrl-C stops it" in await_line(process.stdout, "stack signalbox")
        ended = interrupt(process)
    assert ended.code == 0
    assert "Traceback" not in ended.err
    assert belonging_to(home) == []


def test_killed_database_is_reported_while_the_stack_is_detached(home: Path) -> None:
    signalbox = Signalbox({"SIGNALBOX_HOME": str(home)})
    announced = signalbox(*up(home, "--detach", "--json", "--no-clock")).json
    server = running_on(home / "postgres")
    assert server is not None
    server.kill()
    assert wait_for_end(server, PATIENCE)
    text, told = signalbox("status"), signalbox("status", "--json")
    assert (text.code, told.code) == (1, 1)
    assert "  database  does not answer" in text.out
    answer = json.loads(told.out)
    assert (answer["running"], answer["ready"], answer["database_answers"]) == (True, False, False)
    (failure,) = [
        found for found in json.loads(signalbox("doctor", "--json").out)["findings"] if found["verdict"] == "fail"
    ]
    assert (failure["check"], failure["detail"]) == ("database", f"{announced['database']} does not answer")
    keys = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_REGION": "us-east-1"}
    on_aws = Signalbox({"AWS_ENDPOINT_URL": announced["endpoint"], **keys})
    assert "  database  does not answer" in on_aws("status", "--stack", "signalbox").out
    told = on_aws("status", "--stack", "signalbox", "--json")
    assert (told.code, json.loads(told.out)["error"]["type"]) == (1, "DatabaseUnavailable")


def test_orphans_of_a_killed_stack_are_shown_and_ended_by_down(home: Path) -> None:
    signalbox = Signalbox({"SIGNALBOX_HOME": str(home)})
    signalbox(*up(home, "--detach"))
    server = running_on(home / "postgres")
    assert server is not None
    supervisor = supervisor_of(home)
    supervisor.kill()
    assert wait_for_end(supervisor, PATIENCE)
    text, told = signalbox("status"), signalbox("status", "--json")
    assert (text.code, told.code) == (1, 1)
    assert f"no stack runs in {home}, but processes of one that was killed are left over" in text.out
    assert "`signalbox down` ends them" in text.out
    answer = json.loads(told.out)
    assert answer["running"] is False
    assert server.pid in answer["orphans"]
    (failure,) = [
        found for found in json.loads(signalbox("doctor", "--json").out)["findings"] if found["verdict"] == "fail"
    ]
    assert (failure["check"], failure["advice"]) == ("stack", "`signalbox down` ends them")
    assert signalbox("down").out == "stopped\n"
    assert belonging_to(home) == []
    assert signalbox("status").out == f"no stack runs in {home}; `signalbox up` starts one\n"


def test_kept_database_with_other_migrations_is_refused(home: Path) -> None:
    words = up(home, "--detach", "--json", "--no-clock", "--parameter", "ForecastsPack=off")
    announced = Signalbox()(*words).json
    with psycopg.connect(announced["database"]) as connection:
        connection.execute("UPDATE signalbox.schema_migrations SET checksum = 'other' WHERE version = 1")
    Signalbox()("down", "--home", str(home))
    ran = Signalbox()(*words)
    assert ran.code == 1
    assert "0001_baseline was changed after it was applied" in ran.err
    assert "`signalbox up --fresh` starts with an empty one" in ran.err
    assert Signalbox()(*words, "--fresh").code == 0


def test_a_port_that_is_taken_is_named(home: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        ran = Signalbox()("up", "--detach", "--home", str(home), "--port", str(port))
    assert ran.code == 1
    assert f"signalbox: port {port} is taken" in ran.err
    assert belonging_to(home) == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--parameter", "DisabledTask=x"], 2, "has no parameter DisabledTask; did you mean 'DisabledTasks'?"),
        (["--parameter", "RuleState=off"], 2, "parameter RuleState can't be 'off': it takes one of ENABLED, DISABLED"),
        (["--template", "none.yaml"], 1, "can't be read"),
    ],
)
def test_what_can_not_be_deployed_is_said_and_nothing_stays(home: Path, words: list[str], code: int, said: str) -> None:
    ran = Signalbox()(*up(home, "--detach", *words))
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert belonging_to(home) == []


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a folder to count temporary folders in; its path is short, as a socket's has to be."""
    with TemporaryDirectory(prefix="sb-") as folder:
        yield Path(folder)


@pytest.fixture
def scratch(folder: Path) -> Signalbox:
    return Signalbox({"TMPDIR": str(folder)})


def test_the_demo_shows_what_happened_and_leaves_nothing(scratch: Signalbox, folder: Path) -> None:
    ran = scratch.with_(COLUMNS="80")("demo", "--all")
    assert ran.code == 0, ran.err
    assert all(len(line) <= 80 for line in ran.out.splitlines())
    heading, *rows, fired, closing, hint = ran.out.splitlines()
    assert "a link to its pages" in hint
    assert heading.split() == ["task", "slot", "trigger", "status", "items"]
    table = [row.split() for row in rows]
    for expected in (
        ["reconcile_slots", "2026-01-05T01:37Z", "schedule", "lost"],
        ["reconcile_slots", "2026-01-05T02:22Z", "schedule", "succeeded", "36"],
        ["sweep_runs", "2026-01-05T02:27Z", "schedule", "succeeded", "2"],
        ["reconcile_slots", "2026-01-05T01:37Z", "catch_up", "succeeded", "0"],
        ["prune_history", "2026-01-05T02:30Z", "schedule", "succeeded", "72"],
        ["advance_backfills", "2026-01-05T02:30Z", "schedule", "succeeded", "3"],
        ["prune_history", "2026-01-01T02:30Z", "backfill", "succeeded", "0"],
        ["poll_data", "2026-01-05T02:30Z", "schedule", "succeeded", "3"],
        ["reconcile_forecasts", "2026-01-05T02:00Z", "schedule", "succeeded", "4"],
        ["dispatch_jobs", "2026-01-05T02:30Z", "schedule", "succeeded"],  # 3, or 4 where rescue_jobs was first
        ["run_schedules", "2026-01-05T02:30Z", "schedule", "succeeded", "1"],
        ["rescue_jobs", "2026-01-05T02:30Z", "schedule", "succeeded", "1"],
        ["notify_dead_letters", "2026-01-05T02:28Z", "schedule", "succeeded", "3"],
        ["prune_jobs", "2026-01-04T03:15Z", "schedule", "succeeded", "30"],
        ["archive_dead_letters", "2026-01-04T03:45Z", "schedule", "succeeded", "4"],
    ):
        assert expected in [row[: len(expected)] for row in table]
    assert "sample: its worker vanished" in ran.out
    of_jobs, of_packs, stories = "\n".join(rows[rows.index("") + 1 :]).strip().split("\n\n")
    webhooks = of_jobs.splitlines()
    assert [line.split() for line in webhooks[:3]] == [
        ["job", "attempt", "status", "took"],
        ["webhook", "order.paid", "1", "completed", *webhooks[1].split()[4:6]],
        ["webhook", "order.shipped", "1", "failed", *webhooks[2].split()[4:6], "127.0.0.1", "answered", "503"],
    ]
    assert [line.split()[:2] for line in webhooks[3:]] == [
        ["2", "completed"],
        ["webhook", "order.refunded"],
        ["redriven", "the"],
        ["2", "completed"],
    ]
    types = {job_type.name for pack in load_packs(NAMES) if pack.name in NAMES for job_type in pack.job_types}
    counted = [line.split() for line in of_packs.splitlines()]
    assert (counted[0], {line[0] for line in counted[1:]}) == (["job", "type", "jobs", "completed", "others"], types)
    assert [line for line in counted[1:] if line[1] != line[2]] == []
    assert {line.split()[0] for line in stories.splitlines() if not line.startswith(" ")} == {"signalbox", *NAMES}
    assert "a scanned permit gives 2 obligations, 1 for a person to review" in stories
    assert "a letter gives 1 condition, 1 medication and a narrative" in stories
    submitted = 3 + sum(int(line[1]) for line in counted[1:])
    assert fired == f"{RULES} rules fired for 2026-01-05T02:30Z, {submitted} jobs submitted:"
    assert closing.startswith(f"{RULES + 5} runs, 36 missed slots found, nothing failed; ")
    assert "firing every rule for 2026-01-05T02:30Z" in ran.err
    assert_nothing_left(folder)


def test_failed_run_fails_the_demo_and_shows_in_json(scratch: Signalbox, folder: Path) -> None:
    ran = scratch("demo", "--json", "--parameter", "ForecastsSettings={none}")
    assert ran.code == 1
    answer = json.loads(ran.out)
    assert (answer["at"], len(answer["fired"])) == (AT.isoformat(), RULES)
    assert {"job_type", "slot", "status", "items", "duration_ms"} <= answer["runs"][0].keys()
    failed = {run["error"]["type"] for run in answer["runs"] if run["status"] == "failed"}
    assert failed == {"SettingsRefused", "PollFailed", "WorkerLost"}  # the latter is the sample's own
    failures = answer["failures"]
    assert any("sync_stripe for 2026-01-05T00:00Z failed: SettingsRefused" in failure for failure in failures)
    assert "function archiver failed with SettingsRefused: 48 invocations" in failures
    assert "17 events ended among the dead letters" in failures
    assert [len(one["executions"]) for one in answer["jobs"]] == [1, 2, 2]
    assert "sync_stripe for 2026-01-05T00:00Z failed" in ran.err
    assert_nothing_left(folder)


def test_a_demo_that_is_interrupted_leaves_nothing(scratch: Signalbox, folder: Path) -> None:
    with scratch.started("demo") as process:
        await_line(process.stderr, "loading sample data")
        ended = interrupt(process)
    assert (ended.code, ended.out) == (130, "")
    assert "Traceback" not in ended.err
    assert_nothing_left(folder)


def test_a_demo_that_is_killed_leaves_no_process(scratch: Signalbox, folder: Path) -> None:
    with scratch.started("demo") as process:
        await_line(process.stderr, "loading sample data")
        (home,) = folder.glob("signalbox-demo-*")
        left = belonging_to(home)
        process.kill()
        process.communicate(timeout=PATIENCE)
    _, alive = psutil.wait_procs(left, timeout=PATIENCE)
    assert left
    assert alive == []
    assert belonging_to(home) == []


def assert_nothing_left(folder: Path) -> None:
    assert [path.name for path in folder.iterdir()] == []
    assert belonging_to(folder) == []
