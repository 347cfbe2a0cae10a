"""export_table writes one moment's rows as one whole object, several with a manifest, or none."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from signalbox.errors import JobRefused
from signalbox.job_types.tables import multipart_upload
from signalbox.testing.stage import Stage
from signalbox_laptop.stand_ins.faults import Fault
from tests.support.bucket import Bucket

ODD = ["plain", "", None, "a,b", 'say "x"', "two\nlines", "\\.", "\\N", "é🚂", " \t "]


@pytest.fixture(autouse=True)
def people(db: psycopg.Connection) -> None:
    db.execute(
        "CREATE TABLE people (id int, part text, name text, at timestamptz, detail jsonb, PRIMARY KEY (part, id))"
    )
    for number, name in enumerate(ODD, 4):  # so that some keys have a digit more than others
        db.execute(
            "INSERT INTO people VALUES (%s, %s, %s, '2026-03-10 12:00+01', '{\"a\": 1}')",
            (number, "ab"[number % 2], name),
        )


@pytest.fixture
def stage(transfers: Stage) -> Stage:
    return transfers


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use S3's smallest parts: 5 MiB."""
    monkeypatch.setattr(multipart_upload, "PART", 5 << 20)
    monkeypatch.setattr(
        multipart_upload.Upload.__init__, "__kwdefaults__", {"gzip": False, "part": 5 << 20, "tags": ""}
    )


def export(stage: Stage, **payload: Any) -> dict[str, Any]:
    return stage.finish(stage.submit("export_table", payload={"table": "public.people"} | payload))


def tags_of(bucket: Bucket, key: str) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in bucket.s3.get_object_tagging(Bucket=bucket.name, Key=key)["TagSet"]}


def fill(db: psycopg.Connection, rows: int, width: int = 1000) -> None:
    db.execute("TRUNCATE people")
    db.execute(
        "INSERT INTO people SELECT n, 'a', left(repeat(md5(n::text), 40), %s) FROM generate_series(1, %s) AS n",
        (width, rows),
    )


def test_the_rows_are_written_as_csv_and_the_result_says_what_was(stage: Stage, bucket: Bucket) -> None:
    job = export(stage, columns=["id", "name", "at"])
    key = f"exports/public.people-{job['id']}.csv"
    content = bucket.get(key)
    found = list(csv.reader(io.StringIO(content.decode(), newline="")))
    assert found[0] == ["id", "name", "at"]
    assert {row[1] for row in found[1:]} == {name or "" for name in ODD}
    assert {row[2] for row in found[1:]} == {"2026-03-10 11:00:00+00"}
    assert job["output_files"] == [f"s3://{bucket.name}/{key}"]
    assert job["result"] == {
        "bucket": bucket.name, "key": key, "rows": len(ODD), "bytes": len(content), "parts": 1,
        "sha256": hashlib.sha256(content).hexdigest(),
    }  # fmt: skip


@pytest.mark.parametrize("packed", [False, True])
def test_lines_of_json_hold_every_value_as_it_is(stage: Stage, bucket: Bucket, packed: bool) -> None:
    job = export(stage, format="jsonl", gzip=packed, key="out/people")
    content = bucket.get("out/people")
    lines = (gzip.decompress(content) if packed else content).decode().splitlines()
    found = sorted((json.loads(line) for line in lines), key=lambda row: row["id"])
    assert [row["name"] for row in found] == ODD
    assert (found[0]["at"], found[0]["detail"]) == ("2026-03-10T11:00:00+00:00", {"a": 1})
    assert (job["result"]["rows"], job["result"]["bytes"]) == (len(ODD), len(content))


@pytest.mark.parametrize("format_", ["csv", "jsonl"])
def test_what_was_exported_can_be_imported(stage: Stage, format_: str) -> None:
    columns = ["id", "part", "name", "at", "detail"]
    key = export(stage, format=format_, gzip=True)["result"]["key"]
    stage.db.execute("CREATE TABLE copies (LIKE people)")
    job = stage.finish(stage.submit("import_table", payload={
        "key": key, "table": "public.copies", "format": format_, "gzip": True, "columns": columns,
    }))  # fmt: skip
    assert job["status"] == "completed", job["error_details"]
    assert (
        stage.db.execute("TABLE copies EXCEPT TABLE people").fetchall()
        == stage.db.execute("TABLE people EXCEPT TABLE copies").fetchall()
        == []
    )


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"]


@pytest.mark.parametrize("size", [None, 2])
def test_a_spreadsheet_can_be_kept_from_reading_texts_as_formulas(
    stage: Stage, bucket: Bucket, size: int | None
) -> None:
    stage.db.execute("CREATE TABLE cells (n int PRIMARY KEY, said text, tag varchar(9), fixed char(4), at date)")
    for number, text in enumerate([*FORMULAS, "a=1", " =1", "", None]):
        stage.db.execute("INSERT INTO cells VALUES (%s, %s, %s, '=x', '2026-03-10')", (-number, text, text))
    job = export(stage, table="public.cells", escape_formulas=True, header=False, rows_per_file=size)
    files = [name.partition(f"{bucket.name}/")[2] for name in job["output_files"] if name.endswith(".csv")]
    found = [row for key in files for row in csv.reader(io.StringIO(bucket.get(key).decode(), newline=""))]
    assert job["result"]["rows"] == len(found) == 10
    written = [f"'{text}" for text in FORMULAS] + ["a=1", " =1", "", ""]
    assert {int(n): (said, tag) for n, said, tag, *_ in found} == {-n: (one, one) for n, one in enumerate(written)}
    assert {(fixed, at) for *_, fixed, at in found} == {("'=x  ", "2026-03-10")}, "numbers and dates stay what they are"


def test_null_and_an_empty_text_stay_apart_beside_escaped_formulas(stage: Stage, bucket: Bucket) -> None:
    stage.db.execute("CREATE TABLE cells (said text)")
    stage.db.execute("INSERT INTO cells VALUES (''), (NULL)")
    export(stage, table="public.cells", escape_formulas=True, key="out.csv")
    assert bucket.get("out.csv") == b'said\n""\n\n'


def test_by_default_texts_are_exported_as_they_are(stage: Stage, bucket: Bucket) -> None:
    stage.db.execute("CREATE TABLE cells (said text)")
    stage.db.execute("INSERT INTO cells VALUES ('=1+1')")
    export(stage, table="public.cells", key="out.csv")
    assert bucket.get("out.csv") == b"said\n=1+1\n"


def test_only_the_rows_that_are_asked_for(stage: Stage) -> None:
    assert export(stage, where={"part": "a", "id": 6})["result"]["rows"] == 1
    assert export(stage, where={"name": None})["result"]["rows"] == 1
    assert export(stage, where={"name": "' OR true --"})["result"]["rows"] == 0


def test_a_view_and_a_table_without_rows_are_exported_too(stage: Stage, bucket: Bucket) -> None:
    stage.db.execute("CREATE VIEW names AS SELECT name FROM people")
    assert export(stage, table="public.names")["result"]["rows"] == len(ODD)
    stage.db.execute("TRUNCATE people")
    job = export(stage, key="empty.csv")
    assert (job["result"]["rows"], bucket.get("empty.csv")) == (0, b"id,part,name,at,detail\n")
    export(stage, key="nothing.csv", header=False)
    assert bucket.get("nothing.csv") == b""


@pytest.mark.parametrize("files", [{}, {"rows_per_file": 4}])
def test_files_are_tagged_for_the_buckets_rule_and_say_until_when_they_are_kept(
    stage: Stage, bucket: Bucket, files: dict[str, Any]
) -> None:
    job = export(stage, keep_days=30, **files)
    keys = bucket.keys()
    assert [tags_of(bucket, key) for key in keys] == [{"signalbox-keep-days": "30"}] * len(job["output_files"])
    found = stage.operate("show_job", id=str(job["id"]))["files"]
    assert [one["key"] for one in found] == sorted(job["output_files"])
    left = datetime.fromisoformat(found[0]["kept_until"]) - datetime.now(UTC)
    assert timedelta(days=29) < left <= timedelta(days=30)


@pytest.mark.usefixtures("small_parts")
def test_what_is_larger_than_a_part_comes_in_parts_and_whole(stage: Stage, bucket: Bucket) -> None:
    fill(stage.db, 12_000)
    job = export(stage, columns=["id", "name"], key="out/large.csv", keep_days=7)
    content = bucket.get("out/large.csv")
    assert tags_of(bucket, "out/large.csv") == {"signalbox-keep-days": "7"}
    assert (job["result"]["parts"], job["result"]["rows"]) == (3, 12_000)
    assert hashlib.sha256(content).hexdigest() == job["result"]["sha256"]
    assert len(content.splitlines()) == 12_001
    assert bucket.s3.list_multipart_uploads(Bucket=bucket.name).get("Uploads", []) == []


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("at", ["partNumber=1", "partNumber=3", "POST /"])
def test_what_fails_halfway_leaves_nothing_behind_and_comes_again(stage: Stage, bucket: Bucket, at: str) -> None:
    fill(stage.db, 12_000)
    asked = {"table": "public.people", "columns": ["id", "name"], "key": "out/large.csv"}
    job_id = stage.submit("export_table", payload=asked)
    if at == "POST /":
        bucket.front.faults.add(Fault(matching="uploadId", times=None, status=503))
    else:
        bucket.front.faults.add(Fault(matching=at, times=None, status=503))
    assert stage.step(job_id)["status"] == "pending"
    assert bucket.keys() == []
    bucket.front.faults.replace([])
    job = stage.finish(job_id)
    assert (job["status"], bucket.keys()) == ("completed", ["out/large.csv"])
    left = bucket.s3.list_multipart_uploads(Bucket=bucket.name).get("Uploads", [])
    # Where S3 takes no call at all, there is nobody to abort it: the bucket's lifecycle rule does.
    assert len(left) == (1 if at == "POST /" else 0)


def test_one_file_is_one_snapshot(stage: Stage, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(stage.db, 20_000, width=500)
    write, other = multipart_upload.Upload.write, iter([True])

    def change_the_table(self: multipart_upload.Upload, content: bytes) -> None:
        if next(other, False):
            stage.db.execute("UPDATE people SET name = 'changed'")
            stage.db.execute("INSERT INTO people VALUES (99999, 'z', 'new')")
        write(self, content)

    monkeypatch.setattr(multipart_upload.Upload, "write", change_the_table)
    job = export(stage, columns=["name"], key="out.csv")
    assert job["result"]["rows"] == 20_000
    assert b"changed" not in bucket.get("out.csv")


def test_a_retry_overwrites_what_was_there(stage: Stage, bucket: Bucket) -> None:
    job_id = stage.submit("export_table", payload={"table": "public.people"})
    bucket.front.faults.add(Fault(matching="PUT", lost=True))
    assert stage.step(job_id)["status"] == "pending"
    [key] = bucket.keys()
    bucket.front.faults.replace([])
    assert stage.finish(job_id)["result"]["key"] == key
    assert bucket.keys() == [key]


@pytest.mark.parametrize("size", [1, 3, 5, 10, 11])
@pytest.mark.parametrize("crash", [False, True])
def test_files_hold_every_row_once_and_the_manifest_lists_them(
    stage: Stage, bucket: Bucket, size: int, crash: bool
) -> None:
    job_id = stage.submit(
        "export_table", payload={"table": "public.people", "rows_per_file": size, "columns": ["part", "id"]}
    )
    if crash:
        stage.step(job_id)
        bucket.front.faults.add(Fault(matching="PUT", lost=True, times=4))
        stage.step(job_id)
        bucket.front.faults.replace([])
    job = stage.finish(job_id)
    folder = f"exports/public.people-{job_id}"
    manifest = json.loads(bucket.get(f"{folder}/manifest.json"))
    found: list[str] = []
    for file in manifest["files"]:
        content = bucket.get(file["key"])
        lines = content.decode().splitlines()[1:]
        assert (file["rows"], file["sha256"]) == (len(lines), hashlib.sha256(content).hexdigest())
        found += lines
    assert found == [
        f"{part},{id_}" for part, id_ in stage.db.execute("SELECT part, id FROM people ORDER BY part, id").fetchall()
    ]
    assert len(manifest["files"]) == -(-len(ODD) // size)
    assert manifest["rows"] == job["result"]["rows"] == len(ODD)
    assert job["output_files"] == [f"s3://{bucket.name}/{key}" for key in bucket.keys()[1:] + bucket.keys()[:1]]


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"table": "people"}, "table"),
        ({"key": "x", "rows_per_file": 5}, "give a prefix"),
        ({"columns": []}, "columns"),
        ({"format": "jsonl", "escape_formulas": True}, "escape_formulas is for CSV"),
        ({"columns": ["id", "id"]}, "columns"),
        ({"where": {"id": [1]}}, "where"),
        ({"keep_days": 31}, "keep_days"),
        ({"keep_days": 30, "bucket": "another"}, "keep_days is for the stack's own bucket"),
        ({"query": "SELECT 1"}, "'query' is not known"),
    ],
)
def test_a_payload_that_makes_no_sense_is_refused_when_it_is_submitted(
    stage: Stage, payload: dict[str, Any], said: str
) -> None:
    with pytest.raises(JobRefused, match=said):
        stage.submit("export_table", payload={"table": "public.people"} | payload)


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"table": "signalbox.jobs"}, "SIGNALBOX_FILE_TRANSFERS"),
        ({"table": "public.nothing"}, "there is no table"),
        ({"columns": ["nme"]}, "did you mean 'name'"),
        ({"where": {"id; --": 1}}, "no column 'id; --'"),
        ({"bucket": "not-created-yet"}, "404"),
        (
            {"bucket": "audit-archive"},
            "bucket 'audit-archive' is not open to jobs in this stack: SIGNALBOX_FILE_TRANSFERS",
        ),
        ({"where": {"id": "x"}}, "invalid input syntax"),
    ],
)
def test_what_is_not_there_or_not_allowed_fails_for_good(stage: Stage, payload: dict[str, Any], said: str) -> None:
    job = export(stage, **payload)
    assert (job["status"], job["attempts"]) == ("failed", 1)
    assert said in job["error_details"]["message"]


def test_a_private_schema_is_not_exported(stage: Stage) -> None:
    stage.db.execute("INSERT INTO signalbox.private_schemas VALUES ('public', 'it has names')")
    assert "its schema is private, it has names" in export(stage)["error_details"]["message"]


def test_a_bucket_that_is_not_listed_is_never_written(stage: Stage, bucket: Bucket) -> None:
    archive = f"archive-{bucket.name}"
    bucket.s3.create_bucket(Bucket=archive)
    job = export(stage, bucket=archive, key="archive.csv")
    assert (job["status"], job["attempts"]) == ("failed", 1)
    assert "Contents" not in bucket.s3.list_objects_v2(Bucket=archive)


def test_a_listed_bucket_is_written(stage: Stage, bucket: Bucket) -> None:
    bucket.s3.create_bucket(Bucket=f"other-{bucket.name}")
    job = export(stage, bucket=f"other-{bucket.name}", key="out.csv")
    assert job["output_files"] == [f"s3://{f'other-{bucket.name}'}/out.csv"]


def test_files_of_so_many_rows_need_a_primary_key(stage: Stage) -> None:
    stage.db.execute("CREATE VIEW names AS SELECT name FROM people")
    assert "primary key" in export(stage, table="public.names", rows_per_file=5)["error_details"]["message"]


def test_a_refusal_by_s3_fails_the_job_for_good(stage: Stage, bucket: Bucket) -> None:
    bucket.front.faults.add(Fault(matching="PUT", status=403))
    job = export(stage)
    assert (job["status"], job["attempts"]) == ("failed", 1)
    assert "403" in job["error_details"]["message"]
