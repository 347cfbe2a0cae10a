"""A PDF's text is read page by page, and what can't be read is refused with the reason."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import pytest
from pypdf import PdfReader, PdfWriter
from reportlab.pdfgen.canvas import Canvas

from signalbox.documents.pdf_text import read_pages
from signalbox.documents.report import PageBreak, Paragraph, report
from signalbox.packs.outcome import Permanent

TWO_PAGES = report("Minutes", [Paragraph("Grüße"), PageBreak(), Paragraph("second")])


def written(change: Callable[[PdfWriter], object], source: bytes = TWO_PAGES) -> bytes:
    writer = PdfWriter(PdfReader(BytesIO(source)))
    change(writer)
    file = BytesIO()
    writer.write(file)
    return file.getvalue()


def drawn(*lines: str) -> bytes:
    file = BytesIO()
    canvas = Canvas(file)
    for number, line in enumerate(lines):
        canvas.drawString(50, 700 - 12 * number, line)
    canvas.save()
    return file.getvalue()


def test_each_page_has_its_text_and_an_empty_page_none() -> None:
    data = written(lambda writer: writer.insert_blank_page(100, 100, 1))
    assert read_pages(data, 3) == ["page 1\nMinutes\nGrüße", "", "page 2\nsecond"]


def test_control_characters_and_pdfiums_mark_for_a_hyphen_are_gone() -> None:
    (text,) = read_pages(drawn("one exam-", "ple of", "two lines"), 1)
    assert text == "one exam-ple of\ntwo lines"


def test_a_pdf_that_needs_no_password_is_read_though_encrypted() -> None:
    assert len(read_pages(written(lambda writer: writer.encrypt("", owner_password="owner")), 2)) == 2


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b"hello", "it is no PDF, or is damaged"),
        (TWO_PAGES[: len(TWO_PAGES) // 2], "it is no PDF, or is damaged"),
        (written(lambda writer: writer.encrypt("secret")), "it is locked with a password"),
    ],
    ids=["empty", "no PDF", "cut", "locked"],
)
def test_what_can_not_be_read_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(Permanent, match=reason):
        read_pages(data, 10)


def test_the_reason_is_not_that_of_the_pdf_before() -> None:
    file = BytesIO()
    PdfWriter().write(file)
    with pytest.raises(Permanent, match="password"):
        read_pages(written(lambda writer: writer.encrypt("secret")), 10)
    with pytest.raises(Permanent, match="is damaged"):
        read_pages(file.getvalue(), 10)


def test_a_pdf_with_too_many_pages_is_refused_before_they_are_read() -> None:
    with pytest.raises(Permanent, match="has 2 pages, and from 1 to 1 are read"):
        read_pages(TWO_PAGES, 1)


def test_threads_read_side_by_side() -> None:
    with ThreadPoolExecutor(4) as pool:
        assert {len(pages) for pages in pool.map(lambda _: read_pages(TWO_PAGES, 2), range(40))} == {2}
