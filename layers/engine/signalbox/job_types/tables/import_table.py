"""Read CSV or lines of JSON from S3 into a table, a chunk an attempt.

A chunk's rows and where it ends are committed together, so that every row comes once, however often workers crash. The
object is the same from the first chunk to the last, or the job fails. Rows that the table does not take are reported by
line and fault, and up to `max_bad_rows` of them are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from signalbox.job_types.tables.allowed_bucket import find_bucket
from signalbox.job_types.tables.allowed_table import ColumnName, Table, TableName, find_table, prepare
from signalbox.job_types.tables.copy_rows import Column, CsvForm, Form, JsonForm, read_header
from signalbox.job_types.tables.gunzip import skip, unzip
from signalbox.job_types.tables.pinned_object import PinnedObject
from signalbox.job_types.tables.split_records import LONGEST, SourceRecord, Splitter
from signalbox.job_types.tables.staging import BadRows, ImportTarget, OnConflict, Staging
from signalbox.packs.job_payload import JobPayload
from signalbox.packs.outcome import Completed, More, Outcome, Permanent
from signalbox.packs.suggest import nearest
from signalbox.postgres.connection import Connection
from signalbox.worker.job_context import JobContext

# Each chunk is an attempt, a staging table and a request of S3: a payload must not ask for millions.
CHUNK, LEAST_CHUNK = 16 << 20, 1 << 20
# Each chunk of a packed file unpacks everything before it again. So there are few chunks, and packed files have a
# limit.
PACKED_CHUNK, LEAST_PACKED_CHUNK = 256 << 20, 16 << 20
MOST_PACKED = 1 << 30
# The share of an attempt's time for reading: the rest is for the INSERT.
READING_SHARE = 0.5
LOOK_EVERY = 1000  # records


class ImportTable(JobPayload):
    """Say which object goes into which table, and which fields into which columns."""

    bucket: str | None = None  # the stack's own
    key: str = Field(min_length=1, max_length=1024)
    format: Literal["csv", "jsonl"] = "csv"
    gzip: bool = False
    table: TableName
    columns: dict[ColumnName, ColumnName] | list[ColumnName] | None = None  # {column: field}, or where they are alike
    on_conflict: OnConflict = "fail"
    keys: tuple[ColumnName, ...] = ()  # of the unique index that on_conflict means
    header: bool = True
    delimiter: Annotated[str, Field(pattern=r"^[\t -!#-,/:-@\[-`{-~]$")] = ","
    null: Annotated[str, Field(max_length=20, pattern=r'^[^"\r\n\x00]*$')] = ""  # besides, in quotes it is a text
    max_bad_rows: int = Field(0, ge=0, le=1_000_000)
    chunk_bytes: int | None = Field(None, le=1 << 30)

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.columns is None and (self.format == "jsonl" or not self.header):
            raise ValueError("columns must be given: only a CSV file with a header names them itself")
        if self.columns is not None and not self.columns:
            raise ValueError("columns must name at least one column")
        fields = list(self.fields.values()) if self.columns else []
        if len(set(fields)) < len(fields) or len(self.fields) < len(self.columns or ()):
            raise ValueError("columns names a field or a column twice")
        if self.on_conflict == "update" and not self.keys:
            raise ValueError("keys must be given where on_conflict is update: the columns of a unique index")
        if self.columns and (missing := set(self.keys) - set(self.fields)):
            raise ValueError(f"keys names '{min(missing)}', which is not one of the columns")
        if self.delimiter in self.null:
            raise ValueError("null must not hold the delimiter")
        least = LEAST_PACKED_CHUNK if self.gzip else LEAST_CHUNK
        if self.chunk_bytes is not None and self.chunk_bytes < least:
            raise ValueError(f"chunk_bytes must be at least {least}{' for a compressed file' if self.gzip else ''}")
        return self

    @property
    def fields(self) -> dict[str, str]:
        """Return the file's field for each of the table's columns, where the payload names them."""
        if isinstance(self.columns, dict):
            return dict(self.columns)
        return {name: name for name in self.columns or ()}


@dataclass(slots=True)
class ImportCursor:
    """Sum up the chunks so far: the job's cursor."""

    etag: str
    size: int
    offset: int = 0  # in the unpacked content
    line: int = 1
    records: int = 0  # read, without blank lines and the header
    rows: int = 0  # written; the others were bad, there already, or followed by one with the same key
    bad: int = 0
    bad_rows: list[dict[str, Any]] = field(default_factory=list)
    header: list[str] | None = None


def import_table(context: JobContext) -> Outcome:
    """Import one chunk."""
    payload: ImportTable = context.payload
    db = context.db
    prepare(db, context.budget)
    table = find_table(db, payload.table, context.resources.settings.file_transfers.import_tables, "import")
    source, progress = _find_source(context)
    chunk = _Chunk(context, source, progress)
    records = chunk.records()
    if progress.header is None and payload.format == "csv":
        progress.header = _read_header(payload, records)
    if progress.header is not None or payload.format == "jsonl":
        _bring_in(db, chunk, records, _target(payload, table, progress.header))
    if chunk.is_last:
        return _completed(source, progress)
    return More(asdict(progress), chunk.percent, f"{progress.rows} rows")


def _bring_in(db: Connection, chunk: _Chunk, records: Iterator[SourceRecord], target: ImportTarget) -> None:
    payload, progress = chunk.payload, chunk.progress
    bad = BadRows(payload.max_bad_rows, progress.bad, progress.bad_rows)
    staging = Staging.create(db, chunk.context.job.id, _form_of(payload, progress), target, bad)
    first = progress.line
    staging.copy(chunk.contents(records, bad))
    progress.rows += staging.insert(first, progress.line)
    staging.drop()
    progress.bad = bad.count


@dataclass(slots=True)
class _Chunk:
    """Read the records of one attempt."""

    context: JobContext
    source: PinnedObject
    progress: ImportCursor
    is_last: bool = True  # until a record is left for the next
    packed: int = 0  # bytes read of a packed file, the only measure of its progress

    @property
    def payload(self) -> ImportTable:
        payload: ImportTable = self.context.payload
        return payload

    @property
    def size(self) -> int:
        return self.payload.chunk_bytes or (PACKED_CHUNK if self.payload.gzip else CHUNK)

    @property
    def percent(self) -> int:
        done = self.packed if self.payload.gzip else self.progress.offset
        return min(99, 100 * done // max(1, self.source.size))

    def records(self) -> Iterator[SourceRecord]:
        """Return the records from where the last chunk ended to the end of the file."""
        splitter = Splitter(self.progress.offset, self.progress.line, quotes=self.payload.format == "csv")
        return splitter.split(self._blocks())

    def contents(self, records: Iterator[SourceRecord], bad: BadRows) -> Iterator[tuple[int, bytes]]:
        """Return line and content of each record of the chunk, and advance the progress."""
        progress, budget = self.progress, self.context.budget
        end, reserve = progress.offset + self.size, budget.seconds_left * (1 - READING_SHARE)
        for number, record in enumerate(records, 1):
            progress.offset, progress.line = record.end, record.next_line
            progress.records += record.content != b""
            if record.content is None:
                bad.add(record.line, f"is longer than {LONGEST} bytes")
            elif record.content:
                yield record.line, record.content
            if number % LOOK_EVERY == 0:
                self._look()
            if record.end >= end or (number % LOOK_EVERY == 0 and budget.seconds_left < reserve):
                self.is_last = not self.payload.gzip and record.end >= self.source.size
                return

    def _look(self) -> None:
        self.context.check_cancelled()
        self.context.report(self.percent, f"{self.progress.rows} rows")

    def _blocks(self) -> Iterator[bytes]:
        s3, offset = self.context.clients.s3, self.progress.offset
        if not self.payload.gzip:
            return self.source.read(s3, offset, self.size)
        return skip(unzip(self._counted(self.source.read(s3)), self.source.url), offset)

    def _counted(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        for block in blocks:
            self.packed += len(block)
            yield block


def _find_source(context: JobContext) -> tuple[PinnedObject, ImportCursor]:
    payload: ImportTable = context.payload
    bucket = find_bucket(context.resources.settings, payload.bucket)
    if context.cursor is not None:
        progress = ImportCursor(**context.cursor)
        return PinnedObject(bucket, payload.key, progress.etag, progress.size), progress
    source = PinnedObject.find(context.clients.s3, bucket, payload.key)
    if payload.gzip and source.size > MOST_PACKED:
        raise Permanent(f"{source.url} is compressed and larger than {MOST_PACKED} bytes: decompress it first")
    return source, ImportCursor(source.etag, source.size)


def _read_header(payload: ImportTable, records: Iterator[SourceRecord]) -> list[str] | None:
    """Return the fields' names, or None where the file is empty."""
    if not payload.header:
        return list(payload.fields.values())
    for record in records:
        if record.content != b"":
            return list(read_header(record.content, payload.delimiter))
    return None


def _target(payload: ImportTable, table: Table, header: list[str] | None) -> ImportTarget:
    fields = payload.fields or {name: name for name in header or ()}
    table.check_columns([*fields, *payload.keys])
    for name in fields.values() if header is not None else ():
        if (found := (header or []).count(name)) != 1:
            times = "no" if not found else f"{found} times the"
            raise Permanent(f"the header of {payload.key} has {times} field '{name}'{nearest(name, header or [])}")
    columns = tuple(Column(name, table.types[name], source) for name, source in fields.items())
    return ImportTarget(table, columns, payload.on_conflict, payload.keys)


def _form_of(payload: ImportTable, progress: ImportCursor) -> Form:
    if payload.format == "jsonl":
        return JsonForm()
    return CsvForm(tuple(progress.header or ()), payload.delimiter, payload.null)


def _completed(source: PinnedObject, progress: ImportCursor) -> Completed:
    return Completed(
        {
            "source": source.url,
            "etag": source.etag,
            "bytes": source.size,
            "records": progress.records,
            "rows": progress.rows,
            "bad": progress.bad,
            "bad_rows": progress.bad_rows,
        }
    )
