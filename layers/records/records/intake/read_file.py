"""Read a file's lines: a PDF's own text, or what Textract reads in a scan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta

from records.intake.lines import is_scan
from records.intake.shell_file import PDF, ShellFile, bucket_of
from signalbox import JobContext, Permanent, Snooze
from signalbox.documents import ocr
from signalbox.documents.line import Line
from signalbox.documents.pdf_text import TooManyPages, read_lines
from signalbox.packs.refusals import refuse

MOST_PAGES = 500
MOST_BYTES_OF_PDF = 50 * 1024 * 1024
MOST_BYTES_OF_IMAGE = 10_000_000  # also what Textract reads at once
_LOOK_EVERY = timedelta(seconds=10)
_SIGNATURES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
_CALLED = "the raw file"  # its key may hold a name
Lines = Sequence[Sequence[Line]]


def read_file(context: JobContext, file: ShellFile) -> Lines | Snooze:
    """Return the lines of each page, or look again later while Textract reads."""
    cursor, begun = context.cursor, _begun(context)
    if cursor is not None and cursor["begun"] == begun:  # else the job was redriven: a scan that failed is begun again
        return _look(context, cursor["textract"])
    data = _load(context, file)
    pages = _lines_of_pdf(data) if file.mime_type == PDF else None
    if pages is not None and not any(map(is_scan, pages)):
        return pages
    if pages is None and not data.startswith(_SIGNATURES[file.mime_type]):
        raise refuse("UNREADABLE_FILE", "it is no image of its type")
    return _scan(context, file, at_once=len(data) <= MOST_BYTES_OF_IMAGE and (pages is None or len(pages) == 1))


def _begun(context: JobContext) -> str:
    """Return when the job first began, which a redrive forgets."""
    return str(context.job.first_started_at)


def _load(context: JobContext, file: ShellFile) -> bytes:
    bucket, most = bucket_of(context), MOST_BYTES_OF_PDF if file.mime_type == PDF else MOST_BYTES_OF_IMAGE
    data = bucket.read(file.raw_file, most, called=_CALLED)
    if data is None:
        raise refuse("NOT_FOUND", f"the raw file of {file.id} does not exist")
    if len(data) > most:
        raise refuse("FILE_TOO_LARGE", f"at most {most} bytes of its type are read")
    return data


def _lines_of_pdf(data: bytes) -> list[list[Line]]:
    try:
        return read_lines(data, MOST_PAGES)
    except TooManyPages:
        raise refuse("TOO_MANY_PAGES", f"at most {MOST_PAGES} pages are read") from None
    except Permanent as error:
        raise refuse("UNREADABLE_FILE", str(error)) from None


def _scan(context: JobContext, file: ShellFile, *, at_once: bool) -> Lines | Snooze:
    textract, bucket = context.clients.textract, bucket_of(context).name
    context.report(20, "Textract reads the file")
    with _refusals():
        if at_once:
            return ocr.detect(textract, bucket, file.raw_file).pages
        job_id = ocr.start(textract, bucket, file.raw_file, token=f"{context.key}-{context.job.execution}")
    return Snooze(_LOOK_EVERY, "Textract reads the file", {"textract": job_id, "begun": _begun(context)})


def _look(context: JobContext, job_id: str) -> Lines | Snooze:
    with _refusals():
        scanned = ocr.look(context.clients.textract, job_id)
    if scanned is None:
        return Snooze(_LOOK_EVERY, "Textract reads the file")
    if scanned.is_partial or not scanned.pages:
        raise refuse("OCR_FAILED", "Textract could not read some of the pages")
    return scanned.pages


@contextmanager
def _refusals() -> Iterator[None]:
    """Refuse what Textract can't read by our code, without its words: they may tell what is in the file."""
    try:
        yield
    except ocr.ScanFailed:
        raise refuse("OCR_FAILED", "Textract can't read the file") from None
