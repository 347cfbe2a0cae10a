"""Read a PDF of 100 pages, write a pack of 200 files of 1 MB, and import 10,000 rows, each against its bare reading.

Each turn is a process of its own, so that the memory that it takes is its own, with the libraries that it loads. Files
are in moto. Mails and their jobs are left out.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, redirect_stdout
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from bench.ratio import Ratio, alternate, timed
from bench.stage.job_plant import own_database
from bench.stage.lane import Lane
from bench.stage.task_race import peak_megabytes
from compliance.pack import PACK
from signalbox.documents.pdf_text import read_pages
from signalbox.documents.report import PageBreak, Paragraph, Part, report
from signalbox.documents.spreadsheet import read_rows
from signalbox.engine_pack import ENGINE
from signalbox.migrate import migrations
from signalbox.testing.stage import Stage
from signalbox_laptop.aws import client
from signalbox_laptop.moto.process import MotoProcess
from tests.support.compliance_rows import Workforce, add

PAGES, LINES_OF_PAGE = 100, 40
OBLIGATIONS, FILES, FILE_BYTES = 500, 200, 1 << 20
ROWS, PERMITS = 10_000, 100
ROUNDS, BUCKET, DAY = 3, "bench", date(2026, 3, 1)
LINE = "The operator shall inspect the bund each month and keep a record of it. "
HEADER = ("Permit Number", "Obligation Title", "Frequency", "Deadline Date", "Site ID", "Obligation Description")
Act = Callable[[], object]


class Apart:
    """Do one act in a new process each time; `prepare` returns it, and its own time does not count."""

    def __init__(self, prepare: Callable[..., Act], *arguments: object) -> None:
        self._prepare, self._arguments = prepare, arguments
        self.megabytes = 0.0

    def __call__(self) -> float:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            seconds, megabytes = pool.submit(_measure, self._prepare, *self._arguments).result()
        self.megabytes = max(self.megabytes, megabytes)
        return seconds


def _measure(prepare: Callable[..., Act], *arguments: object) -> tuple[float, float]:
    with redirect_stdout(io.StringIO()):  # logs are written, and not shown
        return timed(prepare(*arguments))(), peak_megabytes()


def measure(dsn: str, part: int = 1) -> list[Ratio]:
    with own_database(dsn) as own, _files() as folder, psycopg.connect(own, autocommit=True) as db:
        migrations.apply(db, [ENGINE, PACK], "bench")
        return [*_of_pdf(folder), *_of_pack(own, db, part), *_of_import(own, folder, part)]


@contextmanager
def _files() -> Iterator[Path]:
    """Lead this process and those that it starts to a moto with a bucket, and give them a folder."""
    environ = dict(os.environ)
    with TemporaryDirectory(prefix="signalbox-bench-") as home:
        moto = MotoProcess(Path(home))
        try:
            os.environ |= {"AWS_ENDPOINT_URL": moto.start(), "AWS_DEFAULT_REGION": "us-east-1"}
            os.environ |= {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "COMPLIANCE_BUCKET": BUCKET}
            _s3().create_bucket(Bucket=BUCKET)
            yield Path(home)
        finally:
            moto.stop()
            os.environ.clear()
            os.environ |= environ


def _s3() -> Any:
    return client("s3", os.environ["AWS_ENDPOINT_URL"])


def _ratios(ours: dict[str, Apart], floor: str, theirs: Apart) -> list[Ratio]:
    *took, least = alternate(ROUNDS, *ours.values(), theirs)
    for what, one in ours.items():
        print(f"{what}: {one.megabytes:.0f} MB at its peak; {floor}: {theirs.megabytes:.0f} MB")
    return [Ratio(what, floor, ms, least) for what, ms in zip(ours, took, strict=True)]


def open_stage(dsn: str) -> Stage:
    """Open a function with the pack; what it sends to SQS is kept in its memory."""
    stage = Stage(dsn, packs="compliance")
    vars(stage.app.resources.clients)["sqs"] = Lane()
    stage.app.resources.database.connection()
    return stage


def _attempt(stage: Stage, job_type: str, payload: dict[str, Any]) -> Act:
    """Submit a job; the act is its one attempt."""
    job_id = stage.submit(job_type, payload=payload)

    def run() -> None:
        stage.work(job_id)
        if stage.status(job_id) != "completed":
            raise RuntimeError(f"{job_type} did not succeed: {stage.job(job_id)['error_details']}")

    return run


# ---- A PDF


def _of_pdf(folder: Path) -> list[Ratio]:
    path = folder / "permit.pdf"
    page: list[Part] = [Paragraph(LINE * LINES_OF_PAGE), PageBreak()]
    path.write_bytes(report("Permit", page * PAGES))
    what = f"the text of a PDF of {PAGES} pages, {path.stat().st_size / 1e6:.1f} MB"
    return _ratios({what: Apart(_pdf_pages, path)}, "PDFium alone", Apart(_bare_pages, path))


def _pdf_pages(path: Path) -> Act:
    return lambda: _require(len([page for page in read_pages(path.read_bytes(), 2 * PAGES) if page]), PAGES)


def _bare_pages(path: Path) -> Act:
    def read() -> None:
        from pypdfium2 import PdfDocument

        _require(len([page.get_textpage().get_text_range() for page in PdfDocument(path.read_bytes())]), PAGES)

    return read


# ---- A pack of evidence


def _of_pack(dsn: str, db: psycopg.Connection[Any], part: int) -> list[Ratio]:
    number, files = OBLIGATIONS // part, FILES // part
    people = Workforce.make(db)
    obligations = [people.obligation(summary=LINE, obligation_title=LINE) for _ in range(number)]
    for obligation_id in obligations:
        people.deadline(obligation_id, DAY)
    content = Random(1).randbytes(FILE_BYTES)
    known = {"file_hash": hashlib.sha256(content).hexdigest(), "file_size_bytes": FILE_BYTES, **people.ids}
    for place in range(files):
        key = f"evidence/{place}.pdf"
        _s3().put_object(Bucket=BUCKET, Key=key, Body=content, ContentType="application/pdf")
        evidence_id = add(
            db,
            "evidence_items",
            file_name=f"{place}.pdf",
            file_type="PDF",
            mime_type="application/pdf",
            storage_path=key,
            **known,
        )
        add(db, "obligation_evidence_links", obligation_id=obligations[place % number], evidence_id=evidence_id)
    asked = {"pack_type": "AUDIT_PACK", "output_format": "ZIP", "requested_by": people.owner_id, **people.ids}
    asked |= {"date_range_start": "2026-01-01", "date_range_end": "2026-12-31"}
    what = f"a pack of {number} obligations with {files} files of 1 MB"
    return _ratios({what: Apart(_pack, dsn, asked)}, "reading and hashing the files", Apart(_hashes, files))


def _pack(dsn: str, asked: dict[str, Any]) -> Act:
    return _attempt(open_stage(dsn), "audit_pack_generation", asked)


def _hashes(files: int) -> Act:
    def read() -> None:
        s3 = _s3()
        for place in range(files):
            hashlib.sha256(s3.get_object(Bucket=BUCKET, Key=f"evidence/{place}.pdf")["Body"].read()).hexdigest()

    return read


# ---- An import


def _of_import(dsn: str, folder: Path, part: int) -> list[Ratio]:
    path, rows = folder / "import.xlsx", ROWS // part
    _write_sheet(path, rows)
    _s3().put_object(Bucket=BUCKET, Key=path.name, Body=path.read_bytes())
    ours = {
        f"an import of {rows:,} rows, {phase}": Apart(_import, dsn, path.name, rows, phase)
        for phase in ("VALIDATE", "CREATE")
    }
    return _ratios(ours, "read_rows alone", Apart(_sheet_rows, path, rows))


def _write_sheet(path: Path, rows: int) -> None:
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    sheet = book.create_sheet()
    sheet.append(HEADER)
    for row in range(rows):
        sheet.append((f"EPR/{row % PERMITS}", f"Condition {row}", "Monthly", DAY, None, LINE))
    book.save(path)


def _import(dsn: str, key: str, rows: int, phase: str) -> Act:
    """Give each import a company of its own, so that it meets no duplicates."""
    stage = open_stage(dsn)
    people = Workforce.make(stage.db)
    options = {"create_missing_permits": True}
    facts = {"site_id": people.site_id, "user_id": people.owner_id, "file_path": key, "import_options": options}
    import_id = add(stage.db, "excel_imports", company_id=people.company_id, **facts)
    payload = {**facts, "import_id": import_id}
    validate = _attempt(stage, "excel_import_processing", {**payload, "phase": "VALIDATE"})
    if phase == "VALIDATE":
        return validate
    validate()
    create = _attempt(stage, "excel_import_processing", {**payload, "phase": "CREATE"})

    def run() -> None:
        create()
        found = stage.db.execute("SELECT success_count FROM compliance.excel_imports WHERE id = %s", (import_id,))
        _require(found.fetchall()[0][0], rows)

    return run


def _sheet_rows(path: Path, rows: int) -> Act:
    return lambda: _require(len(read_rows(path.read_bytes(), most_rows=2 * ROWS)), rows + 1)


def _require(found: int, wanted: int) -> None:
    if found != wanted:
        raise RuntimeError(f"{found} instead of {wanted} are done")
