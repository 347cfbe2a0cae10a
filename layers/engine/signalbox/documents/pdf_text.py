"""Read a PDF's text with PDFium: of each page as a whole, or its lines with their places.

A scanned page has no text: `ocr` reads those.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, TypeVar

from signalbox.documents.line import Line
from signalbox.packs.outcome import Permanent
from signalbox.postgres.pg_text import clean

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfiumError, PdfPage, PdfTextPage

Found = TypeVar("Found")


class TooManyPages(Permanent):
    """The PDF has more pages than are read."""


_PDFIUM = Lock()  # PDFium serves one thread at a time, even with documents of their own
_LINE_END = re.compile(r"\r\n?")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff]")
# PDFium's own mark for a hyphen that ends a line.
_HYPHEN = re.compile("[\x02\ufffe]")
_ENDS_OF_LINE = (0x0A, 0x0D)
_DIGITS = 6  # of a share of a page
_FINE = 10**_DIGITS
_FAULTS = {
    3: "it is no PDF, or is damaged",
    4: "it is locked with a password",
    5: "it is locked by a way that we can't read",
}


def read_pages(data: bytes, most_pages: int) -> list[str]:
    """Return the text of each page, "" for a page without any; raise Permanent for what can't be read."""
    return _read(data, most_pages, lambda _, text: _clean(text.get_text_range()))


def read_lines(data: bytes, most_pages: int) -> list[list[Line]]:
    """Return the lines of each page that have text, with their places; raise Permanent for what can't be read."""
    return _read(data, most_pages, lambda page, text: list(_lines(page, text)))


def _read(data: bytes, most_pages: int, of_page: Callable[[PdfPage, PdfTextPage], Found]) -> list[Found]:
    from pypdfium2 import PdfDocument, PdfiumError

    if not data:
        raise Permanent("the PDF is empty")
    with _PDFIUM:
        _forget_last_error()
        try:
            with PdfDocument(data) as document:
                return _of_pages(document, most_pages, of_page)
        except PdfiumError as error:
            raise Permanent(f"the PDF can't be read: {_reason(error)}") from None


def _forget_last_error() -> None:
    """Have PDFium fail for what is no PDF: it keeps its last error, and not every failure has one of its own."""
    from pypdfium2 import PdfDocument, PdfiumError

    with suppress(PdfiumError):
        PdfDocument(b"-")


def _of_pages(document: PdfDocument, most_pages: int, of_page: Callable[[PdfPage, PdfTextPage], Found]) -> list[Found]:
    if not 0 < len(document) <= most_pages:
        kind = TooManyPages if len(document) else Permanent
        raise kind(f"the PDF has {len(document)} pages, and from 1 to {most_pages} are read")
    return [_of_page(document, index, of_page) for index in range(len(document))]


def _of_page(document: PdfDocument, index: int, of_page: Callable[[PdfPage, PdfTextPage], Found]) -> Found:
    page = document[index]
    try:
        text = page.get_textpage()
        try:
            return of_page(page, text)
        finally:
            text.close()
    finally:
        page.close()


def _clean(text: str) -> str:
    return clean(_CONTROL.sub("", _HYPHEN.sub("-", _LINE_END.sub("\n", text)))).strip()


def _lines(page: PdfPage, text: PdfTextPage) -> Iterator[Line]:
    for start, count in _spans(text):
        if words := _clean(text.get_text_range(start, count)):
            yield Line(words, 1.0, _box(page, text, start, count))


def _spans(text: PdfTextPage) -> Iterator[tuple[int, int]]:
    """Yield where each line begins among the page's characters, and how many it has."""
    from pypdfium2.raw import FPDFText_GetUnicode

    start, end = 0, text.count_chars()
    for index in range(end):
        if FPDFText_GetUnicode(text, index) in _ENDS_OF_LINE:
            yield start, index - start
            start = index + 1
    yield start, end - start


def _box(page: PdfPage, text: PdfTextPage, start: int, count: int) -> tuple[float, float, float, float]:
    """Return where the characters are, as shares of the page as it is shown."""
    corners = []
    for place in range(text.count_rects(start, count)):
        left, bottom, right, top = text.get_rect(place)
        corners += [_shown(page, left, bottom), _shown(page, right, top)]
    if not corners:
        return (0.0, 0.0, 0.0, 0.0)
    left, right = min(x for x, _ in corners), max(x for x, _ in corners)
    top, bottom = min(y for _, y in corners), max(y for _, y in corners)
    return (left, top, round(right - left, _DIGITS), round(bottom - top, _DIGITS))


def _shown(page: PdfPage, x: float, y: float) -> tuple[float, float]:
    """Return a point of the page's own coordinates as shares of the page, whatever its rotation and crop."""
    from ctypes import byref, c_int

    from pypdfium2.raw import FPDF_PageToDevice

    across, down = c_int(), c_int()
    FPDF_PageToDevice(page, 0, 0, _FINE, _FINE, 0, x, y, byref(across), byref(down))
    return _share(across.value), _share(down.value)


def _share(place: int) -> float:
    return float(min(max(place, 0), _FINE) / _FINE)


def _reason(error: PdfiumError) -> str:
    return _FAULTS.get(error.err_code or 0, "a page is damaged")
