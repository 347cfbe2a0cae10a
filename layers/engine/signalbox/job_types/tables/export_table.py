"""Write a table's or a view's rows to S3 as CSV or lines of JSON: by COPY, streamed, without ever holding them.

One file is one statement and so one snapshot. An export too large for one attempt asks for files of a number of rows
each, by primary key: each file is a snapshot and an attempt of its own, and a manifest comes last. The keys are the
same in each attempt, so that a retry overwrites what the attempt before it left.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Annotated, Any, Literal, Self

from psycopg import sql
from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

from signalbox.aws.errors import s3_errors
from signalbox.job_types.tables.allowed_bucket import find_bucket
from signalbox.job_types.tables.allowed_table import ColumnName, Table, TableName, find_table, prepare
from signalbox.job_types.tables.multipart_upload import Upload, UploadedFile
from signalbox.packs.job_payload import JobPayload
from signalbox.packs.outcome import Completed, More, Outcome, OutputFile, Permanent
from signalbox.postgres.queries import load_queries
from signalbox.worker.job_context import JobContext

SQL = load_queries(__file__)
LOOK_EVERY = 10_000  # rows
# Types whose values are never formulas, whatever their first character: -1 is a number.
_NO_FORMULAS = ("smallint", "integer", "bigint", "numeric", "real", "double precision", "boolean", "uuid", "date")
KEEP_TAG = "signalbox-keep-days"
_TYPES = {"csv": "text/csv", "jsonl": "application/jsonl"}
Scalar = StrictBool | StrictInt | StrictFloat | StrictStr | None


class ExportTable(JobPayload):
    """Say which rows and columns of which table or view to export, and where to."""

    table: TableName
    columns: tuple[ColumnName, ...] | None = None  # None: all
    where: dict[ColumnName, Scalar] = Field(default_factory=dict)  # equal to these; null is IS NULL
    format: Literal["csv", "jsonl"] = "csv"
    gzip: bool = False
    header: bool = True
    delimiter: Annotated[str, Field(pattern=r"^[\t -!#-,/:-@\[-`{-~]$")] = ","
    escape_formulas: bool = False  # an apostrophe before what a spreadsheet would read as a formula
    bucket: str | None = None  # the stack's own
    key: str | None = Field(None, min_length=1, max_length=1000)  # else made from prefix, table and job
    prefix: str = Field("exports/", max_length=800)
    rows_per_file: int | None = Field(None, ge=1)
    keep_days: Literal[7, 30, 90, 365] | None = None  # then a rule of the bucket deletes the files

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.key is not None and self.rows_per_file is not None:
            raise ValueError("key names one file: with rows_per_file, give a prefix")
        if self.keep_days is not None and self.bucket is not None:
            raise ValueError("keep_days is for the stack's own bucket, whose rules delete: leave out bucket")
        if self.escape_formulas and self.format != "csv":
            raise ValueError("escape_formulas is for CSV")
        if self.columns is not None and len(set(self.columns)) < max(1, len(self.columns)):
            raise ValueError("columns must name at least one column, and none twice")
        return self

    @property
    def ending(self) -> str:
        return f".{self.format}.gz" if self.gzip else f".{self.format}"


@dataclass(frozen=True, slots=True)
class File:
    """Describe a file that has been written."""

    key: str
    rows: int
    bytes: int
    parts: int
    sha256: str


@dataclass(slots=True)
class ExportCursor:
    """Keep the files so far, and the primary key of the last row in them: the job's cursor."""

    after: list[str] | None = None
    files: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Export:
    """Run one attempt."""

    context: JobContext
    table: Table
    bucket: str

    @property
    def payload(self) -> ExportTable:
        payload: ExportTable = self.context.payload
        return payload

    @property
    def folder(self) -> str:
        return f"{self.payload.prefix}{self.payload.table}-{self.context.key}"

    def write(self, key: str, rows: sql.Composable) -> File:
        """Write the file whole, or raise and leave nothing."""
        context, gzip = self.context, self.payload.gzip
        upload = Upload(context.clients.s3, self.bucket, key, gzip=gzip, tags=self.tags)
        with upload, context.reading.cursor() as cursor:
            with cursor.copy(self._statement(rows)) as copy:
                for number, row in enumerate(copy, 1):
                    upload.write(bytes(row))
                    self._look(number)
            count = cursor.rowcount
        return _file(key, count, upload.stored)

    def _look(self, number: int) -> None:
        """Check every few rows whether the job was cancelled, and report progress."""
        if number % LOOK_EVERY == 0:
            self.context.check_cancelled()
            self.context.report(0, f"{number} rows")

    def described(self, key: str, sha256: str, size: int) -> OutputFile:
        kind = "application/gzip" if self.payload.gzip else _TYPES[self.payload.format]
        return OutputFile(f"s3://{self.bucket}/{key}", sha256, size, kind, self.kept_until)

    @property
    def tags(self) -> str:
        """Return the tag that a rule of the bucket looks for."""
        return f"{KEEP_TAG}={self.payload.keep_days}" if self.payload.keep_days else ""

    @property
    def kept_until(self) -> datetime | None:
        return self.context.now + timedelta(days=self.payload.keep_days) if self.payload.keep_days else None

    def conditions(self) -> list[sql.Composable]:
        return [
            sql.SQL("{} IS NULL").format(sql.Identifier(name))
            if value is None
            else sql.SQL("{} = {}").format(sql.Identifier(name), sql.Literal(value))
            for name, value in self.payload.where.items()
        ]

    def key_of(self, values: Sequence[str]) -> sql.Composed:
        typed = [
            sql.SQL("{}::{}").format(sql.Literal(value), self.table.type_of(name))
            for name, value in zip(self.table.key, values, strict=True)
        ]
        return sql.SQL("({})").format(sql.SQL(", ").join(typed))

    def _statement(self, which: sql.Composable) -> sql.Composed:
        names = _listed(self.payload.columns or self.table.types)
        rows = sql.SQL("SELECT {} FROM {} {}").format(names, self.table.identifier, which)
        if self.payload.format == "csv":
            if self.payload.escape_formulas:
                rows = sql.SQL("SELECT {} FROM ({}) AS r").format(self._escaped(), rows)
            header, delimiter = sql.Literal(self.payload.header), sql.Literal(self.payload.delimiter)
            copy = sql.SQL("COPY ({}) TO STDOUT (FORMAT csv, HEADER {}, DELIMITER {})")
            return copy.format(rows, header, delimiter)
        # JSON never holds this delimiter and quote unescaped, so COPY changes nothing in a line.
        options = sql.SQL(r"FORMAT csv, DELIMITER E'\x02', QUOTE E'\x01'")
        return sql.SQL("COPY (SELECT row_to_json(r)::text FROM ({}) AS r) TO STDOUT ({})").format(rows, options)

    def _escaped(self) -> sql.Composed:
        """Return the columns, with an apostrophe before texts that may be formulas."""
        escape = sql.SQL(SQL["escape"])
        return sql.SQL(", ").join(
            sql.Identifier(name) if self.table.types[name] in _NO_FORMULAS else escape.format(sql.Identifier(name))
            for name in self.payload.columns or self.table.types
        )


def export_table(context: JobContext) -> Outcome:
    """Write the file, or the next of several files."""
    with context.reading.transaction():
        prepare(context.reading, context.budget)
        export = _begin(context)
        if export.payload.rows_per_file is not None:
            return _write_next(export, ExportCursor(**(context.cursor or {})))
        key = export.payload.key or f"{export.folder}{export.payload.ending}"
        file = export.write(key, _where(export.conditions()))
    return Completed(asdict(file) | {"bucket": export.bucket}, [export.described(file.key, file.sha256, file.bytes)])


def _begin(context: JobContext) -> Export:
    payload: ExportTable = context.payload
    bucket = find_bucket(context.resources.settings, payload.bucket)
    table = find_table(
        context.reading, payload.table, context.resources.settings.file_transfers.export_tables, "export"
    )
    table.check_columns([*(payload.columns or ()), *payload.where])
    if payload.rows_per_file is not None and not table.key:
        raise Permanent(f"{payload.table} has no primary key to split the rows by: leave out rows_per_file")
    return Export(context, table, bucket)


def _write_next(export: Export, progress: ExportCursor) -> Outcome:
    """Write one more file; after the last one, the manifest."""
    last = _last_key(export, progress.after)
    conditions = export.conditions()
    listed = _listed(export.table.key)
    if progress.after is not None:
        conditions.append(sql.SQL("({}) > {}").format(listed, export.key_of(progress.after)))
    if last is not None:
        conditions.append(sql.SQL("({}) <= {}").format(listed, export.key_of(last)))
    name = f"{export.folder}/part-{len(progress.files) + 1:05d}{export.payload.ending}"
    progress.files.append(asdict(export.write(name, sql.SQL("{} ORDER BY {}").format(_where(conditions), listed))))
    progress.after = last
    if last is None:
        return _complete(export, progress)
    rows = sum(file["rows"] for file in progress.files)
    return More(asdict(progress), message=f"{rows} rows in {len(progress.files)} files")


def _last_key(export: Export, after: list[str] | None) -> list[str] | None:
    """Return the primary key of the next file's last row, or None if no further file follows it."""
    conditions = export.conditions()
    listed = _listed(export.table.key)
    if after is not None:
        conditions.append(sql.SQL("({}) > {}").format(listed, export.key_of(after)))
    # Cast to text only outside: inside, the order would be that of the texts.
    texts = sql.SQL(", ").join(sql.SQL("{}::text").format(sql.Identifier(name)) for name in export.table.key)
    keys = sql.SQL("SELECT {0} FROM {1} {2} ORDER BY {0} OFFSET {3} LIMIT 2").format(
        listed, export.table.identifier, _where(conditions), sql.Literal((export.payload.rows_per_file or 1) - 1)
    )
    rows = export.context.reading.execute(sql.SQL("SELECT {} FROM ({}) AS k").format(texts, keys)).fetchall()
    return list(rows[0]) if len(rows) == 2 else None


def _complete(export: Export, progress: ExportCursor) -> Completed:
    totals = {name: sum(file[name] for file in progress.files) for name in ("rows", "bytes", "parts")}
    manifest = {"table": export.payload.table, "bucket": export.bucket, **totals, "files": progress.files}
    key, body = f"{export.folder}/manifest.json", json.dumps(manifest).encode()
    tags: dict[str, Any] = {"Tagging": export.tags} if export.tags else {}
    with s3_errors(f"s3://{export.bucket}/{key} can't be written"):
        export.context.clients.s3.put_object(
            Bucket=export.bucket, Key=key, Body=body, ContentType="application/json", **tags
        )
    parts = [export.described(file["key"], file["sha256"], file["bytes"]) for file in progress.files]
    last = OutputFile(
        f"s3://{export.bucket}/{key}", sha256(body).hexdigest(), len(body), "application/json", export.kept_until
    )
    return Completed(totals | {"bucket": export.bucket, "key": key, "files": len(progress.files)}, [*parts, last])


def _listed(names: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))


def _where(conditions: Sequence[sql.Composable]) -> sql.Composable:
    return sql.SQL("WHERE {}").format(sql.SQL(" AND ").join(conditions)) if conditions else sql.SQL("")


def _file(key: str, rows: int, stored: UploadedFile) -> File:
    return File(key, rows, stored.bytes, stored.parts, stored.sha256)
