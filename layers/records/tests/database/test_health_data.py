"""Health data and names of files stand in the pack's own schema and files, and nowhere else."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.support.clinic import ANA, ASTHMA, PAGE, SALBUTAMOL, Clinic, coded, found, narrated

MARK = "Zyx4wvut"
PERSON = {"name": f"{MARK} Person", "date_of_birth": None, "page": 1}
ENTITY = ASTHMA | {"text": f"{MARK} asthma"}
ROW = {"entity_no": 1, "name": f"{MARK} asthma", "code": MARK, "confidence": 0.5}
RIGHT = [
    found(ENTITY, SALBUTAMOL, subjects=[ANA | {"name": f"{MARK} Lima"}]),
    coded([ROW], [2]),
    narrated(f"She has {MARK}."),
]
WRONG: list[Any] = [
    found(ENTITY | {"type": MARK}),
    found(ENTITY | {"confidence": MARK}),
    found(ENTITY | {MARK: MARK, "page": MARK}),
    found(ENTITY, subjects=[PERSON | {"date_of_birth": MARK}]),
    found(ENTITY, stop_reason="guardrail_intervened"),
    found(ENTITY, stop_reason="malformed_tool_use"),
    {"schema": "records_pass1", "output": MARK},
]
WRONG_ROWS: list[Any] = [
    coded([ROW | {"onset_date": MARK}]),
    coded([ROW | {"name": f"{MARK}\0"}]),
    coded([ROW, ROW]),
    coded([ROW | {"code_system": {MARK: MARK}}]),
    {"schema": "records_pass2", "status": 400},
]


def tables(clinic: Clinic) -> str:
    """Return all rows of the engine's tables as text."""
    names = clinic.db.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'signalbox'::regnamespace AND relkind IN ('r', 'p')"
    ).fetchall()
    queries = [sql.SQL("SELECT t::text FROM signalbox.{} AS t").format(sql.Identifier(name)) for (name,) in names]
    return "\n".join(str(row) for query in queries for row in clinic.db.execute(query).fetchall())


def objects(clinic: Clinic) -> str:
    """Return all keys of the bucket, and what is in objects that are neither raw files nor the pack's."""
    keys = [one["Key"] for one in clinic.s3.list_objects_v2(Bucket=clinic.bucket)["Contents"]]
    others = [key for key in keys if not key.startswith(("uploads/", "records/"))]
    read = [clinic.s3.get_object(Bucket=clinic.bucket, Key=key)["Body"].read() for key in others]
    return f"{keys} {read}"


def assert_unmarked(clinic: Clinic, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    printed = capsys.readouterr()
    assert "model.asked" in printed.out
    records = [str(vars(record)) for record in caplog.records]
    asked = clinic.stage.aws
    everywhere = {
        "tables": tables(clinic),
        "objects": objects(clinic),
        "output": printed.out + printed.err,
        "log": "\n".join(records),
        "messages": f"{vars(asked)}",
    }
    assert [place for place, text in everywhere.items() if MARK in text] == []


def upload(clinic: Clinic, **fields: Any) -> str:
    patient = clinic.patient(f"{MARK} Lima")
    return clinic.upload([*PAGE, f"{MARK} asthma"], patient_id=patient, filename=f"{MARK}.pdf", **fields)


def test_record_that_is_read_to_its_end_leaks_nothing(
    clinic: Clinic, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    file = upload(clinic)
    clinic.answers(*RIGHT)
    session = clinic.processed(file)
    assert clinic.file(file)["status"] == "completed"
    assert MARK in str(clinic.rows("patient_conditions")) + str(clinic.stored(f"records/pass1/{session}/0.json"))
    assert_unmarked(clinic, capsys, caplog)


@pytest.mark.parametrize(("number", "wrong"), [*((1, one) for one in WRONG), *((2, one) for one in WRONG_ROWS)])
def test_answer_that_is_wrong_leaks_nothing(
    clinic: Clinic,
    number: int,
    wrong: Any,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    job = clinic.begun(upload(clinic), *RIGHT[: number - 1], wrong | {"times": 0}, number=number)
    for _ in range(4):
        failed = clinic.step(job)
    assert failed["status"] == "failed"
    assert clinic.stage.dead_letter(str(job["id"]))
    assert_unmarked(clinic, capsys, caplog)


def test_file_that_can_not_be_read_leaks_nothing(clinic: Clinic, caplog: pytest.LogCaptureFixture) -> None:
    job = clinic.read(clinic.upload(data=f"{MARK} is no PDF".encode(), filename=f"{MARK}.pdf"))
    assert job["status"] == "failed"
    assert MARK not in tables(clinic) + str([vars(record) for record in caplog.records])


def test_key_of_a_file_that_s3_refuses_is_in_no_error(clinic: Clinic, caplog: pytest.LogCaptureFixture) -> None:
    file = clinic.upload(raw_file=f"uploads/{MARK}")
    clinic.s3.delete_object(Bucket=clinic.bucket, Key=f"uploads/{MARK}")
    clinic.db.execute("UPDATE records.shell_files SET raw_file = %s", (f"uploads/{MARK}" + "x" * 2000,))  # too long
    job = clinic.read(file)
    assert job["status"] == "failed"
    assert MARK not in str([job["error_details"], *[vars(record) for record in caplog.records]])


def test_reader_can_not_read_the_schema(reader: str) -> None:
    with psycopg.connect(reader) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("SELECT FROM records.user_profiles")
