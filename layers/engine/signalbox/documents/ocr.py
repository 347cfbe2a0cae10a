"""Read scans by Textract: one page at once, or any document by a job of Textract's, looked at until it is done.

The token makes a second start the same one for Textract: give the job's key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from signalbox.aws.errors import call_errors, code_of
from signalbox.documents.line import Line
from signalbox.packs.outcome import Permanent
from signalbox.postgres.pg_text import clean

if TYPE_CHECKING:
    from mypy_boto3_textract import TextractClient
    from mypy_boto3_textract.type_defs import (
        BlockTypeDef,
        DocumentLocationTypeDef,
        DocumentTypeDef,
        GetDocumentTextDetectionResponseTypeDef,
    )


_UNREADABLE = frozenset({"BadDocumentException", "DocumentTooLargeException", "UnsupportedDocumentException"})


@dataclass(frozen=True, slots=True)
class Scanned:
    """Hold the lines of each page, and how sure Textract is of them, from 0 to 1."""

    pages: Sequence[Sequence[Line]]
    confidence: float | None  # None where there is no line
    is_partial: bool = False  # Textract could not read some of the pages

    @property
    def texts(self) -> list[str]:
        """Return the text of each page."""
        return ["\n".join(line.text for line in page) for page in self.pages]


class ScanFailed(Permanent):
    """Textract can't read the document."""


@contextmanager
def _errors() -> Iterator[None]:
    with call_errors("Textract"):
        try:
            yield
        except Exception as error:
            if (code := code_of(error)) in _UNREADABLE:
                raise ScanFailed(f"Textract can't read it: {code}") from None
            raise


def detect(textract: TextractClient, bucket: str, key: str) -> Scanned:
    """Return what Textract reads in an object of S3 with one page."""
    document: DocumentTypeDef = {"S3Object": {"Bucket": bucket, "Name": key}}
    with _errors():
        answer = textract.detect_document_text(Document=document)
    lines = [block for block in answer.get("Blocks", []) if block.get("BlockType") == "LINE"]
    return Scanned(_by_page(lines, 1), _confidence(lines))


def start(textract: TextractClient, bucket: str, key: str, token: str) -> str:
    """Have Textract read an object of S3, and return the id of its job."""
    location: DocumentLocationTypeDef = {"S3Object": {"Bucket": bucket, "Name": key}}
    with _errors():
        answer = textract.start_document_text_detection(DocumentLocation=location, ClientRequestToken=token)
    return answer["JobId"]


def look(textract: TextractClient, job_id: str) -> Scanned | None:
    """Return what Textract has read, or None while it reads."""
    with _errors():
        first = textract.get_document_text_detection(JobId=job_id)
        status = first["JobStatus"]
        if status == "IN_PROGRESS":
            return None
        if status == "FAILED":
            raise ScanFailed(f"Textract can't read it: {first.get('StatusMessage', 'it gives no reason')}")
        answers = [first, *_further(textract, job_id, first)]
    lines = [block for answer in answers for block in answer.get("Blocks", []) if block.get("BlockType") == "LINE"]
    return Scanned(_by_page(lines, _count(first)), _confidence(lines), status == "PARTIAL_SUCCESS")


def _further(
    textract: TextractClient, job_id: str, answer: GetDocumentTextDetectionResponseTypeDef
) -> Iterator[GetDocumentTextDetectionResponseTypeDef]:
    while token := answer.get("NextToken"):
        answer = textract.get_document_text_detection(JobId=job_id, NextToken=token)
        yield answer


def _count(answer: GetDocumentTextDetectionResponseTypeDef) -> int:
    return answer.get("DocumentMetadata", {}).get("Pages", 0)


def _by_page(lines: Iterable[BlockTypeDef], pages: int) -> list[list[Line]]:
    """Return the lines of each page in their order, [] for a page without any."""
    found: dict[int, list[Line]] = {page: [] for page in range(1, pages + 1)}
    for line in lines:
        found.setdefault(line.get("Page", 1), []).append(_line(line))
    return [found[page] for page in sorted(found)]


def _line(block: BlockTypeDef) -> Line:
    box = block.get("Geometry", {}).get("BoundingBox", {})
    place = (box.get("Left", 0.0), box.get("Top", 0.0), box.get("Width", 0.0), box.get("Height", 0.0))
    return Line(clean(block.get("Text", "")), block.get("Confidence", 0.0) / 100, place)


def _confidence(lines: Iterable[BlockTypeDef]) -> float | None:
    known = [line["Confidence"] for line in lines if "Confidence" in line]
    return fmean(known) / 100 if known else None
