"""A PDF's text is read page by page, and what can't be read is refused with the reason."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import pytest
from pypdf import PageObject, PdfReader, PdfWriter
from pypdf.generic import RectangleObject
from reportlab.pdfgen.canvas import Canvas

from signalbox.documents.pdf_text import TooManyPages, read_lines, read_pages
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
    """Return a page of 1,000 by 1,000 points with lines of 12 points."""
    file = BytesIO()
    canvas = Canvas(file, (1000, 1000))
    canvas.setFont("Helvetica", 12)
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


def test_lines_are_those_of_the_pages_text() -> None:
    for data in (TWO_PAGES, drawn("one exam-", "ple of", "", "two lines", " "), drawn("")):
        assert ["\n".join(line.text for line in page) for page in read_lines(data, 2)] == read_pages(data, 2)


def test_a_lines_place_is_a_share_of_the_page_from_its_top_left() -> None:
    ((first, second),) = read_lines(drawn("Hello", "a longer line"), 1)
    left, top, width, height = first.box
    # The baseline is 300 points below the top, the letters of 12 points are above it.
    assert (first.confidence, round(left, 2), round(top + height, 2)) == (1, 0.05, 0.3)
    assert (round(width, 2), round(height, 2)) == (0.03, 0.01)
    assert second.box[1] - top == pytest.approx(0.012, abs=0.003)
    assert second.box[2] > width


def crop(page: PageObject) -> None:
    page.cropbox = RectangleObject((0, 500, 500, 1000))


def turn(page: PageObject) -> None:
    page.rotate(90)  # its top is at the right then


@pytest.mark.parametrize(("change", "place"), [(turn, (0.7, 0.05)), (crop, (0.1, 0.6))])
def test_a_lines_place_is_that_on_the_page_as_it_is_shown(
    change: Callable[[PageObject], None], place: tuple[float, float]
) -> None:
    data = written(lambda writer: change(writer.pages[0]), drawn("Hello"))
    left, top, _, height = read_lines(data, 1)[0][0].box
    assert (left, top + (height if change is crop else 0)) == pytest.approx(place, abs=0.02)


def test_a_pdf_with_too_many_pages_is_refused_before_they_are_read() -> None:
    with pytest.raises(TooManyPages, match="has 2 pages, and from 1 to 1 are read"):
        read_pages(TWO_PAGES, 1)


def test_threads_read_side_by_side() -> None:
    with ThreadPoolExecutor(4) as pool:
        assert {len(pages) for pages in pool.map(lambda _: read_pages(TWO_PAGES, 2), range(40))} == {2}
