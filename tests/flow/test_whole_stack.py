"""The real template and functions run on the laptop, in one stack for all tests here.

Without a pack: the engine alone. Each pack has a whole stack of its own, in a file of its own.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import psycopg
import pytest
from botocore.config import Config

from signalbox.engine_pack import registry_of
from signalbox.testing.rows import abandoned_run, runs_of
from signalbox_laptop.home import StackState
from signalbox_laptop.up import StackOptions, down, up
from tests.support.events import EVENTS, function_of
from tests.support.template import SWITCHES

TASKS = registry_of([]).by_name
# Before any that the events of the repository name.
SLOT = datetime(2025, 6, 5, 2, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackState]:
    home = tmp_path_factory.mktemp("stack")
    options = StackOptions(home=home, port=0, clock=False, durable=False, parameters=dict.fromkeys(SWITCHES, "off"))
    yield up(options, lambda _: None)
    down(home, lambda _: None)


@pytest.fixture
def ledger(stack: StackState) -> Iterator[psycopg.Connection]:
    with psycopg.connect(stack.database, autocommit=True) as connection:
        connection.execute("SET timezone = 'UTC'")
        yield connection


def client(stack: StackState, service: str) -> Any:
    return boto3.client(
        service,  # type: ignore[call-overload]
        endpoint_url=stack.endpoint,
        region_name=stack.region,
        aws_access_key_id="laptop",
        aws_secret_access_key="laptop",
        config=Config(retries={"total_max_attempts": 1}),
    )


def invoke(stack: StackState, function: str, payload: object) -> tuple[str | None, Any]:
    """Return the function's error, if it had one, and its answer."""
    body = json.dumps(payload).encode()
    answered = client(stack, "lambda").invoke(FunctionName=f"{stack.stack}-{function}", Payload=body)
    return answered.get("FunctionError"), json.loads(answered["Payload"].read())


def control(stack: StackState, path: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{stack.endpoint}/_signalbox/{path}", data)) as answered:
        return json.loads(answered.read())


def test_only_the_migrator_logs_in_as_owner_and_others_as_writer(stack: StackState, ledger: psycopg.Connection) -> None:
    assert invoke(stack, "api", {"operation": "examine"})[0] is None
    assert invoke(stack, "migrator", {"action": "report"})[0] is None
    sessions = "SELECT DISTINCT application_name, usename::text FROM pg_stat_activity WHERE application_name = ANY (%s)"
    found = ledger.execute(sessions, ([f"{stack.stack}-api", "migrator"],)).fetchall()
    assert sorted(found) == [("migrator", "postgres"), (f"{stack.stack}-api", "functions")]


@pytest.mark.parametrize("name", [name for name, event in EVENTS.items() if event.get("task", "poll_data") in TASKS])
def test_each_event_runs(stack: StackState, name: str) -> None:
    function = function_of(EVENTS[name], registry_of([])).replace("_", "-")
    error, answer = invoke(stack, function, EVENTS[name])
    assert error is None, answer
    if "task" in EVENTS[name]:
        assert answer["status"] in ("succeeded", "skipped")


def test_each_rule_fires_its_task_for_the_instant_it_was_due(stack: StackState, ledger: psycopg.Connection) -> None:
    fired = control(stack, "tick", {"at": SLOT.isoformat(), "rules": None, "due": False})["fired"]
    assert {rule["rule"]: rule["failed"] for rule in fired} == {f"{stack.stack}.{task}": 0 for task in TASKS}
    assert control(stack, "idle?timeout=30")["idle"] is True
    for task in registry_of([]):
        [row] = [row for row in runs_of(ledger, task.name) if row["slot"] == task.slot_of(SLOT)]
        assert row["trigger"] == "schedule"
        assert row["reference_time"] == SLOT
        assert row["status"] == ("skipped" if task.name == "poll_data" else "succeeded")


@pytest.mark.parametrize(
    ("function", "payload", "error", "words"),
    [
        ("archiver", [], "PayloadRefused", "must be a JSON object, and is an array"),
        ("archiver", {"task": "sweep_run"}, "TaskUnknown", "did you mean 'sweep_runs'?"),
        ("archiver", {"task": "sweep_runs", "params": {"x": 1}}, "ParamsRefused", "takes no params, but got x"),
        ("archiver", {"task": "sweep_runs", "reference_time": "2026-01-05"}, "PayloadRefused", "has no time zone"),
        ("poller", {"limit": -1}, "ParamsRefused", "field 'limit'"),
        ("migrator", {"action": "undo"}, "PayloadRefused", "field 'action'"),
    ],
)
def test_a_bad_payload_is_a_function_error_that_says_what_is_wrong(
    stack: StackState, function: str, payload: object, error: str, words: str
) -> None:
    kind, answer = invoke(stack, function, payload)
    assert kind == "Unhandled"
    assert answer["errorType"] == error
    assert words in answer["errorMessage"]


def test_final_failure_is_filed_with_all_that_is_known(stack: StackState, ledger: psycopg.Connection) -> None:
    payload = {"task": "reconcile_slots", "params": {"lookback_hours": 0}}
    arn = client(stack, "lambda").get_function(FunctionName=f"{stack.stack}-archiver")["Configuration"]["FunctionArn"]
    live = {"FunctionName": arn, "InvocationType": "Event"}
    client(stack, "lambda").invoke(**live, Payload=json.dumps(payload).encode())
    assert control(stack, "idle?timeout=60")["idle"] is True
    statement = """
        SELECT payload, total_attempts, error_type FROM signalbox.dead_letter_jobs
        WHERE source = 'invocation' AND payload ->> 'task' = 'reconcile_slots'
    """
    assert ledger.execute(statement).fetchall() == [(payload, 3, "ParamsRefused")]


def test_refused_event_tried_three_times_leaves_one_failed_row(stack: StackState, ledger: psycopg.Connection) -> None:
    payload = {"task": "prune_history", "reference_time": "2025-06-09T02:30:00Z", "params": {"days": 1}}
    client(stack, "lambda").invoke(
        FunctionName=f"{stack.stack}-archiver", InvocationType="Event", Payload=json.dumps(payload).encode()
    )
    assert control(stack, "idle?timeout=60")["idle"] is True
    slot = datetime(2025, 6, 9, 2, 30, tzinfo=UTC)
    assert [row["status"] for row in runs_of(ledger, "prune_history") if row["slot"] == slot] == ["failed"]


def test_lost_run_runs_again_in_its_own_invocation(stack: StackState, ledger: psycopg.Connection) -> None:
    slot = datetime(2025, 6, 7, 2, 30, tzinfo=UTC)
    abandoned_run(ledger, "prune_history", slot, lease=timedelta(seconds=-1))
    error, answer = invoke(stack, "archiver", {"task": "sweep_runs", "force": True})
    assert (error, answer["items"]) == (None, 2)
    assert control(stack, "idle?timeout=30")["idle"] is True
    rows = [row for row in runs_of(ledger, "prune_history") if row["slot"] == slot]
    assert [(row["status"], row["trigger"]) for row in rows] == [("failed", "schedule"), ("succeeded", "catch_up")]


def test_a_function_finds_the_database_by_its_secret(stack: StackState) -> None:
    secrets, functions = client(stack, "secretsmanager"), client(stack, "lambda")
    name = f"{stack.stack}-poller"
    arn = secrets.create_secret(Name="by-secret", SecretString=json.dumps({"url": stack.database}))["ARN"]
    variables = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    changed = variables | {"SIGNALBOX_DATABASE_SECRET_ARN": arn, "SIGNALBOX_DATABASE_URL": ""}
    functions.update_function_configuration(FunctionName=name, Environment={"Variables": changed})
    try:
        error, answer = invoke(stack, "poller", {})
        assert (error, answer["status"]) == (None, "skipped")
        functions.update_function_configuration(
            FunctionName=name,
            Environment={"Variables": changed | {"SIGNALBOX_DATABASE_SECRET_ARN": f"{arn}-gone"}},
        )
        error, answer = invoke(stack, "poller", {})
        assert (error, answer["errorType"]) == ("Unhandled", "Unavailable")
        assert f"no secret {arn}-gone" in answer["errorMessage"]
    finally:
        functions.update_function_configuration(FunctionName=name, Environment={"Variables": variables})
