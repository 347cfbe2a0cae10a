"""A spreadsheet is checked first, and its obligations are made once a person has confirmed, once for an import."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from io import StringIO
from time import perf_counter
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from compliance.imports import excel_import_processing, store
from signalbox.testing import rows as engine_rows
from signalbox.testing.stage import Stage
from tests.support.aws import shared_client
from tests.support.compliance_rows import Workforce, add, rows

HEADER = ["Permit Number", "Obligation Title", "Frequency", "Deadline Date", "Site ID", "Site Name"]
GOOD = ["P1", "Check the bund", "monthly", "2026-04-01", "", ""]
Lines = list[list[str]]


@dataclass(frozen=True, slots=True)
class Importer:
    """Hold what a test imports with."""

    stage: Stage
    people: Workforce
    s3: Any
    bucket: str

    def upload(self, lines: Lines | bytes | None, **options: Any) -> str:
        """Store an import with its file; return its id."""
        path = f"imports/{self.people.company_id}/{self.people.site_id}/original.csv"
        if lines is not None:
            self.s3.put_object(Bucket=self.bucket, Key=path, Body=as_csv(lines) if isinstance(lines, list) else lines)
        user_id = self.people.owner_id
        return add(
            self.people.db, "excel_imports", **self.people.ids, user_id=user_id, file_path=path, import_options=options
        )

    def row(self, import_id: str) -> dict[str, Any]:
        [row] = engine_rows.select(self.people.db, "SELECT * FROM compliance.excel_imports WHERE id = %s", import_id)
        return row

    def submit(self, import_id: str, phase: str, **fields: Any) -> str:
        row = self.row(import_id)
        payload = {name: str(row[name]) for name in ("site_id", "user_id", "file_path")}
        payload |= {"import_id": import_id, "phase": phase, "import_options": row["import_options"]}
        return self.stage.submit("excel_import_processing", payload=payload | fields)

    def run(self, import_id: str, phase: str, **fields: Any) -> dict[str, Any]:
        return self.stage.finish(self.submit(import_id, phase, **fields))

    def both(self, lines: Lines, **options: Any) -> dict[str, Any]:
        """Do both phases; return the result of the last one."""
        import_id = self.upload(lines, **options)
        self.run(import_id, "VALIDATE")
        result: dict[str, Any] = self.run(import_id, "CREATE")["result"]
        return result


def as_csv(lines: Lines) -> bytes:
    file = StringIO()
    csv.writer(file).writerows([HEADER, *lines])
    return file.getvalue().encode()


@pytest.fixture
def importer(stage: Stage, people: Workforce, moto: str, bucket: str) -> Importer:
    return Importer(stage, people, shared_client("s3", moto), bucket)


def test_import_is_previewed_and_created(importer: Importer) -> None:
    db, people = importer.people.db, importer.people
    people.document(permit_number="P1")
    import_id = importer.upload([GOOD, ["", "T", "yearly", "x", "", ""], ["", "", "", "", "", ""]])
    result = importer.run(import_id, "VALIDATE")["result"]
    assert result == {
        "status": "PENDING_REVIEW", "row_count": 2, "valid_count": 1, "error_count": 1, "success_count": 0
    }  # fmt: skip
    row = importer.row(import_id)
    assert (row["valid_rows"][0]["row_number"], row["valid_rows"][0]["data"]["frequency"]) == (2, "MONTHLY")
    faults = ["Missing permit_number", "Invalid date format", "Invalid frequency value"]
    assert (row["error_rows"], row["warning_rows"]) == ([{"row_number": 3, "errors": faults}], [])
    result = importer.run(import_id, "CREATE")["result"]
    assert (result["status"], result["success_count"]) == ("COMPLETED", 1)
    columns = ("obligation_title", "frequency", "import_source", "status", "excel_import_id", "created_by")
    [made] = rows(db, "obligations", *columns, "base_date", "deadline_date")
    assert made[:4] == ("Check the bund", "MONTHLY", "excel_import", "PENDING")
    assert (str(made[4]), str(made[5])) == (import_id, people.owner_id)
    assert [str(day) for day in made[6:]] == ["2026-04-01", "2026-04-01"]
    [deadline] = rows(db, "deadlines", "status", "schedule_id", "due_date")
    assert (*deadline[:2], str(deadline[2])) == ("PENDING", None, "2026-04-01")
    told = rows(db, "notifications", "channel", "entity_type", "message", "action_url", order="created_at")
    assert told == [
        ("EMAIL", "EXCEL_IMPORT", "Your Excel import is ready. 1 valid rows, 1 errors.",
         f"/obligations/import/{import_id}/preview"),
        ("EMAIL", "EXCEL_IMPORT", "1 obligations imported successfully.", f"/sites/{people.site_id}/obligations"),
    ]  # fmt: skip
    assert engine_rows.count(db, "signalbox.jobs WHERE job_type = 'deliver_notification'") == 2


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (None, "File not found"),
        (b"permit_number,frequency\n", "Missing required column: obligation_title"),
        (b"", "Missing required column: permit_number"),
        (b"PK\x03\x04 no zip", "Invalid file format"),
        (b"\xff\xfe\x00", "Invalid file format"),
        (b"x" * 10_000_001, "File too large (>10MB)"),
        (as_csv([GOOD] * 10_001), "Too many rows (>10,000)"),
    ],
)
def test_refused_file_fails_the_import(importer: Importer, lines: bytes | None, message: str) -> None:
    import_id = importer.upload(lines)
    job = importer.run(import_id, "VALIDATE")
    row = importer.row(import_id)
    assert (job["status"], row["status"], row["valid_rows"]) == ("failed", "FAILED", None)
    assert row["error_message"].startswith(message)
    assert importer.stage.dead_letter(str(job["id"]))["failure_reason"] == "permanent"


def test_ten_thousand_rows_are_taken(importer: Importer) -> None:
    lines = [[f"P{number % 100}", f"T{number}", *GOOD[2:]] for number in range(10_000)]
    lines.insert(5_000, [""] * 6)
    began = perf_counter()
    result = importer.both(lines, create_missing_permits=True)
    assert (result["row_count"], result["success_count"]) == (10_000, 10_000)
    assert engine_rows.count(importer.people.db, "compliance.documents") == 100
    assert perf_counter() - began < 60


@pytest.mark.parametrize("field", ["site_id", "user_id", "file_path", "import_options"])
def test_payload_that_differs_is_refused(importer: Importer, field: str) -> None:
    import_id = importer.upload([GOOD])
    other: Any = {"skip_duplicates": False} if field == "import_options" else import_id
    job = importer.run(import_id, "VALIDATE", **{field: other})
    assert (job["status"], importer.row(import_id)["status"]) == ("failed", "PENDING")


def test_import_at_a_site_of_another_company_fails(importer: Importer) -> None:
    other = Workforce.make(importer.people.db, name="Other")
    import_id = importer.upload([GOOD])
    importer.people.db.execute("UPDATE compliance.excel_imports SET site_id = %s", (other.site_id,))
    assert importer.run(import_id, "VALIDATE")["status"] == "failed"


def test_phases_out_of_turn_do_nothing(importer: Importer) -> None:
    import_id = importer.upload([GOOD], create_missing_permits=True)
    assert importer.run(import_id, "CREATE")["result"]["status"] == "PENDING"
    for phase in ("VALIDATE", "VALIDATE", "CREATE", "CREATE", "VALIDATE"):
        result = importer.run(import_id, phase)["result"]
    assert (result["status"], result["success_count"]) == ("COMPLETED", 1)
    assert len(rows(importer.people.db, "obligations", "id")) == 1
    assert len(rows(importer.people.db, "notifications", "id")) == 2


def test_two_imports_at_once_make_one_permit(importer: Importer) -> None:
    ids = [importer.upload([[*GOOD[:1], title, *GOOD[2:]]], create_missing_permits=True) for title in ("A", "B")]
    for phase in ("VALIDATE", "CREATE"):
        jobs = [importer.submit(import_id, phase) for import_id in ids * 2]
        for _ in range(4):  # one that finds the company locked gives way
            importer.stage.make_due(*jobs)
            importer.stage.work(*jobs)
        assert importer.stage.statuses(*jobs) == ["completed"] * 4
    assert len(rows(importer.people.db, "documents", "id")) == 1
    assert len(rows(importer.people.db, "obligations", "id")) == 2


def test_missing_permits_are_errors_or_made(importer: Importer) -> None:
    other = Workforce.make(importer.people.db, name="Other")
    other.document(permit_number="P1")
    importer.people.document(permit_number="P1", deleted_at="2026-01-01")
    importer.people.document(permit_number="P2")
    lines = [GOOD, ["P2", *GOOD[1:]]]
    import_id = importer.upload(lines)
    importer.run(import_id, "VALIDATE")
    result = importer.run(import_id, "CREATE")["result"]
    assert (result["success_count"], result["error_count"], result["valid_count"]) == (1, 1, 1)
    assert importer.row(import_id)["error_rows"] == [{"row_number": 2, "errors": ["Permit not found"]}]
    assert importer.both(lines, create_missing_permits=True)["success_count"] == 1
    made = engine_rows.select(
        importer.people.db,
        "SELECT title, module_id, status FROM compliance.documents"
        " WHERE permit_number = 'P1' AND company_id = %s AND deleted_at IS NULL",
        importer.people.company_id,
    )
    assert made == [{"title": "P1", "module_id": None, "status": "ACTIVE"}]


def test_sites_are_made_once_for_a_value(importer: Importer) -> None:
    other = Workforce.make(importer.people.db, name="Other")
    names = [["Plant B", ""], ["Plant B", "Southern plant"], ["Plant C", ""], [other.site_id, "Theirs"]]
    lines = [[f"P{number}", *GOOD[1:4], *name] for number, name in enumerate(names)]
    import_id = importer.upload(lines, create_missing_sites=True, create_missing_permits=True)
    importer.run(import_id, "VALIDATE")
    assert importer.row(import_id)["error_rows"] == [{"row_number": 5, "errors": ["Site not found"]}]
    assert importer.row(import_id)["warning_rows"][0]["warnings"] == ["Site will be created"]
    assert importer.run(import_id, "CREATE")["result"]["success_count"] == 3
    made = rows(importer.people.db, "sites", "name", order="name")
    assert [name for (name,) in made] == ["North works", "North works", "Plant C", "Southern plant"]


@pytest.mark.parametrize(("skip", "valid"), [(True, 1), (False, 3)])
def test_known_obligations_are_left_out(importer: Importer, skip: bool, valid: int) -> None:
    people = importer.people
    other = Workforce.make(people.db, name="Other")
    for owner, title in ((people, "known"), (other, "Check the bund")):
        owner.obligation(document_id=owner.document(permit_number="P1"), obligation_title=title)
    import_id = importer.upload([GOOD, GOOD, ["P1", "known", *GOOD[2:]]], skip_duplicates=skip)
    result = importer.run(import_id, "VALIDATE")["result"]
    warnings = [{"row_number": number, "warnings": ["Duplicate obligation"]} for number in (3, 4)]
    assert (result["valid_count"], result["row_count"]) == (valid, 3)
    assert importer.row(import_id)["warning_rows"] == warnings


@pytest.mark.parametrize(("phase", "at"), [("VALIDATE", "store_preview"), ("CREATE", "complete")])
@pytest.mark.parametrize("after", [False, True])
def test_crash_writes_nothing_twice(
    importer: Importer, monkeypatch: pytest.MonkeyPatch, phase: str, at: str, after: bool
) -> None:
    import_id = importer.upload([GOOD], create_missing_permits=True, create_missing_sites=True)
    if phase == "CREATE":
        importer.run(import_id, "VALIDATE")
    owner, name = (store, "counts_of") if after else (store, at)
    original, left = getattr(owner, name), ["crash"]

    def crash_once(*args: Any) -> Any:
        if left:
            left.pop()
            raise ConnectionError("as the test wants it")
        return original(*args)

    monkeypatch.setattr(owner, name, crash_once)
    job = importer.run(import_id, phase)
    assert (job["status"], len(importer.stage.attempts(str(job["id"])))) == ("completed", 2)
    made = 1 if phase == "CREATE" else 0
    assert (
        len(rows(importer.people.db, "obligations", "id")) == len(rows(importer.people.db, "deadlines", "id")) == made
    )
    assert len(rows(importer.people.db, "notifications", "id")) == 1 + made


def test_exhausted_import_fails_and_a_redrive_leaves_it(importer: Importer, monkeypatch: pytest.MonkeyPatch) -> None:
    import_id = importer.upload([GOOD])
    monkeypatch.setattr(excel_import_processing, "_cells", lambda *_: 1 / 0)
    job = importer.run(import_id, "VALIDATE")
    assert (job["status"], importer.row(import_id)["status"]) == ("failed", "FAILED")
    monkeypatch.undo()
    importer.stage.operate("redrive", ids=[str(importer.stage.dead_letter(str(job["id"]))["id"])], reason="x", by="me")
    assert importer.stage.finish(str(job["id"]))["result"]["status"] == "FAILED"


@pytest.mark.parametrize("phase", ["VALIDATE", "CREATE"])
def test_worker_lost_after_its_phase_fails_nothing(importer: Importer, phase: str) -> None:
    import_id = importer.upload([GOOD], create_missing_permits=True)
    importer.run(import_id, "VALIDATE")
    if phase == "CREATE":
        importer.run(import_id, "CREATE")
    before = importer.row(import_id)
    payload = Jsonb({"import_id": import_id, "phase": phase})
    importer.people.db.execute("SELECT compliance.import_failed(gen_random_uuid(), %s, 'lost', NULL)", (payload,))
    assert importer.row(import_id) == before


def test_gone_user_is_not_told(importer: Importer) -> None:
    import_id = importer.upload([GOOD])
    importer.people.db.execute("UPDATE compliance.users SET deleted_at = now()")
    assert importer.run(import_id, "VALIDATE")["result"]["status"] == "PENDING_REVIEW"
    assert rows(importer.people.db, "notifications", "id") == []
