"""`signalbox --stack` works with an AWS configuration that leads to the laptop, by AWS's own APIs alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from signalbox.engine_pack import registry_of
from signalbox.packs.task import MINUTE
from signalbox_cli.stack.laptop_api import LaptopControl
from signalbox_laptop.aws import client
from tests.support.command_line import Signalbox, detached_stack, refusal
from tests.support.template import PACKS


@pytest.fixture(scope="module")
def announced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    with detached_stack(tmp_path_factory) as announced:
        yield announced


@pytest.fixture
def signalbox(announced: dict[str, Any]) -> Signalbox:
    return Signalbox({"SIGNALBOX_HOME": announced["home"]})


@pytest.fixture
def on_aws(announced: dict[str, Any]) -> Signalbox:
    return Signalbox(
        {
            "AWS_ENDPOINT_URL": announced["endpoint"],
            "AWS_ACCESS_KEY_ID": "x",
            "AWS_SECRET_ACCESS_KEY": "x",
            "AWS_REGION": "us-east-1",
        }
    )


STACK = ("--stack", "signalbox")


# ---- the usual configuration


def test_a_stack_on_aws_is_reached_by_the_usual_configuration(on_aws: Signalbox, signalbox: Signalbox) -> None:
    run = signalbox("invoke", "sweep_runs", "--reference-time", "2026-02-08T00:02:00Z", "--json").json
    runs = on_aws(
        "history", "--stack", "signalbox", "--since", "2026-02-08T00:02Z", "--until", "2026-02-08T00:02Z", "--json"
    ).json["runs"]
    assert run["run_id"] in [run["id"] for run in runs]
    healthy = on_aws("doctor", "--stack", "signalbox", "--json").json
    assert {"identity", "deployment"} <= {finding["check"] for finding in healthy["findings"]}


def test_what_keeps_us_from_a_stack_on_aws_is_said(on_aws: Signalbox, tmp_path: Any) -> None:
    assert "Function not found" in refusal(on_aws, "history", "--stack", "other")
    nowhere = on_aws.with_(AWS_ENDPOINT_URL="http://127.0.0.1:9")
    assert "nothing answers at http://127.0.0.1:9; is the stack up" in refusal(nowhere, "history", "--stack", "other")
    nobody = Signalbox({"HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": "us-east-1"})
    assert "no AWS credentials were found" in refusal(nobody, "history", "--stack", "other")


# ---- status


def test_status_shows_what_aws_and_the_api_report(on_aws: Signalbox) -> None:
    answer = on_aws("status", *STACK, "--json").json
    assert (answer["stack"], answer["region"], answer["functions"]) == (
        "signalbox",
        "us-east-1",
        ["api", "archiver", "dead-letter", "migrator", "poller", "worker", "worker-heavy"],
    )
    assert answer["status"].endswith("_COMPLETE")
    assert answer["database_answers"] is True
    assert answer["examined"]["schema"]["pending"] == []
    first, *rest = on_aws("status", *STACK).out.splitlines()
    assert first.startswith(f"stack signalbox in us-east-1 is {answer['status']}, changed ")
    assert "  functions api, archiver, dead-letter, migrator, poller, worker, worker-heavy" in rest
    assert any(line.startswith("  database  PostgreSQL ") for line in rest)


def test_status_of_a_stack_that_is_not_there_is_refused(on_aws: Signalbox) -> None:
    assert "is the stack's name right, and the region?" in refusal(on_aws, "status", "--stack", "other")


# ---- tick


def runs_at(signalbox: Signalbox, instant: str) -> list[dict[str, Any]]:
    """Return all finished and current runs of that instant's slots."""
    endpoint = signalbox("status", "--json").json["endpoint"]
    assert LaptopControl(endpoint).idle(60)["idle"] is True
    runs: list[dict[str, Any]] = signalbox("history", "--since", instant, "--until", instant, "--json").json["runs"]
    return runs


def test_tick_sends_what_eventbridge_would(on_aws: Signalbox, signalbox: Signalbox) -> None:
    at = "2026-02-01T00:31:00+00:00"
    answer = on_aws("tick", *STACK, "--at", "2026-02-01T00:31:20Z", "--json").json
    tasks = {task.name for task in registry_of(PACKS) if task.schedule == MINUTE} | {"roll_up_metrics"}
    due = [
        {"rule": f"signalbox.{task}", "time": "2026-02-01T00:31:00Z", "targets": 1, "failed": 0}
        for task in sorted(tasks)
    ]
    assert answer == {"at": at, "fired": due}
    runs = runs_at(signalbox, "2026-02-01T00:31:00Z")
    assert {run["job_type"] for run in runs} == tasks
    assert {(run["trigger"], run["reference_time"]) for run in runs} == {("schedule", at)}


def test_tick_shows_the_table_that_the_laptop_shows(on_aws: Signalbox, signalbox: Signalbox) -> None:
    words = ["tick", "--rule", "sweep_runs", "--rule", "signalbox.poll_data", "--at", "2026-02-02T00:02:00Z"]
    assert on_aws(*words, *STACK).out == signalbox(*words).out


def test_tick_fires_every_rule_of_the_stack_and_none_of_a_neighbour(
    on_aws: Signalbox, signalbox: Signalbox, announced: dict[str, Any]
) -> None:
    events = client("events", announced["endpoint"])
    events.put_rule(Name="signalbox-prod-poll_data", ScheduleExpression="rate(1 minute)")
    try:
        fired = on_aws("tick", *STACK, "--all", "--at", "2026-02-03T02:30:00Z", "--json").json["fired"]
    finally:
        events.delete_rule(Name="signalbox-prod-poll_data")
    tasks = signalbox("slots", "--json").json["tasks"]
    assert [rule["rule"] for rule in fired] == sorted(f"signalbox.{task['task']}" for task in tasks)


def test_tick_names_the_rules_that_there_are(on_aws: Signalbox) -> None:
    said = refusal(on_aws, "tick", *STACK, "--rule", "nope")
    assert "no rule is named signalbox.nope; this stack has signalbox.advance_backfills, " in said


def test_unreachable_target_is_reported_and_the_others_are_reached(
    on_aws: Signalbox, signalbox: Signalbox, announced: dict[str, Any]
) -> None:
    events = client("events", announced["endpoint"])
    arn = "arn:aws:lambda:us-east-1:123456789012:function:signalbox-gone"
    queue = "arn:aws:sqs:us-east-1:123456789012:signalbox-failed-invocations"
    places = [{"Id": "gone", "Arn": arn}, {"Id": "queue", "Arn": queue}]
    events.put_targets(Rule="signalbox.sweep_runs", Targets=places)
    at = "2026-02-04T00:02:00Z"
    try:
        ran = on_aws("tick", *STACK, "--rule", "sweep_runs", "--at", at, "--json")
    finally:
        events.remove_targets(Rule="signalbox.sweep_runs", Ids=["gone", "queue"])
    (fired,) = json.loads(ran.out)["fired"]
    assert (ran.code, fired["targets"], fired["failed"]) == (1, 3, 2)
    assert f"rule signalbox.sweep_runs did not reach {arn}: Invoke was refused: Function not found" in ran.err
    assert f"rule signalbox.sweep_runs did not reach {queue}: by hand only functions are invoked" in ran.err
    assert [run["status"] for run in runs_at(signalbox, at)] == ["succeeded"]


# ---- doctor


def test_doctor_warns_if_the_database_never_drops_vanished_workers(on_aws: Signalbox, signalbox: Signalbox) -> None:
    (found,) = [
        finding for finding in on_aws("doctor", *STACK, "--json").json["findings"] if finding["check"] == "timeouts"
    ]
    assert found["verdict"] == "warn"
    assert "SET idle_in_transaction_session_timeout = '5min'" in found["advice"]
    assert "timeouts" not in [finding["check"] for finding in signalbox("doctor", "--json").json["findings"]]
