"""The laptop brings up the deployment with the pack forecasts: a story loaded, every rule fired, every event run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg
import pytest
import urllib3

from signalbox.engine_pack import registry_of
from signalbox.testing.rows import runs_of
from signalbox_laptop.aws import client
from signalbox_laptop.home import StackState
from tests.support.events import EVENTS, function_of
from tests.support.laptop import control
from tests.support.story import AT, stack_with_story

REGISTRY = registry_of(["forecasts"])
PACKS_TASKS = sorted(set(REGISTRY.names()) - set(registry_of([]).names()) | {"poll_data"})


@dataclass(frozen=True)
class Story:
    """Describe a stack after the night of the story."""

    state: StackState
    fired: list[dict[str, Any]]
    notifications: list[dict[str, Any]]
    evaluations: list[dict[str, Any]]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    with stack_with_story("forecasts", tmp_path_factory.mktemp("forecasts")) as state:
        fired = control(state, "POST", "tick", at=AT.isoformat(), rules=None)["fired"]
        assert control(state, "GET", "idle?timeout=120")["idle"] is True
        yield Story(state, fired, drained(state, "notifications"), drained(state, "evaluations"))


@pytest.fixture
def db(story: Story) -> Iterator[psycopg.Connection]:
    with psycopg.connect(story.state.database, autocommit=True) as connection:
        connection.execute("SET timezone = 'UTC'")
        yield connection


def drained(state: StackState, queue: str) -> list[dict[str, Any]]:
    sqs = client("sqs", state.endpoint)
    url, bodies = sqs.get_queue_url(QueueName=f"{state.stack}-{queue}")["QueueUrl"], []
    while found := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        for message in found:
            bodies.append(json.loads(message["Body"]))
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    return bodies


def outputs(state: StackState) -> dict[str, str]:
    [stack] = client("cloudformation", state.endpoint).describe_stacks(StackName=state.stack)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}


def jobs(state: StackState) -> dict[str, Any]:
    answer = urllib3.request("GET", f"{state.stand_ins['runpod']}/_stand_in/jobs").json()
    return {job["id"]: job for job in answer["jobs"]}


def asked(state: StackState, task_type: str) -> list[Any]:
    """Return what RunPod was asked to compute."""
    inputs = (job["input"] for job in jobs(state).values())
    return [given for given in inputs if given and given["task_type"] == task_type]


def run_of(db: psycopg.Connection, external_id: str) -> tuple[Any, ...]:
    statement = "SELECT status, failure_reason, retry_count FROM forecasts.forecast_runs WHERE external_id = %s"
    row = db.execute(statement, (external_id,)).fetchone()
    assert row is not None
    return row


def organization(db: psycopg.Connection, name: str, *columns: str) -> tuple[Any, ...]:
    row = db.execute("SELECT to_jsonb(o) FROM forecasts.organizations AS o WHERE name = %s", (name,)).fetchone()
    assert row is not None
    return tuple(row[0][column] for column in columns)


def objects(state: StackState, bucket: str) -> list[str]:
    found = client("s3", state.endpoint).list_objects_v2(Bucket=bucket).get("Contents", [])
    return [one["Key"] for one in found]


def invoke(state: StackState, function: str, payload: object) -> tuple[str | None, Any]:
    body = json.dumps(payload).encode()
    answer = client("lambda", state.endpoint).invoke(FunctionName=f"{state.stack}-{function}", Payload=body)
    return answer.get("FunctionError"), json.loads(answer["Payload"].read())


def test_every_rule_fires_and_each_pack_task_succeeds_in_one_run(story: Story, db: psycopg.Connection) -> None:
    assert {rule["rule"] for rule in story.fired} == {f"signalbox.{task}" for task in REGISTRY.names()}
    assert [rule["rule"] for rule in story.fired if rule["failed"]] == []
    for task in PACKS_TASKS:
        statuses = [row["status"] for row in runs_of(db, task) if row["reference_time"] == AT]
        assert statuses == ["succeeded"], task


def test_no_invocation_failed(db: psycopg.Connection) -> None:
    assert db.execute("SELECT payload FROM signalbox.dead_letter_jobs").fetchall() == []


@pytest.mark.parametrize("task", sorted(set(PACKS_TASKS) - {"poll_data"}))
def test_each_task_found_something_to_do(story: Story, db: psycopg.Connection, task: str) -> None:
    [run] = [row for row in runs_of(db, task) if row["reference_time"] == AT]
    assert run["items"] > 0


def test_complete_cycle_is_triggered_despite_a_lost_mirror_and_incomplete_is_not(
    story: Story, db: psycopg.Connection
) -> None:
    statement = """
        SELECT run_timestamp, input_references FROM forecasts.forecast_runs
        WHERE model = 'medium_range' AND triggered_at IS NOT NULL
    """
    [(cycle, references)] = db.execute(statement).fetchall()
    assert cycle == AT.replace(hour=0, minute=0) - timedelta(hours=6)
    assert references == ["s3://global-forecast-system/gfs.20260104/18/atmos/gfs.t18z.pgrb2.0p25.f"]


def test_satellite_and_radar_make_two_nowcasts_with_the_tiles_calibration(story: Story, db: psycopg.Connection) -> None:
    statement = """
        SELECT run_timestamp, radar_timestamp FROM forecasts.forecast_runs
        WHERE model = 'nowcast' AND radar_timestamp IS NOT NULL ORDER BY run_timestamp
    """
    apart = [(radar - satellite).total_seconds() for satellite, radar in db.execute(statement).fetchall()]
    assert apart == [76.7, 16.7]
    nowcasts = [given for given in asked(story.state, "forecast") if given["model"] == "nowcast"]
    assert {tuple(sorted(given["input_config"]["calibration"])) for given in nowcasts} == {("tile-1", "tile-2")}


def test_what_became_of_the_runs_at_work_is_found_out(story: Story, db: psycopg.Connection) -> None:
    assert run_of(db, "job-hung") == ("failed", "Timeout", 0)
    assert jobs(story.state)["job-hung"]["status"] == "CANCELLED"
    assert run_of(db, "job-done") == ("complete", None, 1)
    assert run_of(db, "job-failed") == ("failed", "FAILED: CUDA out of memory", 3)
    assert run_of(db, "job-5") == ("running", None, 0)
    statement = "SELECT external_id, retry_count FROM forecasts.forecast_runs WHERE run_timestamp = %s"
    [(external_id, retries)] = db.execute(statement, (AT - timedelta(minutes=80),)).fetchall()
    assert (external_id in jobs(story.state), retries) == (True, 1)


def test_deferred_notifications_go_out_but_for_whom_it_is_quiet(story: Story, db: psycopg.Connection) -> None:
    sent = [message["payload"]["text"] for message in story.notifications if message["type"] == "deliver"]
    assert sent == ["snow above 1800 m"] * 3
    statement = "SELECT next_retry_at FROM forecasts.notification_deliveries WHERE status = 'deferred'"
    assert db.execute(statement).fetchall() == [(AT.replace(hour=12, minute=0),)]


def test_digests_come_at_their_own_times_and_three_missed_are_one(story: Story, db: psycopg.Connection) -> None:
    digests = [message for message in story.notifications if message["type"] == "generate_digest"]
    assert len(digests) == len({message["organization_id"] for message in digests}) == 3
    next_due = {
        name: organization(db, name, "next_digest_at")[0]
        for name in ("Alpine Huts", "Harbour Pilots", "Southern Vines", "Mars Rovers")
    }
    assert next_due == {
        "Alpine Huts": "2026-01-06T02:00:00+00:00",
        "Harbour Pilots": "2026-01-12T02:00:00+00:00",
        "Southern Vines": "2026-01-06T02:00:00+00:00",
        "Mars Rovers": "2026-01-05T01:30:00+00:00",
    }


def test_passed_events_are_archived_and_their_summaries_asked_for(story: Story) -> None:
    assert [message["tile_id"] for message in story.evaluations] == ["tile-1", "tile-2", "tile-3"]


def test_stripes_word_counts_and_who_is_not_known_there_is_left_alone(story: Story, db: psycopg.Connection) -> None:
    columns = ("plan", "subscription_status")
    assert organization(db, "Southern Vines", *columns) == ("pro", "active")
    assert organization(db, "Mars Rovers", *columns) == ("starter", "active")
    [customer] = organization(db, "Corner Shop", "stripe_customer_id")
    assert customer.startswith("cus_")
    assert organization(db, "Old Mill", "last_billing_sync_at", "billing_sync_failed_at") == (
        "2026-01-04T00:30:00+00:00",
        AT.isoformat(),
    )


def test_watchpoints_of_who_does_not_pay_and_beyond_the_plan_are_paused(story: Story, db: psycopg.Connection) -> None:
    paused = db.execute("SELECT name, paused_reason FROM forecasts.watchpoints WHERE status = 'paused' ORDER BY name")
    assert paused.fetchall() == [
        ("berth 6", "plan_overage"),
        ("berth 7", "plan_overage"),
        ("field 1", "billing_delinquency"),
        ("field 2", "billing_delinquency"),
    ]


def test_yesterdays_usage_is_filed_under_yesterday(story: Story, db: psycopg.Connection) -> None:
    filed = db.execute("SELECT date::text, source, api_calls FROM forecasts.usage_history ORDER BY api_calls")
    assert filed.fetchall() == [
        ("2026-01-04", "api", 12),
        ("2026-01-04", "dashboard", 118),
        ("2026-01-04", "api", 870),
        ("2026-01-04", "api", 4210),
    ]


def test_canary_that_disagrees_is_reported(story: Story, db: psycopg.Connection) -> None:
    statement = """
        SELECT watchpoint.name FROM forecasts.audit_logs AS audit
        JOIN forecasts.watchpoints AS watchpoint ON watchpoint.id::text = audit.entity_id
        WHERE watchpoint.metadata ->> 'system_role' = 'canary'
    """
    assert db.execute(statement).fetchall() == [("canary that disagrees",)]


def test_forecasts_are_verified_and_tiles_with_enough_verification_calibrated(story: Story) -> None:
    assert asked(story.state, "verification")
    assert {tile for given in asked(story.state, "calibration") for tile in given["tiles"]} == {"tile-1", "tile-2"}


def test_old_forecasts_are_gone_from_the_bucket_and_new_ones_are_there(story: Story, db: psycopg.Connection) -> None:
    prefixes = {key.rpartition("/")[0] for key in objects(story.state, outputs(story.state)["ForecastBucketName"])}
    assert prefixes == {"nowcast/new", "medium_range/new"}
    assert [run_of(db, job)[0] for job in ("job-4", "job-7")] == ["deleted"] * 2


def test_old_audit_records_lie_in_cold_storage_and_nowhere_else(story: Story, db: psycopg.Connection) -> None:
    assert objects(story.state, outputs(story.state)["ArchiveBucketName"])
    row = db.execute("SELECT count(*), min(created_at) FROM forecasts.audit_logs WHERE actor = 'warden'").fetchone()
    assert row == (5, AT - timedelta(days=20))


def test_what_had_to_go_is_gone_and_the_rest_is_not(story: Story, db: psycopg.Connection) -> None:
    left = {
        table: db.execute(f"SELECT count(*) FROM forecasts.{table}").fetchone()
        for table in ("idempotency_keys", "security_events", "invites", "notifications")
    }
    assert left == {
        "idempotency_keys": (5,),
        "security_events": (5,),
        "invites": (2,),
        "notifications": (4,),
    }
    names = [row[0] for row in db.execute("SELECT name FROM forecasts.organizations WHERE deleted_at IS NOT NULL")]
    assert names == ["Just Gone"]


@pytest.mark.parametrize("name", [name for name, event in EVENTS.items() if event.get("task") in PACKS_TASKS])
def test_each_event_runs(story: Story, name: str) -> None:
    error, answer = invoke(story.state, function_of(EVENTS[name], REGISTRY), EVENTS[name])
    assert error is None, answer
    assert answer["status"] in ("succeeded", "skipped")


def test_the_functions_learn_from_the_deployment_all_but_where_the_services_are(story: Story) -> None:
    lambda_ = client("lambda", story.state.endpoint)
    for function in ("archiver", "poller"):
        found = lambda_.get_function_configuration(FunctionName=f"signalbox-{function}")
        variables = found["Environment"]["Variables"]
        assert [name for name in variables if name.endswith(("_BASE_URL", "ENDPOINT_URL"))] == []
        assert json.loads(variables["FORECASTS_SETTINGS"])["runpod_endpoint_id"]


def test_the_migrator_knows_the_packs_schema(story: Story) -> None:
    error, report = invoke(story.state, "migrator", {"action": "report"})
    assert error is None
    assert report["versions"]["forecasts"] >= 1
    assert report["pending"] == []
