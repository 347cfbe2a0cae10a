"""Read a PDF's text, page by page, with PDFium. A scanned page has none: `ocr` reads those."""

from __future__ import annotations

import re
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

from signalbox.packs.outcome import Permanent
from signalbox.postgres.pg_text import clean

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfiumError

_PDFIUM = Lock()  # PDFium serves one thread at a time, even with documents of their own
_LINE_END = re.compile(r"\r\n?")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff]")
# PDFium's own mark for a hyphen that ends a line.
_HYPHEN = re.compile("[\x02\ufffe]")
_FAULTS = {
    3: "it is no PDF, or is damaged",
    4: "it is locked with a password",
    5: "it is locked by a way that we can't read",
}


def read_pages(data: bytes, most_pages: int) -> list[str]:
    """Return the text of each page, "" for a page without any; raise Permanent for what can't be read."""
    from pypdfium2 import PdfDocument, PdfiumError

    if not data:
        raise Permanent("the PDF is empty")
    with _PDFIUM:
        _forget_last_error()
        try:
            with PdfDocument(data) as document:
                return _texts(document, most_pages)
        except PdfiumError as error:
            raise Permanent(f"the PDF can't be read: {_reason(error)}") from None


def _forget_last_error() -> None:
    """Have PDFium fail for what is no PDF: it keeps its last error, and not every failure has one of its own."""
    from pypdfium2 import PdfDocument, PdfiumError

    with suppress(PdfiumError):
        PdfDocument(b"-")


def _texts(document: PdfDocument, most_pages: int) -> list[str]:
    if not 0 < len(document) <= most_pages:
        raise Permanent(f"the PDF has {len(document)} pages, and from 1 to {most_pages} are read")
    return [_text(document, index) for index in range(len(document))]


def _text(document: PdfDocument, index: int) -> str:
    page = document[index]
    try:
        text_page = page.get_textpage()
        try:
            found: str = text_page.get_text_range()
        finally:
            text_page.close()
    finally:
        page.close()
    return clean(_CONTROL.sub("", _HYPHEN.sub("-", _LINE_END.sub("\n", found)))).strip()


def _reason(error: PdfiumError) -> str:
    return _FAULTS.get(error.err_code or 0, "a page is damaged")
