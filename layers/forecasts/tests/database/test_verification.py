"""verification has each run of the day compared with observations, once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from forecasts.errors import MirrorFailed, RunPodDenied, RunPodUnavailable, TriggerUnconfirmed
from forecasts.runs.inference_payload import InferencePayload
from signalbox.errors import SettingsRefused
from signalbox.testing.stage import NOON, Stage
from signalbox_laptop.stand_ins.faults import Fault
from stand_ins.runpod import RunPodStandIn
from tests.support import forecast_rows as rows
from tests.support.at_once import two_at_once
from tests.support.aws import Aws
from tests.support.canary_rows import canary, expecting, mismatches
from tests.support.lost_session import lose_session
from tests.support.s3_front import S3Front

TASK = "verification"
DAY, HOUR, SECOND = timedelta(days=1), timedelta(hours=1), timedelta(seconds=1)


@pytest.fixture(autouse=True)
def source(aws: Aws, runpod: RunPodStandIn, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Front]:
    """Serve the public bucket of observations; it is the archive's, since no test here needs that."""
    aws.s3.put_bucket_acl(Bucket=aws.archive_bucket, ACL="public-read")
    with S3Front(aws.endpoint) as front:
        monkeypatch.setenv("FORECASTS_S3_ENDPOINT_URL", front.url)
        monkeypatch.setenv("FORECASTS_OBSERVATION_MIRROR", json.dumps({"kind": "s3", "bucket": aws.archive_bucket}))
        monkeypatch.setenv("FORECASTS_OBSERVATION_KEY_TEMPLATE", "{product}/{date}/{name}-{hour:02}")
        monkeypatch.setenv("FORECASTS_OBSERVATION_PRODUCT", "CONUS/Rain")
        yield front


def observe(aws: Aws, since: datetime = NOON - 3 * DAY, until: datetime = NOON, body: bytes = b"rain") -> None:
    """Add a file for each full hour of the period."""
    hour = since.replace(minute=0, second=0, microsecond=0)
    while hour <= until:
        key = f"CONUS/Rain/{hour:%Y%m%d}/Rain-{hour:%H}"
        aws.s3.put_object(Bucket=aws.archive_bucket, Key=key, Body=body)
        hour += HOUR


def forget(aws: Aws, *hours: datetime) -> None:
    for hour in hours:
        aws.s3.delete_object(Bucket=aws.archive_bucket, Key=f"CONUS/Rain/{hour:%Y%m%d}/Rain-{hour:%H}")


def complete(db: psycopg.Connection, age: timedelta, **columns: Any) -> UUID:
    return rows.forecast_run(db, NOON - age, **({"status": "complete", "storage_prefix": "runs/1/"} | columns))


def asked(runpod: RunPodStandIn) -> list[str | None]:
    """Return the runs that RunPod was asked to verify."""
    return [InferencePayload.model_validate(given).forecast_run_id for given in runpod.inputs]


def statuses(db: psycopg.Connection) -> dict[str, str]:
    return dict(db.execute("SELECT forecast_run_id::text, status FROM forecasts.verification_requests").fetchall())


def result(db: psycopg.Connection, run: UUID) -> None:
    values = {"forecast_run_id": run, "tile_id": "a", "metric": "rmse", "value": 1.0, "sample_count": 1}
    rows.insert(db, "verification_results", values)


def test_a_run_is_verified_over_the_day_that_follows_it(
    stage: Stage, aws: Aws, db: psycopg.Connection, runpod: RunPodStandIn
) -> None:
    observe(aws)
    run = complete(db, 30 * HOUR)
    answer = stage.run(TASK)
    assert (answer["items"], answer["detail"]["requested"]) == (1, 1)
    [payload] = [InferencePayload.model_validate(given) for given in runpod.inputs]
    assert (payload.task_type, payload.model, payload.forecast_run_id) == ("verification", "medium_range", str(run))
    assert (payload.run_timestamp, payload.storage_prefix) == (NOON - 30 * HOUR, "runs/1/")
    assert payload.verification_window is not None
    assert payload.verification_window.start == NOON - 30 * HOUR
    assert payload.verification_window.end == NOON - 6 * HOUR
    references = payload.input_config.references
    assert len(references) == 24
    assert references[0] == f"s3://{aws.archive_bucket}/CONUS/Rain/20260309/Rain-07"
    assert references[-1] == f"s3://{aws.archive_bucket}/CONUS/Rain/20260310/Rain-06"
    row = db.execute("SELECT status, external_id, requested_at FROM forecasts.verification_requests").fetchone()
    assert row == ("requested", next(iter(runpod.jobs)), NOON)


def test_a_nowcast_is_verified_over_its_hours(
    stage: Stage, aws: Aws, db: psycopg.Connection, runpod: RunPodStandIn
) -> None:
    observe(aws)
    complete(db, 30 * HOUR - timedelta(minutes=10), model="nowcast")
    stage.run(TASK)
    [payload] = [InferencePayload.model_validate(given) for given in runpod.inputs]
    assert payload.verification_window is not None
    assert payload.verification_window.end - payload.verification_window.start == 6 * HOUR
    hours = [reference[-2:] for reference in payload.input_config.references]
    assert hours == ["07", "08", "09", "10", "11", "12"]


def test_with_nothing_due_neither_the_source_nor_runpod_is_asked(
    stage: Stage, db: psycopg.Connection, runpod: RunPodStandIn, source: S3Front
) -> None:
    complete(db, HOUR)
    answer = stage.run(TASK)
    assert (answer["status"], answer["items"]) == ("succeeded", 0)
    assert (list(source.requests), list(runpod.calls)) == ([], [])


@pytest.mark.parametrize(
    ("age", "due"),
    [
        (2 * DAY + SECOND, False),
        (2 * DAY, True),
        (2 * DAY - SECOND, True),
        (DAY + SECOND, True),
        (DAY, False),
        (DAY - SECOND, False),
    ],
)
def test_runs_exactly_between_one_and_two_days_old_are_due(
    stage: Stage, aws: Aws, db: psycopg.Connection, age: timedelta, due: bool
) -> None:
    observe(aws)
    complete(db, age)
    assert stage.run(TASK)["items"] == due


@pytest.mark.parametrize("status", ["running", "failed", "deleted"])
def test_only_complete_runs_are_verified(stage: Stage, aws: Aws, db: psycopg.Connection, status: str) -> None:
    observe(aws)
    complete(db, 30 * HOUR, status=status, failure_reason="Timeout" if status == "failed" else None)
    assert stage.run(TASK)["items"] == 0


def test_run_is_verified_once_over_all_repetitions_and_slots(
    stage: Stage, aws: Aws, db: psycopg.Connection, runpod: RunPodStandIn
) -> None:
    observe(aws)
    run = complete(db, 30 * HOUR)
    stage.run(TASK)
    stage.run(TASK, force=True)
    stage.run(TASK, NOON + 10 * HOUR, force=True)
    stage.run(TASK, NOON - 5 * HOUR, force=True)
    assert asked(runpod) == [str(run)]


def test_runs_whose_hours_are_the_same_ask_for_each_file_once(
    stage: Stage, aws: Aws, db: psycopg.Connection, source: S3Front
) -> None:
    observe(aws)
    for minutes in range(0, 60, 10):
        complete(db, 30 * HOUR + timedelta(minutes=minutes), model="nowcast")
    assert stage.run(TASK)["items"] == 6
    assert source.count("HEAD") == 7


def test_a_run_without_observations_waits_for_the_days_after(
    stage: Stage, aws: Aws, db: psycopg.Connection, runpod: RunPodStandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    run = complete(db, 30 * HOUR)
    answer = stage.run(TASK)
    assert (answer["items"], answer["detail"]["waiting"]) == (0, 1)
    assert '"VerificationsWaiting":[1.0]' in capsys.readouterr().out
    observe(aws)
    assert stage.run(TASK, NOON + DAY)["items"] == 1
    assert asked(runpod) == [str(run)]


def test_a_run_that_nobody_looked_at_in_time_does_not_wait(stage: Stage, aws: Aws, db: psycopg.Connection) -> None:
    observe(aws)
    complete(db, 50 * HOUR)
    assert stage.run(TASK)["items"] == 0
    assert statuses(db) == {}


@pytest.mark.parametrize(("late", "patient"), [(-SECOND, True), (timedelta(0), True), (SECOND, False)])
def test_run_is_given_up_after_waiting_three_days_more(
    stage: Stage, aws: Aws, db: psycopg.Connection, late: timedelta, patient: bool
) -> None:
    run = complete(db, 2 * DAY)
    stage.run(TASK)
    observe(aws)
    answer = stage.run(TASK, NOON + 3 * DAY + late)
    assert answer["items"] == patient
    assert statuses(db)[str(run)] == ("requested" if patient else "abandoned")
    assert answer["detail"]["abandoned"] == (not patient)


@pytest.mark.parametrize(("gaps", "enough"), [(2, True), (3, False)])
def test_a_few_hours_may_be_missing(
    stage: Stage, aws: Aws, db: psycopg.Connection, runpod: RunPodStandIn, gaps: int, enough: bool
) -> None:
    observe(aws)
    complete(db, 30 * HOUR)
    forget(aws, *(NOON - (10 + gap) * HOUR for gap in range(gaps)))
    assert stage.run(TASK)["items"] == enough
    if enough:
        [payload] = [InferencePayload.model_validate(given) for given in runpod.inputs]
        assert len(payload.input_config.references) == 22


def test_an_empty_file_is_none(stage: Stage, aws: Aws, db: psycopg.Connection) -> None:
    observe(aws, body=b"")
    complete(db, 30 * HOUR)
    assert stage.run(TASK)["detail"]["waiting"] == 1


def test_a_source_of_web_pages_is_asked_by_head(
    stage: Stage, aws: Aws, db: psycopg.Connection, source: S3Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{source.url}/{aws.archive_bucket}"
    monkeypatch.setenv("FORECASTS_OBSERVATION_MIRROR", json.dumps({"kind": "https", "url": url}))
    complete(db, 30 * HOUR)
    assert stage.run(TASK)["detail"]["waiting"] == 1
    observe(aws)
    assert stage.run(TASK, force=True)["items"] == 1


@pytest.mark.parametrize("status", [403, 500])
def test_failed_source_fails_the_run_but_canaries_are_still_checked(
    stage: Stage, aws: Aws, db: psycopg.Connection, source: S3Front, status: int
) -> None:
    observe(aws)
    run = complete(db, 30 * HOUR)
    odd = canary(db, expecting(True))
    source.faults.add(Fault(status=status))
    with pytest.raises(MirrorFailed, match="can't describe"):
        stage.run(TASK)
    assert [entity for entity, _ in mismatches(db)] == [str(odd)]
    assert statuses(db) == {str(run): "waiting"}
    source.faults.replace([])
    assert stage.run(TASK)["items"] == 1
    assert len(mismatches(db)) == 1


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("OBSERVATION_MIRROR", '{"kind": "ftp"}', "FORECASTS_OBSERVATION_MIRROR"),
        ("OBSERVATION_KEY_TEMPLATE", "{station}", "FORECASTS_OBSERVATION_KEY_TEMPLATE"),
        ("RUNPOD_ENDPOINT_ID", "", "FORECASTS_RUNPOD_ENDPOINT_ID"),
    ],
)
def test_wrong_setting_is_named_and_canaries_are_still_checked(
    stage: Stage, aws: Aws, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    observe(aws)
    complete(db, 30 * HOUR)
    canary(db, expecting(True))
    monkeypatch.setenv(f"FORECASTS_{name}", value)
    with pytest.raises(SettingsRefused, match=words):
        stage.run(TASK)
    assert len(mismatches(db)) == 1


def test_what_runpod_refuses_is_reported_and_keeps_no_other(
    stage: Stage, aws: Aws, db: psycopg.Connection, runpod: RunPodStandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    observe(aws)
    bad, good = complete(db, 40 * HOUR), complete(db, 30 * HOUR)
    runpod.faults.add(Fault(matching=str(bad), status=400))
    assert stage.run(TASK)["items"] == 1
    assert statuses(db) == {str(bad): "refused", str(good): "requested"}
    assert '"VerificationsRefused":[1.0]' in capsys.readouterr().out
    assert stage.run(TASK, force=True)["items"] == 0


@pytest.mark.parametrize(("status", "error"), [(401, RunPodDenied), (503, RunPodUnavailable)])
def test_what_runpod_surely_did_not_take_is_asked_for_again(
    stage: Stage, aws: Aws, db: psycopg.Connection, runpod: RunPodStandIn, status: int, error: type[Exception]
) -> None:
    observe(aws)
    run = complete(db, 30 * HOUR)
    runpod.faults.add(Fault(matching="/run", status=status))
    with pytest.raises(error):
        stage.run(TASK)
    assert statuses(db) == {str(run): "waiting"}
    runpod.faults.replace([])
    assert stage.run(TASK)["items"] == 1
    assert asked(runpod) == [str(run)]


def test_unconfirmed_request_is_never_repeated_and_reported_until_results_come(
    stage: Stage, aws: Aws, db: psycopg.Connection, runpod: RunPodStandIn, capsys: pytest.CaptureFixture[str]
) -> None:
    observe(aws)
    run = complete(db, 30 * HOUR)
    runpod.faults.add(Fault(matching="/run", lost=True))
    with pytest.raises(TriggerUnconfirmed):
        stage.run(TASK)
    runpod.faults.replace([])
    assert statuses(db) == {str(run): "unconfirmed"}
    capsys.readouterr()
    assert stage.run(TASK)["detail"]["unconfirmed"] == 1
    assert '"VerificationsUnconfirmed":[1.0]' in capsys.readouterr().out
    assert stage.run(TASK, NOON + DAY)["detail"]["unconfirmed"] == 1
    result(db, run)
    assert stage.run(TASK, NOON + 2 * DAY)["detail"]["unconfirmed"] == 0
    assert asked(runpod) == [str(run)]


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "CANCELLED", "TIMED_OUT", "LOST"])
def test_verification_ended_without_result_is_reported_and_requested_again(
    stage: Stage,
    aws: Aws,
    db: psycopg.Connection,
    runpod: RunPodStandIn,
    capsys: pytest.CaptureFixture[str],
    state: str,
) -> None:
    observe(aws)
    run = complete(db, 30 * HOUR)
    stage.run(TASK)
    [first] = runpod.jobs
    runpod.tell(first, state)
    if state == "LOST":
        runpod.lose(first)
    capsys.readouterr()
    answer = stage.run(TASK, NOON + DAY)
    assert (answer["items"], answer["detail"]["unanswered"]) == (1, 1)
    assert '"VerificationsUnanswered":[1.0]' in capsys.readouterr().out
    [second] = set(runpod.jobs) - {first}
    assert runpod.jobs[second]["input"]["forecast_run_id"] == str(run)
    row = db.execute("SELECT status, external_id, requested_at FROM forecasts.verification_requests").fetchone()
    assert row == ("requested", second, NOON + DAY)
    result(db, run)
    assert stage.run(TASK, NOON + 2 * DAY)["detail"]["unanswered"] == 0


def test_a_verification_that_is_still_at_work_is_reported_and_left_alone(
    stage: Stage, aws: Aws, db: psycopg.Connection, runpod: RunPodStandIn
) -> None:
    observe(aws)
    run = complete(db, 30 * HOUR)
    stage.run(TASK)
    answer = stage.run(TASK, NOON + DAY)
    assert (answer["items"], answer["detail"]["unanswered"]) == (0, 1)
    assert (statuses(db), asked(runpod)) == ({str(run): "requested"}, [str(run)])


@pytest.mark.parametrize(("late", "overdue"), [(-SECOND, False), (timedelta(0), False), (SECOND, True)])
def test_a_verification_has_its_time_to_the_second(
    stage: Stage, aws: Aws, db: psycopg.Connection, runpod: RunPodStandIn, late: timedelta, overdue: bool
) -> None:
    observe(aws)
    complete(db, 30 * HOUR)
    stage.run(TASK)
    runpod.tell(next(iter(runpod.jobs)), "FAILED")
    answer = stage.run(TASK, NOON + HOUR + late, force=True)
    assert (answer["items"], answer["detail"]["unanswered"]) == (overdue, overdue)


def test_a_verification_is_asked_for_again_for_three_days_and_no_longer(
    stage: Stage, aws: Aws, db: psycopg.Connection, runpod: RunPodStandIn
) -> None:
    observe(aws)
    run = complete(db, 2 * DAY)
    unanswered = []
    for days in range(6):
        unanswered.append(stage.run(TASK, NOON + days * DAY)["detail"]["unanswered"])
        runpod.tell(list(runpod.jobs)[-1], "FAILED")
    assert (unanswered, asked(runpod)) == ([0, 1, 1, 1, 0, 0], [str(run)] * 4)


def test_verification_of_a_run_without_data_is_not_requested_again(
    stage: Stage, aws: Aws, db: psycopg.Connection, runpod: RunPodStandIn
) -> None:
    observe(aws)
    complete(db, 30 * HOUR)
    stage.run(TASK)
    runpod.tell(next(iter(runpod.jobs)), "FAILED")
    db.execute("UPDATE forecasts.forecast_runs SET status = 'deleted'")
    assert stage.run(TASK, NOON + DAY)["detail"]["unanswered"] == 0


def test_job_unknown_to_runpod_blocks_no_other_verification(
    stage: Stage, aws: Aws, db: psycopg.Connection, runpod: RunPodStandIn
) -> None:
    observe(aws, until=NOON + DAY)
    old = complete(db, 40 * HOUR)
    stage.run(TASK)
    new = complete(db, 10 * HOUR)
    runpod.faults.add(Fault(matching="/status", status=500))
    answer = stage.run(TASK, NOON + DAY)
    assert (answer["items"], answer["detail"]["unanswered"]) == (1, 1)
    assert asked(runpod) == [str(old), str(new)]


def test_a_result_that_comes_while_runpod_is_asked_ends_the_verification(
    stage: Stage, aws: Aws, db: psycopg.Connection, runpod: RunPodStandIn
) -> None:
    observe(aws)
    run = complete(db, 30 * HOUR)
    stage.run(TASK)
    runpod.tell(next(iter(runpod.jobs)), "COMPLETED")
    runpod.during = lambda: result(db, run)
    assert stage.run(TASK, NOON + DAY)["items"] == 0
    assert (statuses(db), asked(runpod)) == ({str(run): "requested"}, [str(run)])


def test_unanswered_verifications_without_time_are_left_to_a_continuation(
    stage: Stage, aws: Aws, db: psycopg.Connection, runpod: RunPodStandIn
) -> None:
    observe(aws)
    complete(db, 30 * HOUR)
    stage.run(TASK)
    runpod.tell(next(iter(runpod.jobs)), "FAILED")
    assert stage.run(TASK, NOON + DAY, seconds=10)["more"] is True
    assert [answer["items"] for answer in stage.deliver(NOON + DAY)] == [1]


def test_the_request_is_in_the_table_before_runpod_hears_of_it(
    stage: Stage, aws: Aws, db: psycopg.Connection, runpod: RunPodStandIn
) -> None:
    observe(aws)
    run = complete(db, 30 * HOUR)
    seen: list[dict[str, str]] = []
    runpod.during = lambda: seen.append(statuses(db))
    stage.run(TASK)
    assert seen == [{str(run): "unconfirmed"}]


def test_an_id_survives_a_database_that_goes_away_while_runpod_answers(
    stage: Stage, dsn: str, aws: Aws, db: psycopg.Connection, runpod: RunPodStandIn
) -> None:
    observe(aws)
    run = complete(db, 30 * HOUR)
    runpod.during = lambda: lose_session(dsn)
    with pytest.raises(psycopg.OperationalError):
        stage.run(TASK)
    assert statuses(db) == {str(run): "requested"}


def test_two_runs_at_once_ask_for_each_once(
    stage: Stage, aws: Aws, db: psycopg.Connection, runpod: RunPodStandIn
) -> None:
    observe(aws)
    runs = [complete(db, (25 + number) * HOUR, model="nowcast") for number in range(20)]
    answers = two_at_once(stage, TASK, NOON, NOON + 15 * HOUR)
    assert sorted(asked(runpod), key=str) == sorted(map(str, runs))
    assert [answer["status"] for answer in answers] == ["succeeded", "succeeded"]
    assert sum(answer["items"] for answer in answers) == 20


def test_a_run_without_time_leaves_the_rest_to_a_continuation(
    stage: Stage, aws: Aws, db: psycopg.Connection, runpod: RunPodStandIn
) -> None:
    observe(aws)
    run = complete(db, 30 * HOUR)
    canary(db, expecting(True))
    assert stage.run(TASK, seconds=10)["more"] is True  # only the margin
    assert mismatches(db) == []
    assert [answer["items"] for answer in stage.deliver()] == [1]
    assert (asked(runpod), len(mismatches(db))) == ([str(run)], 1)


def test_a_run_for_a_past_day_verifies_what_that_day_would_have(
    stage: Stage, aws: Aws, db: psycopg.Connection, runpod: RunPodStandIn
) -> None:
    observe(aws, NOON - 6 * DAY)
    then = complete(db, 30 * HOUR + 3 * DAY)
    complete(db, 30 * HOUR)
    stage.run(TASK, reference_time=(NOON - 3 * DAY).isoformat())
    assert asked(runpod) == [str(then)]
