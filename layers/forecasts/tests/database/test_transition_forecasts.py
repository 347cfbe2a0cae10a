"""A run is marked `deleted` when nothing is left of its data, and no other run's data goes with it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from forecasts.tasks.transition_forecasts import SQL
from signalbox.aws.s3_folder import Folder
from signalbox.errors import FolderKept, FolderRefused
from signalbox.testing.rows import runs_of
from signalbox.testing.stage import NOON, Stage
from signalbox.testing.stand_in import Request
from signalbox_laptop.stand_ins.faults import Fault
from tests.support import forecast_rows as rows
from tests.support.at_once import two_at_once
from tests.support.aws import Aws
from tests.support.s3_front import S3Front

TASK = "transition_forecasts"
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
OLD = NOON - 100 * DAY


@pytest.fixture
def front(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Front]:
    with S3Front(aws.endpoint) as front:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", front.url)
        yield front


def complete(db: psycopg.Connection, prefix: str | None, age: timedelta = 100 * DAY, **columns: Any) -> UUID:
    return rows.forecast_run(db, NOON - age, **({"status": "complete", "storage_prefix": prefix} | columns))


def put(aws: Aws, *keys: str) -> None:
    for key in keys:
        aws.s3.put_object(Bucket=aws.forecast_bucket, Key=key, Body=b"data")


def keys(aws: Aws) -> list[str]:
    return [entry["Key"] for entry in aws.s3.list_objects_v2(Bucket=aws.forecast_bucket).get("Contents", [])]


def versions(aws: Aws) -> int:
    found = aws.s3.list_object_versions(Bucket=aws.forecast_bucket)
    return len(found.get("Versions", [])) + len(found.get("DeleteMarkers", []))


def status(db: psycopg.Connection, run: UUID) -> str:
    row = db.execute("SELECT status FROM forecasts.forecast_runs WHERE id = %s", (run,)).fetchone()
    assert row is not None
    return str(row[0])


def reasons(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.reason for record in caplog.records if record.message == "forecast.kept"]  # type: ignore[attr-defined]


def test_the_data_of_an_old_run_goes_and_its_status_says_so(stage: Stage, aws: Aws, db: psycopg.Connection) -> None:
    old, new = complete(db, "runs/1/"), complete(db, "runs/2/", DAY)
    put(aws, "runs/1/a", "runs/1/b/c", "runs/1/", "runs/2/a")
    answer = stage.run(TASK)
    assert (answer["items"], answer["detail"]) == (1, {"deleted": 1, "kept": 0})
    assert keys(aws) == ["runs/2/a"]
    assert (status(db, old), status(db, new)) == ("deleted", "complete")


@pytest.mark.parametrize("columns", [{"status": "complete"}, {"status": "failed", "failure_reason": "Timeout"}])
@pytest.mark.parametrize(("model", "days"), [("nowcast", 7), ("medium_range", 90)])
def test_each_model_has_its_retention_to_the_second(
    stage: Stage, aws: Aws, db: psycopg.Connection, model: str, days: int, columns: dict[str, str]
) -> None:
    ages = {"older": days * DAY + SECOND, "as old": days * DAY, "younger": days * DAY - SECOND}
    runs = {name: complete(db, f"{name}/", age, model=model, **columns) for name, age in ages.items()}
    put(aws, *(f"{name}/data" for name in ages))
    assert stage.run(TASK)["items"] == 1
    assert [status(db, run) for run in runs.values()] == ["deleted", columns["status"], columns["status"]]
    assert keys(aws) == ["as old/data", "younger/data"]


def test_with_nothing_old_s3_is_not_even_asked(stage: Stage, db: psycopg.Connection, front: S3Front) -> None:
    complete(db, "runs/1/", DAY)
    assert stage.run(TASK)["items"] == 0
    assert not front.requests


@pytest.mark.parametrize("prefix", [None, ""])
def test_a_failed_run_that_never_had_a_folder_is_left_alone(
    stage: Stage, aws: Aws, db: psycopg.Connection, prefix: str | None
) -> None:
    run = complete(db, prefix, status="failed", failure_reason="Timeout")
    put(aws, "runs/1/a")
    assert stage.run(TASK)["detail"] == {"deleted": 0, "kept": 0}
    assert (status(db, run), keys(aws)) == ("failed", ["runs/1/a"])


@pytest.mark.parametrize("state", ["running", "deleted"])
def test_no_other_run_loses_its_data(stage: Stage, aws: Aws, db: psycopg.Connection, state: str) -> None:
    run = complete(db, "runs/1/", status=state)
    put(aws, "runs/1/a")
    assert stage.run(TASK)["items"] == 0
    assert (status(db, run), keys(aws)) == (state, ["runs/1/a"])


def test_more_than_a_thousand_objects_go_a_thousand_at_a_time(
    stage: Stage, aws: Aws, db: psycopg.Connection, front: S3Front
) -> None:
    run = complete(db, "runs/1/")
    put(aws, *(f"runs/1/{number:04}" for number in range(1001)))
    assert stage.run(TASK)["items"] == 1
    assert (status(db, run), keys(aws)) == ("deleted", [])
    assert front.count("POST") == 2


def test_of_a_versioned_bucket_every_version_goes_and_no_marker_stays(
    stage: Stage, aws: Aws, db: psycopg.Connection
) -> None:
    run = complete(db, "runs/1/")
    put(aws, "runs/1/before")
    aws.s3.put_bucket_versioning(Bucket=aws.forecast_bucket, VersioningConfiguration={"Status": "Enabled"})
    put(aws, "runs/1/a", "runs/1/a", "runs/1/before", "runs/1/b")
    aws.s3.delete_object(Bucket=aws.forecast_bucket, Key="runs/1/b")
    assert versions(aws) == 6
    assert stage.run(TASK)["items"] == 1
    assert (status(db, run), versions(aws)) == ("deleted", 0)


def test_keys_of_any_characters_go(stage: Stage, aws: Aws, db: psycopg.Connection) -> None:
    run = complete(db, "runs/ä +%&/")
    put(aws, "runs/ä +%&/ü <x>.nc", "runs/ä +%&/a\tb")
    stage.run(TASK)
    assert (status(db, run), keys(aws)) == ("deleted", [])


def test_a_run_that_has_no_objects_is_marked(stage: Stage, aws: Aws, db: psycopg.Connection) -> None:
    """A crash between the last object and the mark leaves such a run."""
    run = complete(db, "runs/1/")
    assert stage.run(TASK)["items"] == 1
    assert status(db, run) == "deleted"


@pytest.mark.parametrize("prefix", [None, "", "/", "//", "  ", " /"])
def test_a_run_without_a_folder_deletes_nothing_and_is_reported(
    stage: Stage, aws: Aws, db: psycopg.Connection, caplog: pytest.LogCaptureFixture, prefix: str | None
) -> None:
    without, other = complete(db, prefix), complete(db, "runs/2/", 99 * DAY)
    put(aws, "runs/2/a", "elsewhere")
    answer = stage.run(TASK)
    assert (answer["items"], answer["detail"]) == (1, {"deleted": 1, "kept": 1})
    assert answer["reason"] == "1 runs keep their data; the log says why, for each"
    assert (status(db, without), status(db, other), keys(aws)) == ("complete", "deleted", ["elsewhere"])
    assert "is not a folder" in reasons(caplog)[0]


@pytest.mark.parametrize("prefix", ["runs/1", "runs/1/", "runs/1//"])
def test_a_folder_ends_with_its_name(stage: Stage, aws: Aws, db: psycopg.Connection, prefix: str) -> None:
    run, neighbours = complete(db, prefix), [complete(db, "runs/10/", DAY), complete(db, "runs/1-b/", 2 * DAY)]
    put(aws, "runs/1/a", "runs/10/a", "runs/1-b/a", "runs/1.txt")
    assert stage.run(TASK)["items"] == 1
    assert keys(aws) == ["runs/1-b/a", "runs/1.txt", "runs/10/a"]
    assert [status(db, one) for one in [run, *neighbours]] == ["deleted", "complete", "complete"]


@pytest.mark.parametrize("others", ["runs/1", "runs/1/", "runs/1/part/", "runs/1//"])
def test_folder_with_another_runs_data_is_left_alone_and_reported(
    stage: Stage, aws: Aws, db: psycopg.Connection, caplog: pytest.LogCaptureFixture, others: str
) -> None:
    run, other = complete(db, "runs/1/"), complete(db, others, DAY)
    put(aws, "runs/1/a")
    assert stage.run(TASK)["items"] == 0
    assert (status(db, run), keys(aws)) == ("complete", ["runs/1/a"])
    assert f"holds data of run {other}, too" in reasons(caplog)[0]


@pytest.mark.parametrize("state", ["running", "failed"])
def test_the_data_of_a_run_that_is_not_complete_counts_too(
    stage: Stage, aws: Aws, db: psycopg.Connection, state: str
) -> None:
    run = complete(db, "runs/1/")
    complete(db, "runs/1/", DAY, status=state, failure_reason="Timeout")
    assert stage.run(TASK)["items"] == 0
    assert status(db, run) == "complete"


def test_a_folder_whose_other_run_is_deleted_is_its_own(stage: Stage, aws: Aws, db: psycopg.Connection) -> None:
    complete(db, "runs/1/", 101 * DAY, status="deleted")
    run = complete(db, "runs/1/")
    assert stage.run(TASK)["items"] == 1
    assert status(db, run) == "deleted"


def test_run_in_anothers_folder_is_deleted_and_the_other_is_not(stage: Stage, aws: Aws, db: psycopg.Connection) -> None:
    outer, inner = complete(db, "runs"), complete(db, "runs/1", 99 * DAY)
    put(aws, "runs/a", "runs/1/a")
    stage.run(TASK)
    assert (status(db, outer), status(db, inner), keys(aws)) == ("complete", "deleted", ["runs/a"])


def test_object_that_s3_keeps_blocks_only_its_own_run(
    stage: Stage, aws: Aws, db: psycopg.Connection, front: S3Front, caplog: pytest.LogCaptureFixture
) -> None:
    held, other = complete(db, "runs/1/"), complete(db, "runs/2/", 99 * DAY)
    put(aws, "runs/1/held", "runs/1/free", "runs/2/a")
    front.locked = "runs/1/held"
    assert stage.run(TASK)["detail"] == {"deleted": 1, "kept": 1}
    assert (status(db, held), status(db, other), keys(aws)) == ("complete", "deleted", ["runs/1/held"])
    assert "'runs/1/held', for AccessDenied" in reasons(caplog)[0]


def test_folder_that_s3_refuses_to_list_or_empty_blocks_only_its_run(
    stage: Stage, aws: Aws, db: psycopg.Connection, front: S3Front, caplog: pytest.LogCaptureFixture
) -> None:
    runs = [complete(db, f"runs/{number}/", (100 - number) * DAY) for number in range(4)]
    put(aws, *(f"runs/{number}/a" for number in range(4)))
    front.faults.add(Fault(matching="prefix=runs%2F0%2F", status=403))
    front.faults.add(Fault(matching="<Key>runs/2/a", status=403))
    assert stage.run(TASK)["detail"] == {"deleted": 2, "kept": 2}
    assert [status(db, run) for run in runs] == ["complete", "deleted", "complete", "deleted"]
    assert keys(aws) == ["runs/0/a", "runs/2/a"]
    assert ["can't be listed" in reason for reason in reasons(caplog)] == [True, False]
    front.faults.replace([])
    assert stage.run(TASK, NOON + DAY)["items"] == 2


def test_s3_outage_fails_the_run_before_it_asks_for_everything(
    stage: Stage, aws: Aws, db: psycopg.Connection, front: S3Front
) -> None:
    runs = [complete(db, f"runs/{number}/", (100 + number) * DAY) for number in range(8)]
    front.faults.add(Fault(status=403))
    with pytest.raises(FolderKept, match="5 runs in a row"):
        stage.run(TASK)
    assert front.count("GET") == 5
    assert {status(db, run) for run in runs} == {"complete"}
    front.faults.replace([])
    assert stage.run(TASK)["items"] == 8
    assert [row["status"] for row in runs_of(db, TASK)] == ["failed", "succeeded"]


def test_s3_failing_for_the_only_run_fails_ours(stage: Stage, aws: Aws, db: psycopg.Connection, front: S3Front) -> None:
    complete(db, "runs/1/")
    front.faults.add(Fault(status=403))
    with pytest.raises(FolderKept, match="none of 1 runs"):
        stage.run(TASK)


def test_a_crash_between_the_objects_and_the_mark_loses_nothing(
    stage: Stage, aws: Aws, db: psycopg.Connection, front: S3Front
) -> None:
    """S3 has deleted, and its answer is lost each time; the next run finds nothing left, and marks the run."""
    run = complete(db, "runs/1/")
    put(aws, "runs/1/a")
    front.faults.add(Fault(matching="POST", lost=True))
    with pytest.raises(FolderKept):
        stage.run(TASK)
    assert (status(db, run), keys(aws)) == ("complete", [])
    front.faults.replace([])
    assert stage.run(TASK)["items"] == 1
    assert status(db, run) == "deleted"


def test_what_is_written_into_a_folder_while_it_is_emptied_goes_too(
    stage: Stage, aws: Aws, db: psycopg.Connection, front: S3Front
) -> None:
    run = complete(db, "runs/1/")
    put(aws, "runs/1/a")

    def write(asked: Request) -> None:
        if asked.method == "POST" and front.count("POST") == 1:
            put(aws, "runs/1/late")

    front.passed = write
    assert stage.run(TASK)["items"] == 1
    assert (status(db, run), keys(aws), front.count("POST")) == ("deleted", [], 2)


def test_a_run_without_time_leaves_the_rest_to_a_continuation(stage: Stage, aws: Aws, db: psycopg.Connection) -> None:
    complete(db, "runs/1/")
    assert stage.run(TASK, seconds=10)["more"] is True  # only the margin
    assert [answer["items"] for answer in stage.deliver()] == [1]


def test_two_runs_at_once_count_each_run_once(stage: Stage, aws: Aws, db: psycopg.Connection) -> None:
    runs = [complete(db, f"runs/{number}/", (200 + number) * DAY) for number in range(20)]
    put(aws, *(f"runs/{number}/{part}" for number in range(20) for part in range(3)))
    answers = two_at_once(stage, TASK, NOON - DAY, NOON)
    assert [answer["status"] for answer in answers] == ["succeeded"] * 2
    assert sum(answer["items"] for answer in answers) == 20
    assert ({status(db, run) for run in runs}, keys(aws)) == ({"deleted"}, [])


def test_a_run_for_a_past_day_deletes_what_that_day_would_have(stage: Stage, aws: Aws, db: psycopg.Connection) -> None:
    then, since = complete(db, "runs/1/", 93 * DAY), complete(db, "runs/2/", 91 * DAY)
    stage.run(TASK, reference_time=(NOON - 2 * DAY).isoformat())
    assert (status(db, then), status(db, since)) == ("deleted", "complete")


def test_more_runs_than_a_page_go_past_those_that_stay(stage: Stage, aws: Aws, db: psycopg.Connection) -> None:
    for number in range(250):
        complete(db, f"runs/{number}/" if number % 2 else None, (100 + number) * DAY)
    assert stage.run(TASK)["detail"] == {"deleted": 125, "kept": 125}


def test_the_search_for_old_runs_reads_one_range_of_an_index(db: psycopg.Connection) -> None:
    db.execute(
        "INSERT INTO forecasts.forecast_runs (model, run_timestamp, status) "
        "SELECT 'nowcast', %s::timestamptz + n * interval '1 min', 'deleted' FROM generate_series(1, 5000) AS n",
        (OLD,),
    )
    db.execute("ANALYZE forecasts.forecast_runs")
    values = {"model": "nowcast", "before": NOON, "after": "-infinity", "page": 100}
    plan = db.execute(f"EXPLAIN {SQL['list_due']}".encode(), values).fetchall()
    assert "Index Scan using forecast_runs_stored" in str(plan)


def test_the_search_for_another_runs_data_reads_one_range_of_an_index(db: psycopg.Connection) -> None:
    db.execute(
        "INSERT INTO forecasts.forecast_runs (model, run_timestamp, status, storage_prefix) "
        "SELECT 'nowcast', %s::timestamptz + n * interval '1 min', 'complete', 'runs/' || n || '/' "
        "FROM generate_series(1, 5000) AS n",
        (OLD,),
    )
    db.execute("ANALYZE forecasts.forecast_runs")
    values = {"id": UUID(int=0), "folder": "runs/1"}
    plan = db.execute(f"EXPLAIN {SQL['find_sharer']}".encode(), values).fetchall()
    assert "forecast_runs_by_prefix" in str(plan)
    assert "Seq Scan" not in str(plan)


@pytest.mark.parametrize(("prefix", "name"), [("a", "a"), ("a/", "a"), ("/a//", "/a"), ("a/b c/", "a/b c")])
def test_a_folder_has_a_name_and_one_slash(prefix: str, name: str) -> None:
    assert Folder.of(prefix) == Folder(name)
    assert Folder(name).prefix == f"{name}/"


@pytest.mark.parametrize("prefix", [None, "", "/", " ", "///"])
def test_a_folder_without_a_name_is_refused(prefix: str | None) -> None:
    with pytest.raises(FolderRefused):
        Folder.of(prefix)
