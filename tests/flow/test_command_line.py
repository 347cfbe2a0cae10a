"""`signalbox` works against a real stack on this laptop, for people and for programs, and explains mistakes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from signalbox.engine_pack import registry_of
from signalbox.packs.task import MINUTE
from signalbox_laptop.aws import client
from tests.support.command_line import Signalbox, await_line, detached_stack, interrupt, refusal
from tests.support.template import PACKS, ROOT
from tests.support.warm_command_line import PATIENCE

TASKS = {task.name for task in registry_of(PACKS) if task.schedule}
MINUTELY = sorted(f"signalbox.{task.name}" for task in registry_of(PACKS) if task.schedule == MINUTE)
RUN = {"id", "job_type", "slot", "reference_time", "trigger", "status", "items", "reason", "error", "duration_ms"}


@pytest.fixture(scope="session")
def announced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Leave a stack running as `up` does; yield what it printed."""
    with detached_stack(tmp_path_factory) as announced:
        yield announced


@pytest.fixture
def signalbox(announced: dict[str, Any]) -> Signalbox:
    return Signalbox({"SIGNALBOX_HOME": announced["home"]})


@pytest.fixture
def db(announced: dict[str, Any]) -> Iterator[psycopg.Connection]:
    with psycopg.connect(announced["database"], autocommit=True) as connection:
        yield connection


# ---- tick


def test_tick_fires_what_is_due(signalbox: Signalbox) -> None:
    answer = signalbox("tick", "--at", "2026-02-01T00:34:20Z", "--json").json
    assert answer["at"] == "2026-02-01T00:34:00+00:00"
    assert [rule["rule"] for rule in answer["fired"]] == MINUTELY


def test_tick_fires_every_rule_and_waits(signalbox: Signalbox) -> None:
    ran = signalbox("tick", "--at", "2026-02-02T02:30:00Z", "--all", "--wait")
    assert ran.code == 0
    rules, outcome = ran.out.split("\n\n")
    assert {line.split()[0].removeprefix("signalbox.") for line in rules.splitlines()[1:]} == TASKS
    heading, *rows, counted = outcome.splitlines()
    assert heading.split() == ["task", "slot", "trigger", "status", "items", "took"]
    assert {row.split()[0] for row in rows if "schedule" in row} == TASKS
    assert counted.endswith(", nothing failed")
    runs = signalbox("history", "--since", "2026-01-01T00:00Z", "--until", "2026-02-02T02:30Z", "--all", "--json").json[
        "runs"
    ]
    assert {run["job_type"] for run in runs if run["trigger"] == "schedule"} == TASKS


def test_tick_finds_rules_by_task_name_and_lists_existing_ones(signalbox: Signalbox) -> None:
    assert len(signalbox("tick", "--rule", "sweep_runs", "--json").json["fired"]) == 1
    assert "no rule is named signalbox.nope; this stack has signalbox." in refusal(signalbox, "tick", "--rule", "nope")


def test_awaited_tick_returns_only_the_runs_it_caused(signalbox: Signalbox) -> None:
    signalbox("invoke", "prune_history", "--reference-time", "2026-02-06T02:30:00Z")
    at = "2026-02-06T00:02:00Z"
    answer = signalbox("tick", "--at", at, "--rule", "sweep_runs", "--wait", "--json").json
    (run,) = answer["runs"]
    assert (run["job_type"], run["slot"], run["status"]) == ("sweep_runs", "2026-02-06T00:02:00+00:00", "succeeded")
    assert answer["failures"] == []


def test_a_tick_for_which_nothing_is_due_is_no_failure(signalbox: Signalbox, announced: dict[str, Any]) -> None:
    events = client("events", announced["endpoint"])
    for rule in MINUTELY:
        events.disable_rule(Name=rule)
    try:
        ran = signalbox("tick", "--at", "2026-02-03T00:04:00Z", "--wait")
    finally:
        for rule in MINUTELY:
            events.enable_rule(Name=rule)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("no rule is due at 2026-02-03T00:04Z")


def test_a_tick_that_is_waited_for_fails_when_a_run_did(signalbox: Signalbox, db: psycopg.Connection) -> None:
    with poison(db):
        ran = signalbox("tick", "--at", "2026-02-09T02:30:00Z", "--rule", "prune_history", "--wait", "--json")
    answer = json.loads(ran.out)
    assert ran.code == 1
    assert {(run["job_type"], run["status"]) for run in answer["runs"]} == {("prune_history", "failed")}
    assert "prune_history for 2026-02-09T02:30Z failed: DivisionByZero: division by zero (22012)" in answer["failures"]
    assert "signalbox: tick: prune_history for 2026-02-09T02:30Z failed" in ran.err


def test_a_tick_that_is_waited_for_fails_when_a_payload_was_refused(
    signalbox: Signalbox, announced: dict[str, Any]
) -> None:
    """The ledger has no run of such an invocation."""
    events = client("events", announced["endpoint"])
    (target,) = events.list_targets_by_rule(Rule="signalbox.sweep_runs")["Targets"]
    refused = {"Id": target["Id"], "Arn": target["Arn"], "Input": '{"task": "swep_runs"}'}
    events.put_targets(Rule="signalbox.sweep_runs", Targets=[refused])
    try:
        ran = signalbox("tick", "--rule", "sweep_runs", "--wait", "--json")
    finally:
        events.put_targets(Rule="signalbox.sweep_runs", Targets=[target])
    answer = json.loads(ran.out)
    assert (ran.code, answer["runs"]) == (1, [])
    assert answer["failures"] == ["function archiver failed with TaskUnknown: 3 invocations"]


# ---- invoke


def test_invoke_runs_a_task_for_its_slot(signalbox: Signalbox) -> None:
    answer = signalbox("invoke", "sweep_runs", "--reference-time", "2026-02-03T00:04:00Z", "--json").json
    assert answer["slot"] == "2026-02-03T00:02:00+00:00"
    again = signalbox("invoke", "sweep_runs", "--reference-time", "2026-02-03T00:04:00Z")
    assert again.code == 0
    already = f"skipped, the slot has already succeeded, in run {answer['run_id']}"
    assert again.out.startswith(f"sweep_runs for 2026-02-03T00:02Z: {already} (run ")
    forced = signalbox("invoke", "sweep_runs", "--reference-time", "2026-02-03T00:04:00Z", "--force")
    assert forced.out.startswith("sweep_runs for 2026-02-03T00:02Z: succeeded, 0 items (run ")


def test_invoke_finds_the_function_of_the_task(signalbox: Signalbox) -> None:
    answer = signalbox("invoke", "poll_data", "--params", '{"limit": 2}', "--json").json
    assert (answer["status"], answer["items"]) == ("succeeded", 0)


@pytest.mark.parametrize("event", sorted(path.name for path in ROOT.glob("events/*.json")))
def test_invoke_sends_any_payload_of_events(signalbox: Signalbox, event: str) -> None:
    if event == "revoke_token.json":
        signalbox("tokens", "create", "dashboard", "--replace")
    assert isinstance(signalbox("invoke", "--event", f"events/{event}", "--json").json, dict)


def test_invoke_reads_a_payload_from_its_input(signalbox: Signalbox) -> None:
    assert signalbox("invoke", "--event", "-", given="{}").out.startswith("poll_data for ")
    assert signalbox("invoke", "--event", "-", "--json", given='{"action": "report"}').json["action"] == "report"


def test_invoke_shows_what_was_logged_beside_the_answer(signalbox: Signalbox) -> None:
    ran = signalbox("invoke", "reconcile_slots", "--force", "--logs", "--json")
    assert ran.json["task"] == "reconcile_slots"
    assert "run.succeeded" in ran.err


def test_invoke_may_leave_the_run_to_the_queue(signalbox: Signalbox) -> None:
    at = "2026-02-04T00:02:00Z"
    accepted = signalbox("invoke", "sweep_runs", "--reference-time", at, "--async", "--json").json
    assert accepted["accepted"] is True
    assert signalbox("tick", "--rule", "poll_data", "--wait").code == 0
    (run,) = signalbox("history", "--since", at, "--until", at, "--task", "sweep_runs", "--json").json["runs"]
    assert run["status"] == "succeeded"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["swep_runs"], 2, "TaskUnknown: task 'swep_runs' is not registered; did you mean 'sweep_runs'?"),
        (["sweep_runs", "--params", '{"a": 1}'], 1, "ParamsRefused: task 'sweep_runs' takes no params, but got a"),
        (["sweep_runs", "--reference-time", "2126-01-01T00:00Z"], 1, "PayloadRefused: reference_time 2126-01-01"),
        (["sweep_runs", "--function", "poller"], 1, "PayloadRefused: task 'sweep_runs' is run by signalbox-archiver"),
        (["sweep_runs", "--reference-time", "2026-02-03T00:04"], 2, "has no time zone; in UTC it is"),
        (["--event", "events/none.json"], 2, "events/none.json can't be read"),
        (["--event", "README.md"], 2, "holds no JSON"),
        (["sweep_runs", "--event", "events/sweep_runs.json"], 2, "leave out TASK"),
        ([], 2, "name a TASK"),
    ],
)
def test_invoke_says_in_a_line_what_is_wrong(signalbox: Signalbox, words: list[str], code: int, said: str) -> None:
    assert said in refusal(signalbox, "invoke", *words, code=code)


# ---- history


@pytest.fixture
def many(db: psycopg.Connection) -> Iterator[int]:
    """Insert more runs than one page of the operation holds."""
    db.execute(
        "INSERT INTO signalbox.job_history (job_type, slot, trigger, status, worker_id, started_at, finished_at) "
        "SELECT 'poll_data', slot, 'manual', 'succeeded', 'many', slot, slot + interval '61 seconds' "
        "FROM generate_series(timestamptz '2024-01-01Z', '2024-01-01 20:00Z', '1 minute') AS slot"
    )
    yield 1201
    db.execute("DELETE FROM signalbox.job_history WHERE worker_id = 'many'")


def test_history_lists_runs_newest_first_page_by_page(signalbox: Signalbox, many: int) -> None:
    past = ["history", "--until", "2024-12-31T00:00Z"]
    everything = signalbox(*past, "--all", "--json").json
    assert (len(everything["runs"]), everything["next"]) == (many, None)
    ids = [run["id"] for run in everything["runs"]]
    assert ids == sorted(set(ids), reverse=True)
    assert everything["runs"][0].keys() >= RUN
    some = signalbox(*past, "--limit", "1100", "--json").json
    assert (len(some["runs"]), some["next"]) == (1100, some["runs"][-1]["id"])


def test_history_is_a_table_for_people(signalbox: Signalbox, many: int) -> None:
    lines = signalbox("history", "--until", "2024-12-31T00:00Z", "--limit", "2").out.splitlines()
    assert lines[0].split() == ["run", "task", "slot", "trigger", "status", "items", "took"]
    assert lines[1].split()[1:] == ["poll_data", "2024-01-01T20:00Z", "manual", "succeeded", "0", "1", "min", "1", "s"]
    assert lines[3] == "the newest 2; --limit N shows more, --all shows all"
    assert many > 2


def test_history_filters_and_refuses_a_task_that_nobody_knows(signalbox: Signalbox) -> None:
    signalbox("invoke", "poll_data")
    runs = signalbox("history", "--task", "poll_data", "--status", "succeeded", "--since", "1h", "--json").json["runs"]
    assert {(run["job_type"], run["status"]) for run in runs} == {("poll_data", "succeeded")}
    assert signalbox("history", "--trigger", "backfill", "--until", "2020-01-01T00:00Z").out == "no run matches\n"
    assert "did you mean 'poll_data'?" in refusal(signalbox, "history", "--task", "pol_data", code=2)


# ---- slots


def test_slots_is_a_grid_and_the_same_for_programs(signalbox: Signalbox) -> None:
    signalbox("invoke", "prune_history", "--reference-time", "2026-02-05T02:30:00Z")
    words = ["slots", "--since", "2026-02-04T12:00Z", "--until", "2026-02-05T12:00Z"]
    assert {task["task"] for task in signalbox(*words, "--json").json["tasks"]} == TASKS
    lines = signalbox(*words).out.splitlines()
    (row,) = [line for line in lines if line.startswith("prune_history")]
    assert row.split() == ["prune_history", "■", "1"]
    assert all(len(line) <= 100 for line in lines)
    assert "■ ran" in lines[-1]


def test_slots_of_one_task_and_of_none_that_is_known(signalbox: Signalbox) -> None:
    (task,) = signalbox("slots", "--task", "sweep_runs", "--since", "1h", "--json").json["tasks"]
    assert task["task"] == "sweep_runs"
    assert "did you mean 'sweep_runs'?" in refusal(signalbox, "slots", "--task", "swep_runs", code=2)
    assert "is after until" in refusal(signalbox, "slots", "--since", "1h", "--until", "2h")


# ---- backfill

RANGE = ["--from", "2026-03-01T00:00Z", "--to", "2026-03-03T23:00Z"]


def test_backfill_shows_its_plan_and_does_nothing(signalbox: Signalbox) -> None:
    plan = signalbox("backfill", "prune_history", *RANGE, "--dry-run", "--json").json["dry_run"]
    assert (plan["slots"], plan["first"]) == (3, "2026-03-01T02:30:00+00:00")
    text = signalbox("backfill", "prune_history", *RANGE, "--dry-run").out
    assert text.startswith("prune_history: 3 slots from 2026-03-01T02:30Z to 2026-03-03T02:30Z\n")


def test_backfill_asks_at_a_terminal_only(signalbox: Signalbox) -> None:
    said = refusal(signalbox, "backfill", "prune_history", *RANGE, code=2)
    assert "no terminal to prompt on; add --yes" in said


def test_backfill_runs_to_its_end_and_leaves_done_slots_alone(signalbox: Signalbox) -> None:
    words = ["backfill", "prune_history", "--from", "2026-03-10T00:00Z", "--to", "2026-03-12T23:00Z", "--yes"]
    ran = signalbox(*words, "--json", "--reason", "a test")
    backfill = ran.json["backfill"]
    assert (backfill["status"], backfill["slots"]["succeeded"], backfill["reason"]) == ("completed", 3, "a test")
    assert "3 of 3 slots" in ran.err
    again = signalbox(*words)
    assert (again.code, again.out) == (0, "")
    assert "nothing was done: all slots have succeeded; --force runs them again" in again.err


@contextmanager
def poison(db: psycopg.Connection) -> Iterator[None]:
    """Insert a row that prune_history would delete, and can't."""
    db.execute(
        "INSERT INTO signalbox.job_history (job_type, slot, trigger, status, worker_id, started_at, finished_at) "
        "VALUES ('poll_data', '2020-01-01Z', 'manual', 'succeeded', 'poison', '2020-01-01Z', '2020-01-01Z')"
    )
    deletes = "ON DELETE TO signalbox.job_history WHERE old.worker_id = 'poison'"
    db.execute(f"CREATE RULE poison AS {deletes} DO ALSO SELECT 1/0")
    try:
        yield
    finally:
        db.execute("DROP RULE poison ON signalbox.job_history")
        db.execute("DELETE FROM signalbox.job_history WHERE worker_id = 'poison'")


def test_backfill_fails_when_a_slot_did(signalbox: Signalbox, db: psycopg.Connection) -> None:
    day = ["--from", "2026-03-20T00:00Z", "--to", "2026-03-20T23:00Z"]
    with poison(db):
        ran = signalbox("backfill", "prune_history", *day, "--yes", "--json")
    backfill = json.loads(ran.out)["backfill"]
    assert (ran.code, backfill["status"], backfill["slots"]["failed"]) == (1, "completed", 1)
    resumed = signalbox("backfill", "resume", backfill["id"], "--json").json["backfill"]
    assert resumed["status"] in ("running", "completed")


def test_backfill_continues_when_its_watcher_leaves(signalbox: Signalbox) -> None:
    hour = ["--from", "2026-03-25T00:00Z", "--to", "2026-03-25T01:00Z"]
    with signalbox.started("backfill", "sweep_runs", *hour, "--rate", "1", "--yes") as process:
        await_line(process.stderr, "of 12 slots")
        left = interrupt(process)
    assert left.code == 130
    assert "Traceback" not in left.err
    found = signalbox("backfill", "list", "--status", "running", "--json").json["backfills"]
    (id_,) = [backfill["id"] for backfill in found if backfill["task"] == "sweep_runs"]
    assert f"`signalbox backfill show {id_}`" in left.err
    assert f"backfill {id_} of sweep_runs is paused" in signalbox("backfill", "pause", id_, "--reason", "later").out
    shown = signalbox("backfill", "show", id_, "--json").json["backfill"]
    assert (shown["status"], shown["reason"], shown["slots"]["total"]) == ("paused", "later", 12)
    assert re.search(
        r"paused +\S+ by \w+\n  reason +audit", signalbox("backfill", "pause", id_, "--reason", "audit").out
    )
    assert signalbox("backfill", "resume", id_, "--json").json["backfill"]["status"] == "running"
    assert "is cancelled" in signalbox("backfill", "cancel", id_).out
    assert "can become paused" in refusal(signalbox, "backfill", "pause", id_)
    assert id_[:8] in signalbox("backfill", "list").out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["prune_histry", *RANGE, "--yes"], 2, "did you mean 'prune_history'?"),
        (["prune_history", "--from", "1d", "--to", "2d", "--yes"], 1, "before it starts"),
        (["prune_history"], 2, "needs --from and --to"),
        (["prune_history", "show", *RANGE], 2, "'show' is unexpected; the verbs are list, show"),
        (["prune_history", "--status", "running", *RANGE], 2, "belong to `backfill list`"),
        (["show"], 2, "name the ID of a backfill"),
        (["show", "7"], 2, "'7' is not the id of a backfill"),
        (["list", "--force"], 2, "takes no options of a new backfill"),
    ],
)
def test_backfill_says_in_a_line_what_is_wrong(signalbox: Signalbox, words: list[str], code: int, said: str) -> None:
    assert said in refusal(signalbox, "backfill", *words, code=code)


# ---- migrate


def test_migrate_has_nothing_to_do_on_a_new_stack(signalbox: Signalbox) -> None:
    plan = signalbox("migrate", "--plan", "--json").json
    assert (plan["action"], plan["applied"], plan["pending"]) == ("plan", [], [])
    ran = signalbox("migrate")
    assert (ran.code, ran.out.startswith("nothing to apply; schema ")) == (0, True)
    assert "signalbox is at version " in ran.out


# ---- logs


def test_logs_are_merged_and_readable_and_whole_for_programs(signalbox: Signalbox) -> None:
    run = signalbox("invoke", "sweep_runs", "--force", "--json").json
    signalbox("tick", "--rule", "poll_data", "--wait")
    lines = [json.loads(line) for line in signalbox("logs", "--all", "--json").out.splitlines()]
    assert {line["function"] for line in lines} >= {"archiver", "poller"}
    assert [line["time"] for line in lines] == sorted(line["time"] for line in lines)
    ended = re.compile(rf"run\.succeeded .* run_id={run['run_id']} ")
    (text,) = filter(ended.search, signalbox("logs", "--task", "sweep_runs").out.splitlines())
    assert text.split()[1:3] == ["archiver", "INFO"]


def test_logs_of_one_function_that_match(signalbox: Signalbox) -> None:
    refusal(signalbox, "invoke", "no_such_task", code=2)
    signalbox("tick", "--rule", "poll_data", "--wait")
    out = signalbox("logs", "archiver", "--grep", "no_such_task").out
    assert "ERROR   TaskUnknown: task 'no_such_task' is not registered" in out
    assert signalbox("logs", "poller", "--grep", "no_such_task").out == ""
    said = refusal(signalbox, "logs", "printer", code=2)
    assert "function signalbox-printer does not exist; the stack has signalbox-api, signalbox-archiver, " in said


def test_logs_of_a_misspelt_task_are_refused(signalbox: Signalbox) -> None:
    assert "task 'swep_runs' is not registered; did you mean 'sweep_runs'?" in refusal(
        signalbox, "logs", "--task", "swep_runs", code=2
    )


def test_logs_follow_until_they_are_stopped(signalbox: Signalbox) -> None:
    with signalbox.started("logs", "--follow", "--grep", "2026-02-07T00:02") as process:
        signalbox("invoke", "sweep_runs", "--reference-time", "2026-02-07T00:02:00Z")
        assert "slot=2026-02-07T00:02Z" in await_line(process.stdout, "run.succeeded")
        assert interrupt(process).code == 0


# ---- doctor


def test_doctor_finds_a_stack_in_good_health(signalbox: Signalbox) -> None:
    answer = signalbox("doctor", "--json").json
    assert answer["healthy"] is True
    assert {finding["check"] for finding in answer["findings"]} >= {
        "stack",
        "endpoint",
        "migrations",
        "database",
        "rules",
    }
    assert "jobs" in {finding["check"] for finding in answer["findings"]}
    text = signalbox("doctor").out
    assert "ok    function archiver" in text
    assert text.splitlines()[-1].endswith(", 0 failed")


def test_doctor_says_what_is_broken_and_what_to_do(signalbox: Signalbox, announced: dict[str, Any]) -> None:
    events = client("events", announced["endpoint"])
    (target,) = events.list_targets_by_rule(Rule="signalbox.sweep_runs")["Targets"]
    events.remove_targets(Rule="signalbox.sweep_runs", Ids=[target["Id"]])
    events.disable_rule(Name="signalbox.poll_data")
    try:
        ran = signalbox("doctor", "--json")
    finally:
        events.put_targets(Rule="signalbox.sweep_runs", Targets=[target])
        events.enable_rule(Name="signalbox.poll_data")
    assert ran.code == 1
    findings = [finding for finding in json.loads(ran.out)["findings"] if finding["check"] == "rules"]
    told = {finding["detail"].split()[0]: (finding["verdict"], finding["advice"]) for finding in findings}
    assert told["signalbox.sweep_runs"] == ("fail", "deploy the template again")
    assert told["signalbox.poll_data"] == (
        "warn",
        "`aws events enable-rule --name signalbox.poll_data` enables it",
    )


def test_doctor_finds_a_lane_that_nobody_reads(signalbox: Signalbox, announced: dict[str, Any]) -> None:
    functions = client("lambda", announced["endpoint"])
    mappings = functions.list_event_source_mappings(FunctionName="signalbox-worker")["EventSourceMappings"]
    (uuid,) = [one["UUID"] for one in mappings if one["EventSourceArn"].endswith(":signalbox-low")]
    functions.update_event_source_mapping(UUID=uuid, Enabled=False)
    try:
        findings = signalbox("doctor", "--json").json["findings"]
    finally:
        functions.update_event_source_mapping(UUID=uuid, Enabled=True)
    (found,) = [finding for finding in findings if finding["check"] == "lanes"]
    assert (found["verdict"], found["detail"]) == ("warn", "signalbox-low is not read: its mapping is disabled")


# ---- status, and stacks that are not there


def test_status_says_where_the_stack_is(signalbox: Signalbox, announced: dict[str, Any]) -> None:
    answer = signalbox("status", "--json").json
    assert {"stack", "endpoint", "database", "region", "api", "home"} <= answer.keys()
    assert {name: answer[name] for name in announced} == announced
    assert (answer["running"], answer["ready"], answer["detail"]["clock"]) == (True, True, False)
    assert (answer["database_answers"], answer["orphans"]) == (True, [])
    assert f"endpoint  {announced['endpoint']}" in signalbox("status").out


@pytest.mark.parametrize(
    "words",
    [["tick"], ["invoke", "sweep_runs"], ["history"], ["slots"], ["backfill", "list"], ["migrate"], ["logs"]],
    ids=lambda words: words[0],
)
def test_without_a_stack_each_command_says_how_to_start_one(tmp_path: Any, words: list[str]) -> None:
    said = refusal(Signalbox(), *words, "--home", str(tmp_path))
    assert f"no stack runs in {tmp_path}; start one with `signalbox up`, or name one on AWS with --stack" in said


def test_an_error_is_json_for_programs(signalbox: Signalbox) -> None:
    ran = signalbox("invoke", "swep_runs", "--json")
    error = json.loads(ran.out)["error"]
    assert (ran.code, error["type"]) == (2, "TaskUnknown")
    assert error["message"] == "task 'swep_runs' is not registered; did you mean 'sweep_runs'?"
    assert ran.err == f"signalbox: TaskUnknown: {error['message']}\n"


def test_an_error_shows_its_traceback_only_when_asked(signalbox: Signalbox) -> None:
    assert "Traceback" in signalbox("invoke", "nope", "--debug").err
    assert "Traceback" in signalbox.with_(SIGNALBOX_DEBUG="1")("invoke", "nope").err


def test_reader_of_the_output_may_stop_early(signalbox: Signalbox, many: int) -> None:
    with signalbox.started("history", "--all") as process:
        assert process.stdout is not None
        assert process.stdout.readline().split()[0] == "run"
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
        assert process.wait(PATIENCE) == 1
    assert many > 1000
