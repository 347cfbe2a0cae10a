"""import_table brings every row once, whatever is cut, crashes, changes or is wrong."""

from __future__ import annotations

import csv
import gzip
import io
import json
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signalbox.errors import JobRefused, SettingsRefused
from signalbox.job_types.tables import import_table, staging
from signalbox.job_types.tables.split_records import LONGEST
from signalbox.jobs.end_record import EndRecord
from signalbox.jobs.verdict import Verdict
from signalbox.postgres.connection import OwnConnection
from signalbox.runtime.settings import Settings
from signalbox.testing.stage import Stage
from signalbox.worker.lease import finish
from signalbox_laptop.stand_ins.faults import Fault
from tests.support.bucket import Bucket
from tests.support.dead_letters import letter_of, redrive
from tests.support.lost_session import lose_session


@pytest.fixture(autouse=True)
def people(db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE people (id int PRIMARY KEY, name text, age int CHECK (age >= 0), note varchar(10))")


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a small file many chunks."""
    for name in LEAST:
        monkeypatch.setattr(import_table, name, 1)


@pytest.fixture
def usual_chunks(small_chunks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, least in LEAST.items():
        monkeypatch.setattr(import_table, name, least)


LEAST = {name: getattr(import_table, name) for name in ("LEAST_CHUNK", "LEAST_PACKED_CHUNK")}
HUNDRED = "id,name,age,note\n" + "".join(f"{n},name {n},{n},x\n" for n in range(100))


@pytest.fixture
def stage(transfers: Stage) -> Stage:
    return transfers


def bring(stage: Stage, bucket: Bucket, content: bytes | str, **payload: Any) -> dict[str, Any]:
    """Import it; return the job's row."""
    asked = {"key": bucket.put(content), "table": "public.people"} | payload
    return stage.finish(stage.submit("import_table", payload=asked))


def read_rows(stage: Stage, statement: str = "SELECT * FROM people ORDER BY 1") -> list[Any]:
    return stage.db.execute(statement.encode()).fetchall()


# ---- the ordinary way


def test_a_csv_file_becomes_rows(stage: Stage, bucket: Bucket) -> None:
    job = bring(stage, bucket, 'id,name,age,note\n1,Ada,36,"a ""b"",\nc"\n2,Bö 🚂,,""\n')
    assert (job["status"], job["progress_percent"]) == ("completed", 100), job["error_details"]
    assert read_rows(stage) == [(1, "Ada", 36, 'a "b",\nc'), (2, "Bö 🚂", None, "")]
    result = job["result"]
    assert (result["records"], result["rows"], result["bad"], result["bad_rows"]) == (2, 2, 0, [])
    assert (job["subject_id"], job["correlation_id"]) == ("public.people", result["source"].partition("//")[2][18:])


def test_lines_of_json_become_rows_with_their_own_types(stage: Stage, bucket: Bucket, db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE things (id int, price numeric, tags text[], detail jsonb, at timestamptz, said text)")
    lines = [
        {
            "id": 1,
            "price": "1.10",
            "tags": ["a", "b,c"],
            "detail": {"x": [1]},
            "at": "2026-03-10T12:00Z",
            "t": "\\.\t☃",
        },
        {"id": 2, "unknown": 7, "t": None},
    ]
    content = "".join(json.dumps(line) + "\n" for line in lines).replace('"1.10"', "1.10")
    columns = {name: name for name in ("id", "price", "tags", "detail", "at")} | {"said": "t"}
    job = bring(stage, bucket, content, table="public.things", format="jsonl", columns=columns)
    assert job["status"] == "completed", job["error_details"]
    found = read_rows(stage, "SELECT id, price::text, tags, detail, at::text, said FROM things ORDER BY id")
    assert found == [
        (1, "1.10", ["a", "b,c"], {"x": [1]}, "2026-03-10 12:00:00+00", "\\.\t☃"),
        (2, None, None, None, None, None),
    ]


def test_columns_may_be_fewer_in_another_order_and_of_other_names(stage: Stage, bucket: Bucket) -> None:
    bring(stage, bucket, "Full name;x;No.\nAda;9;1\n", columns={"id": "No.", "name": "Full name"}, delimiter=";")
    assert read_rows(stage) == [(1, "Ada", None, None)]


def test_without_a_header_the_columns_come_in_their_order(stage: Stage, bucket: Bucket) -> None:
    bring(
        stage,
        bucket,
        "Ada\t1\nBo\t\\N\nCy\t3",
        header=False,
        columns=["name", "id"],
        delimiter="\t",
        null="\\N",
        max_bad_rows=1,
    )
    assert read_rows(stage, "SELECT id, name FROM people ORDER BY id") == [(1, "Ada"), (3, "Cy")]


@pytest.mark.parametrize("content", ["", "id,name\n", "\n\n", "\ufeffid,name\r\n"])
def test_a_file_without_rows_brings_none(stage: Stage, bucket: Bucket, content: str) -> None:
    job = bring(stage, bucket, content)
    assert (job["status"], job["result"]["rows"]) == ("completed", 0)
    assert read_rows(stage) == []


def test_a_byte_order_mark_windows_line_ends_and_blank_lines_do_no_harm(stage: Stage, bucket: Bucket) -> None:
    bring(stage, bucket, '\ufeff"id",name\r\n\r\n1,Ada\r\n2,"B\r\no"\r\n\r\n'.encode())
    assert read_rows(stage, "SELECT id, name FROM people ORDER BY id") == [(1, "Ada"), (2, "B\r\no")]


def test_what_copy_takes_for_its_own_end_is_data(stage: Stage, bucket: Bucket) -> None:
    stage.db.execute("CREATE TABLE words (word text)")
    bring(stage, bucket, '\\.\n"a\n\\.\nb"\nlast\n', header=False, columns=["word"], table="public.words")
    assert sorted(read_rows(stage, "SELECT word FROM words")) == [("\\.",), ("a\n\\.\nb",), ("last",)]


# ---- chunks


def test_chunks_make_the_whole_and_each_reports_its_progress(stage: Stage, bucket: Bucket) -> None:
    job_id = stage.submit(
        "import_table", payload={"key": bucket.put(HUNDRED), "table": "public.people", "chunk_bytes": 500}
    )
    first = stage.step(job_id)
    assert first["status"] == "pending"
    assert 0 < first["progress_percent"] < 100
    assert len(read_rows(stage)) == first["cursor"]["rows"] < 100
    job = stage.finish(job_id)
    assert (job["status"], job["result"]["rows"], len(read_rows(stage))) == ("completed", 100, 100)
    kinds = [attempt["status"] for attempt in stage.attempts(job_id)]
    assert kinds == ["continued"] * (len(kinds) - 1) + ["completed"]
    assert len(kinds) > 3


def test_a_chunk_that_crashes_at_its_end_leaves_nothing_and_comes_again(
    stage: Stage, bucket: Bucket, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.db.execute("CREATE TABLE log (id int)")
    stage.db.execute("CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ "
                     "BEGIN INSERT INTO log VALUES (NEW.id); RETURN NEW; END $$")  # fmt: skip
    stage.db.execute("CREATE TRIGGER note AFTER INSERT ON people FOR EACH ROW EXECUTE FUNCTION note()")
    job_id = stage.submit(
        "import_table", payload={"key": bucket.put(HUNDRED), "table": "public.people", "chunk_bytes": 500}
    )
    drop, crashes = staging.Staging.drop, iter([False, True, False, True])

    def crash_after_the_insert(self: staging.Staging) -> None:
        drop(self)
        if next(crashes, False):
            lose_session(dsn)

    monkeypatch.setattr(staging.Staging, "drop", crash_after_the_insert)
    job = stage.finish(job_id)
    assert (job["status"], job["result"]["rows"]) == ("completed", 100)
    assert read_rows(stage, "SELECT id FROM log ORDER BY id") == [(n,) for n in range(100)]
    assert [attempt["status"] for attempt in stage.attempts(job_id)].count("failed") == 2
    assert read_rows(stage, "SELECT relname FROM pg_class WHERE relname LIKE 'import%'") == []


def test_a_worker_that_was_rescued_from_brings_nothing(
    stage: Stage, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker that lost its lease is rolled back."""
    job_id = stage.submit("import_table", payload={"key": bucket.put(HUNDRED), "table": "public.people"})
    drop = staging.Staging.drop

    def lose_the_lease(self: staging.Staging) -> None:
        drop(self)
        monkeypatch.setattr(staging.Staging, "drop", drop)
        token = str(stage.job(job_id)["lease_token"])
        finish(stage.db, [EndRecord(job_id, token, Verdict("pending", "lost"))])

    monkeypatch.setattr(staging.Staging, "drop", lose_the_lease)
    assert stage.step(job_id)["status"] == "pending"
    assert read_rows(stage) == []
    assert stage.finish(job_id)["result"]["rows"] == 100
    assert len(read_rows(stage)) == 100


def test_an_object_that_changes_between_chunks_fails_the_job_for_good(stage: Stage, bucket: Bucket) -> None:
    key = bucket.put(HUNDRED)
    job_id = stage.submit("import_table", payload={"key": key, "table": "public.people", "chunk_bytes": 500})
    kept = stage.step(job_id)["cursor"]["rows"]
    bucket.put(HUNDRED.replace("name", "nome"), key)
    job = stage.step(job_id)
    assert job["status"] == "failed"
    assert "changed" in job["error_details"]["message"]
    assert len(read_rows(stage)) == kept
    assert stage.dead_letter(job_id)["failure_reason"] == "permanent"


FIELD = st.text(alphabet=st.sampled_from('ab,"\n\r;é🚂\\. '), max_size=6)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(FIELD, FIELD), max_size=12),
    chunk=st.integers(1, 60),
    end=st.sampled_from(["\n", "\r\n"]),
    packed=st.booleans(),
)
def test_any_csv_cut_anywhere_gives_the_same_rows(
    stage: Stage, bucket: Bucket, rows: list[tuple[str, str]], chunk: int, end: str, packed: bool
) -> None:
    stage.db.execute("DROP TABLE IF EXISTS pairs")
    stage.db.execute("CREATE TABLE pairs (n int, a text, b text)")
    text = io.StringIO()
    csv.writer(text, lineterminator=end, quoting=csv.QUOTE_NONNUMERIC).writerows(
        [(n, *row) for n, row in enumerate(rows)]
    )
    content = text.getvalue().encode()
    job = bring(stage, bucket,
        gzip.compress(content) if packed else content,
        table="public.pairs", header=False, columns=["n", "a", "b"], chunk_bytes=chunk, gzip=packed,
    )  # fmt: skip
    assert job["status"] == "completed", job["error_details"]
    assert read_rows(stage, "SELECT a, b FROM pairs ORDER BY n") == rows


# ---- packed files


def test_a_packed_file_goes_on_where_it_was_and_may_hold_several_streams(stage: Stage, bucket: Bucket) -> None:
    half = len(HUNDRED) // 2
    content = gzip.compress(HUNDRED[:half].encode()) + gzip.compress(HUNDRED[half:].encode()) + bytes(512)
    job = bring(stage, bucket, content, gzip=True, chunk_bytes=500)
    assert (job["status"], len(read_rows(stage))) == ("completed", 100)
    assert job["executions"] > 3


def test_a_small_packed_file_may_unfold_to_much(stage: Stage, bucket: Bucket) -> None:
    lines = "".join(f'{n},"{" " * 9000}"\n' for n in range(3000))
    job = bring(stage, bucket, gzip.compress(b"id,name\n" + lines.encode()), gzip=True)
    assert job["status"] == "completed", job["error_details"]
    assert read_rows(stage, "SELECT count(*), min(length(name)) FROM people") == [(3000, 9000)]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [(lambda c: c[:-20], "cut off"), (lambda c: c[:30] + b"xx" + c[32:], "gzip"), (lambda c: b"id,name\n", "gzip")],
)
def test_a_spoilt_packed_file_fails_for_good_and_keeps_nothing_of_its_chunk(
    stage: Stage, bucket: Bucket, spoil: Any, said: str
) -> None:
    job = bring(stage, bucket, spoil(gzip.compress(HUNDRED.encode())), gzip=True)
    assert job["status"] == "failed"
    assert said in job["error_details"]["message"]
    assert read_rows(stage) == []


# ---- rows that are there already


def test_by_default_a_row_that_is_there_is_a_bad_row(stage: Stage, bucket: Bucket) -> None:
    stage.db.execute("INSERT INTO people VALUES (2, 'old')")
    job = bring(stage, bucket, "id,name\n1,a\n2,b\n3,c\n")
    assert job["status"] == "failed"
    assert "line 3 met UniqueViolation (23505) of 'people_pkey'" in job["error_details"]["message"]
    assert read_rows(stage, "SELECT id, name FROM people") == [(2, "old")]


def test_rows_that_are_there_may_be_skipped(stage: Stage, bucket: Bucket) -> None:
    stage.db.execute("INSERT INTO people VALUES (2, 'old')")
    result = bring(stage, bucket, "id,name\n1,a\n2,b\n3,c\n3,d\n", on_conflict="skip")["result"]
    assert read_rows(stage, "SELECT id, name FROM people ORDER BY id") == [(1, "a"), (2, "old"), (3, "c")]
    assert (result["records"], result["rows"]) == (4, 2)


@pytest.mark.parametrize("chunk", [1, 9, 1000])
def test_rows_that_are_there_may_be_updated_and_the_last_one_wins(stage: Stage, bucket: Bucket, chunk: int) -> None:
    stage.db.execute("INSERT INTO people VALUES (2, 'old', 7)")
    bring(stage, bucket, "id,name\n1,a\n2,b\n2,c\n01,z\n", on_conflict="update", keys=["id"], chunk_bytes=chunk)
    assert read_rows(stage, "SELECT id, name, age FROM people ORDER BY id") == [(1, "z", None), (2, "c", 7)]


def test_keys_without_a_unique_index_are_named(stage: Stage, bucket: Bucket) -> None:
    job = bring(stage, bucket, "id,name\n1,a\n", on_conflict="update", keys=["name"])
    assert job["status"] == "failed"
    assert "no unique index over (name)" in job["error_details"]["message"]


# ---- bad rows

GOOD = b"1,a,1,x"
BAD = {
    "value": (b"secret,a,1,x", "met InvalidTextRepresentation (22P02) of 'id'"),
    "too large": (b"99999999999,a,1,x", "met NumericValueOutOfRange (22003) of 'id'"),
    "too long a text": (b"7,a,1,secret and more", "met StringDataRightTruncation (22001)"),
    "check": (b"7,a,-1,x", "met CheckViolation (23514) of 'people_age_check'"),
    "null": (b",a,1,x", "met NotNullViolation (23502) of 'id'"),
    "nul": (b"7,a\0b,1,x", "holds a NUL character"),
    "encoding": (b"7,\xff,1,x", "is not UTF-8"),
    "half a surrogate pair": (b"7,\xed\xa0\x80,1,x", "is not UTF-8"),
    "few fields": (b"7,a", "has 2 fields where 4 were expected"),
    "many fields": (b'7,"a,b",1,x,', "has 5 fields where 4 were expected"),
    "carriage return": (b"7,a\rb,1,x", "holds a carriage return"),
    "too long a line": (b"7," + b"a" * LONGEST + b",1,x", f"is longer than {LONGEST} bytes"),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("place", [0, 3, 6])
def test_bad_row_is_reported_and_left_out(stage: Stage, bucket: Bucket, kind: str, place: int) -> None:
    bad, fault = BAD[kind]
    lines = [b"%d,a,1,x" % n for n in range(10, 16)]
    lines.insert(place, bad)
    job = bring(stage, bucket, b"id,name,age,note\n" + b"\n".join(lines), max_bad_rows=1)
    assert job["status"] == "completed", job["error_details"]
    assert [row[0] for row in read_rows(stage)] == list(range(10, 16))
    [row] = job["result"]["bad_rows"]
    assert row["line"] == place + 2
    assert row["fault"].startswith(fault)
    assert "secret" not in json.dumps(job["result"])


@pytest.mark.parametrize("kind", BAD)
def test_one_bad_row_too_many_fails_permanently_and_undoes_the_chunk(stage: Stage, bucket: Bucket, kind: str) -> None:
    bad, fault = BAD[kind]
    job = bring(stage, bucket, b"id,name,age,note\n1,a,1,x\n" + bad + b"\n2,a,1,x\n")
    assert (job["status"], read_rows(stage)) == ("failed", [])
    assert f"line 3 {fault}" in job["error_details"]["message"]
    assert "secret" not in job["error_details"]["message"]
    assert stage.dead_letter(job["id"])["failure_reason"] == "permanent"


@pytest.mark.parametrize("chunk", [1, 40, 100_000])
def test_bad_rows_count_across_chunks_and_exactly(stage: Stage, bucket: Bucket, chunk: int) -> None:
    lines = "".join(f"{n if n % 7 else 'x'},a\n" for n in range(1, 71))
    for most, status, rows in ((10, "completed", 60), (9, "failed", None)):
        stage.db.execute("TRUNCATE people")
        job = bring(stage, bucket, "id,name\n" + lines, max_bad_rows=most, chunk_bytes=chunk)
        assert job["status"] == status
        if rows is not None:
            assert (len(read_rows(stage)), job["result"]["bad"]) == (rows, 10)
            assert [row["line"] for row in job["result"]["bad_rows"]] == [n + 1 for n in range(7, 71, 7)]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("[1]", "met InvalidParameterValue"),
        ("7", "met InvalidParameterValue"),
        ('{"id": 7', "met InvalidTextRepresentation"),
        ('{"id": NaN}', "met InvalidTextRepresentation"),
        ('{"id": 7, "name": "a\\u0000b"}', "met UntranslatableCharacter"),
        ('{"id": 7, "name": "\\ud800"}', "met InvalidTextRepresentation"),
        ('{"id": "secret"}', "met InvalidTextRepresentation (22P02) of 'id'"),
        ('{"id": 7, "name": "a\x01"}', "holds a control character"),
        ("[" * 100_000, "met "),
    ],
)
def test_bad_json_line_is_reported_and_left_out(stage: Stage, bucket: Bucket, line: str, fault: str) -> None:
    content = f'{{"id": 1}}\n{line}\n{{"id": 2}}\n'
    job = bring(stage, bucket, content, format="jsonl", columns=["id", "name"], max_bad_rows=1)
    assert job["status"] == "completed", job["error_details"]
    assert [row[0] for row in read_rows(stage)] == [1, 2]
    [row] = job["result"]["bad_rows"]
    assert row["line"] == 2
    assert row["fault"].startswith(fault)
    assert "secret" not in row["fault"]


@pytest.mark.parametrize("kind", BAD)
def test_a_server_without_a_check_of_values_finds_the_same_bad_rows(
    stage: Stage, bucket: Bucket, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "CHECKS_VALUES_SINCE", 10**9)
    bad, fault = BAD[kind]
    job = bring(stage, bucket, b"id,name,age,note\n1,a,1,x\n" + bad + b"\n2,a,1,x\n", max_bad_rows=1)
    assert [row[0] for row in read_rows(stage)] == [1, 2]
    [row] = job["result"]["bad_rows"]
    assert (row["line"], row["fault"].startswith(fault)) == (3, True)


@pytest.mark.parametrize("since", [staging.CHECKS_VALUES_SINCE, 10**9])
@pytest.mark.parametrize("bad", ["x,a,1,x", "{n},a,-1,x", "1,a,1,x"])
def test_many_bad_rows_take_few_round_trips(
    stage: Stage, bucket: Bucket, bad: str, since: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each round trip takes milliseconds, and a file may have a million bad rows."""
    monkeypatch.setattr(staging, "CHECKS_VALUES_SINCE", since)
    lines = [(bad if n % 20 == 0 else "{n},a,1,x").format(n=n) for n in range(1, 8001)]
    trips = 0
    wait = OwnConnection.wait

    def count(self: OwnConnection, *given: Any, **named: Any) -> Any:
        nonlocal trips
        trips += 1
        return wait(self, *given, **named)

    monkeypatch.setattr(OwnConnection, "wait", count)
    job = bring(stage, bucket, "id,name,age,note\n" + "\n".join(lines), max_bad_rows=400)
    assert (job["result"]["rows"], job["result"]["bad"], len(read_rows(stage))) == (7600, 400, 7600)
    assert [row["line"] for row in job["result"]["bad_rows"]] == [n + 1 for n in range(20, 2001, 20)]
    assert trips < 600, "a few for each of the hundred that the result tells of"


@pytest.mark.parametrize("since", [staging.CHECKS_VALUES_SINCE, 10**9])
def test_the_search_ends_with_one_bad_row_too_many(
    stage: Stage, bucket: Bucket, since: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "CHECKS_VALUES_SINCE", since)
    job = bring(stage, bucket, "id,name,age,note\n" + "".join(f"{n},a,-1,x\n" for n in range(1000)), max_bad_rows=150)
    assert (job["status"], read_rows(stage)) == ("failed", [])
    assert job["error_details"]["message"].startswith("151 bad rows, and max_bad_rows is 150: line ")


@pytest.mark.parametrize("on_conflict", ["skip", "update"])
def test_conflicts_are_solved_in_the_search_too(stage: Stage, bucket: Bucket, on_conflict: str) -> None:
    stage.db.execute("INSERT INTO people VALUES (2, 'old')")
    content = "id,name,age\n1,a,1\n2,b,1\n3,c,-1\n4,d,1\n4,e,1\n"
    job = bring(stage, bucket, content, on_conflict=on_conflict, keys=["id"], max_bad_rows=1)
    kept = [(1, "a"), (2, "old"), (4, "d")] if on_conflict == "skip" else [(1, "a"), (2, "b"), (4, "e")]
    assert (read_rows(stage, "SELECT id, name FROM people ORDER BY id"), job["result"]["bad"]) == (kept, 1)


def test_columns_may_be_called_as_the_search_calls_its_own(stage: Stage, bucket: Bucket) -> None:
    stage.db.execute("CREATE TABLE odd (place int PRIMARY KEY CHECK (place > 0), line text, upto text, size int)")
    fields = '{"place": %d, "line": "l", "upto": "u", "size": 1}\n'
    job = bring(stage, bucket,
        "".join(fields % n for n in (1, -1, 2)), table="public.odd", format="jsonl", max_bad_rows=1,
        columns=["place", "line", "upto", "size"], on_conflict="update", keys=["place"],
    )  # fmt: skip
    assert job["status"] == "completed", job["error_details"]
    assert read_rows(stage, "SELECT * FROM odd") == [(1, "l", "u", 1), (2, "l", "u", 1)]


def test_a_trigger_that_refuses_a_row_makes_it_a_bad_one(stage: Stage, bucket: Bucket) -> None:
    stage.db.execute("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ "
                     "BEGIN IF NEW.id = 2 THEN RAISE 'no'; END IF; RETURN NEW; END $$")  # fmt: skip
    stage.db.execute("CREATE TRIGGER refuse BEFORE INSERT ON people FOR EACH ROW EXECUTE FUNCTION refuse()")
    job = bring(stage, bucket, "id,name\n1,a\n2,b\n3,c\n", max_bad_rows=1)
    assert job["result"]["bad_rows"] == [{"line": 3, "fault": "met RaiseException (P0001)"}]
    assert [row[0] for row in read_rows(stage)] == [1, 3]


def test_a_constraint_that_may_wait_names_its_row_all_the_same(stage: Stage, bucket: Bucket) -> None:
    stage.db.execute("CREATE TABLE cities (id int PRIMARY KEY)")
    stage.db.execute("ALTER TABLE people ADD CONSTRAINT city FOREIGN KEY (age) REFERENCES cities "
                     "DEFERRABLE INITIALLY DEFERRED")  # fmt: skip
    job = bring(stage, bucket, "id,age\n1,\n2,5\n", max_bad_rows=1)
    assert job["result"]["bad_rows"] == [{"line": 3, "fault": "met ForeignKeyViolation (23503) of 'city'"}]


@pytest.mark.parametrize("content", ['id,name\n1,"a\n2,b\n', 'id,name\n1,"' + "a\n" * LONGEST])
def test_unclosed_quotes_fail_the_job_even_if_bad_rows_are_allowed(stage: Stage, bucket: Bucket, content: str) -> None:
    job = bring(stage, bucket, content, max_bad_rows=1000)
    assert job["status"] == "failed"
    assert "line 2" in job["error_details"]["message"]
    assert read_rows(stage) == []


# ---- what is refused


@pytest.mark.usefixtures("usual_chunks")
@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"table": "people"}, "table"),
        ({"table": 'public.people"; DROP TABLE x; --'}, "table"),
        ({"format": "jsonl"}, "columns must be given"),
        ({"header": False}, "columns must be given"),
        ({"columns": []}, "columns must name at least one"),
        ({"columns": ["id", "id"]}, "twice"),
        ({"columns": {"id": "x", "name": "x"}}, "twice"),
        ({"on_conflict": "update"}, "keys must be given"),
        ({"on_conflict": "update", "keys": ["age"], "columns": ["id"]}, "'age'"),
        ({"delimiter": '"'}, "delimiter"),
        ({"delimiter": "a"}, "delimiter"),
        ({"delimiter": "\n"}, "delimiter"),
        ({"null": "a,b"}, "null"),
        ({"max_bad_rows": -1}, "max_bad_rows"),
        ({"chunk_bytes": (1 << 20) - 1}, "chunk_bytes must be at least 1048576"),
        ({"chunk_bytes": (16 << 20) - 1, "gzip": True}, "chunk_bytes must be at least 16777216"),
        ({"colums": ["id"]}, "did you mean 'columns'"),
    ],
)
def test_a_payload_that_makes_no_sense_is_refused_when_it_is_submitted(
    stage: Stage, payload: dict[str, Any], said: str
) -> None:
    with pytest.raises(JobRefused, match=said):
        stage.submit("import_table", payload={"key": "k", "table": "public.people"} | payload)


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"table": "public.peple"}, "there is no table public.peple"),
        ({"table": "signalbox.jobs"}, "SIGNALBOX_FILE_TRANSFERS"),
        ({"table": "pg_catalog.pg_class"}, "SIGNALBOX_FILE_TRANSFERS"),
        ({"key": "not/there"}, "S3 answers 404: no such object"),
        ({"bucket": "not-created-yet"}, "404"),
        (
            {"bucket": "audit-archive"},
            "bucket 'audit-archive' is not open to jobs in this stack: SIGNALBOX_FILE_TRANSFERS",
        ),
        ({"columns": {"nme": "name"}}, "no column 'nme'; did you mean 'name'?"),
        ({"columns": {"name": "nam"}}, "no field 'nam'; did you mean 'name'?"),
    ],
)
def test_what_is_not_there_or_not_allowed_fails_for_good(
    stage: Stage, bucket: Bucket, payload: dict[str, Any], said: str
) -> None:
    asked = {"key": bucket.put(HUNDRED), "table": "public.people"} | payload
    job = stage.finish(stage.submit("import_table", payload=asked))
    assert job["status"] == "failed"
    assert said in job["error_details"]["message"]


def test_a_bucket_that_is_not_listed_is_never_read(stage: Stage, bucket: Bucket) -> None:
    archive = f"archive-{bucket.name}"
    bucket.s3.create_bucket(Bucket=archive)
    bucket.s3.put_object(Bucket=archive, Key="people.csv", Body=HUNDRED.encode())
    asked = {"bucket": archive, "key": "people.csv", "table": "public.people"}
    job = stage.finish(stage.submit("import_table", payload=asked))
    assert (job["status"], job["attempts"], read_rows(stage)) == ("failed", 1, [])
    assert stage.dead_letter(job["id"])["failure_reason"] == "permanent"


def test_a_listed_bucket_is_read(stage: Stage, bucket: Bucket) -> None:
    bucket.s3.create_bucket(Bucket=f"other-{bucket.name}")
    bucket.s3.put_object(Bucket=f"other-{bucket.name}", Key="people.csv", Body=HUNDRED.encode())
    asked = {"bucket": f"other-{bucket.name}", "key": "people.csv", "table": "public.people"}
    assert stage.finish(stage.submit("import_table", payload=asked))["result"]["rows"] == 100


def test_a_field_that_the_header_has_twice_is_refused(stage: Stage, bucket: Bucket) -> None:
    job = bring(stage, bucket, "id,name,name\n1,a,b\n")
    assert "2 times the field 'name'" in job["error_details"]["message"]


def test_names_are_only_ever_names(stage: Stage, bucket: Bucket) -> None:
    stage.db.execute('CREATE TABLE odd ("a""b; --" int, "Select" text, line int)')
    content = '"a""b; --",Select,line\n1,x,5\n'
    assert bring(stage, bucket, content, table="public.odd")["status"] == "completed"
    assert read_rows(stage, "SELECT * FROM odd") == [(1, "x", 5)]


def test_the_engines_own_tables_are_never_open_to_imports() -> None:
    environ = {"SIGNALBOX_STACK": "s", "SIGNALBOX_DATABASE_URL": "postgresql:///"}
    with pytest.raises(
        SettingsRefused,
        match=r"signalbox is the engine's own; it holds 'import:people', which names neither schema.table",
    ):
        Settings.read(environ | {"SIGNALBOX_FILE_TRANSFERS": "import:signalbox.jobs, import:people, import:app.*"})


# ---- when S3 fails


@pytest.mark.parametrize("status", [500, 503])
def test_an_error_of_s3_itself_is_met_by_another_attempt(stage: Stage, bucket: Bucket, status: int) -> None:
    job_id = stage.submit("import_table", payload={"key": bucket.put(HUNDRED), "table": "public.people"})
    bucket.front.faults.add(Fault(matching="GET", status=status))
    job = stage.step(job_id)
    assert (job["status"], read_rows(stage)) == ("pending", [])
    bucket.front.faults.replace([])
    assert stage.finish(job_id)["result"]["rows"] == 100


def test_an_answer_that_breaks_off_is_met_by_another_attempt(stage: Stage, bucket: Bucket) -> None:
    job_id = stage.submit("import_table", payload={"key": bucket.put(HUNDRED), "table": "public.people"})
    bucket.front.faults.add(Fault(matching="GET", lost=True))
    assert stage.step(job_id)["status"] == "pending"
    bucket.front.faults.replace([])
    assert stage.finish(job_id)["status"] == "completed"


def test_refusal_by_s3_fails_the_job_and_a_redrive_continues_it(stage: Stage, bucket: Bucket) -> None:
    job_id = stage.submit(
        "import_table", payload={"key": bucket.put(HUNDRED), "table": "public.people", "chunk_bytes": 500}
    )
    kept = stage.step(job_id)["cursor"]
    bucket.front.faults.add(Fault(matching="GET", status=403))
    job = stage.step(job_id)
    assert (job["status"], job["cursor"]) == ("failed", kept)
    assert "403" in job["error_details"]["message"]
    bucket.front.faults.replace([])
    redrive(stage, letter_of(stage, job_id))
    assert stage.finish(job_id)["result"]["rows"] == 100
    assert len(read_rows(stage)) == 100


def test_redrive_with_an_edited_payload_restarts_and_skips_existing_rows(stage: Stage, bucket: Bucket) -> None:
    key = bucket.put(HUNDRED.replace("50,name", "x,name"))
    asked = {"key": key, "table": "public.people", "chunk_bytes": 500}
    job_id = stage.submit("import_table", payload=asked)
    assert stage.finish(job_id)["status"] == "failed"
    assert 0 < len(read_rows(stage)) < 50
    redrive(stage, letter_of(stage, job_id), payload=asked | {"on_conflict": "skip", "max_bad_rows": 1})
    job = stage.finish(job_id)
    assert (job["status"], job["result"]["records"], len(read_rows(stage))) == ("completed", 100, 99), job[
        "error_details"
    ]


def test_a_job_that_is_cancelled_between_chunks_keeps_the_chunks_it_had(stage: Stage, bucket: Bucket) -> None:
    job_id = stage.submit(
        "import_table", payload={"key": bucket.put(HUNDRED), "table": "public.people", "chunk_bytes": 500}
    )
    kept = stage.step(job_id)["cursor"]["rows"]
    stage.db.execute("UPDATE signalbox.jobs SET cancel_requested_at = now() WHERE id = %s", (job_id,))
    assert stage.step(job_id)["status"] == "cancelled"
    assert len(read_rows(stage)) == kept
