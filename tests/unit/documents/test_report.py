"""A report shows its text as it is, on as many pages as it takes, in the same bytes each time."""

from __future__ import annotations

import subprocess
import sys
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pypdf import PdfReader

from signalbox.documents.pdf_text import read_pages
from signalbox.documents.report import Facts, Heading, PageBreak, Paragraph, Part, Table, report

SAMPLE: list[Part] = [
    Heading("Results"),
    Facts([("Order", "4711"), ("Customer", "Müller & Söhne")]),
    Table(["Day", "Amount"], [["2026-03-10", "12.50"]]),
]
texts = st.text(max_size=40) | st.integers(1, 3000).map(lambda n: "long" * n)
rows = st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(texts, min_size=n, max_size=n), min_size=1, max_size=5))
part: st.SearchStrategy[Part] = st.one_of(
    texts.map(Heading),
    texts.map(Paragraph),
    st.lists(st.tuples(texts, texts), max_size=3).map(Facts),
    rows.map(lambda found: Table(found[0], found[1:])),
    st.just(PageBreak()),
)


def shown(*parts: Part) -> str:
    return "\n".join(read_pages(report("T", parts), 100))


def test_the_parts_stand_in_their_order() -> None:
    text = shown(*SAMPLE)
    assert text == "page 1\nT\nResults\nOrder 4711\nCustomer Müller & Söhne\nDay Amount\n2026-03-10 12.50"


def test_the_same_content_gives_the_same_bytes_in_another_process() -> None:
    code = "import sys; from signalbox.documents.report import *; p = Paragraph('Grüße')"
    code += "; sys.stdout.buffer.write(report('T', [p]))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    assert report("another", SAMPLE) == report("another", SAMPLE)
    assert report("T", [Paragraph("Grüße")]) == other


def test_each_page_has_the_footer() -> None:
    pages = read_pages(report("T", [PageBreak(), Paragraph("x")], footer="Made on <b>Monday</b>"), 2)
    assert [page.splitlines()[0] for page in pages] == [f"Made on <b>Monday</b> page {n}" for n in (1, 2)]


def test_text_is_never_markup() -> None:
    text = "<b>bold</b> <img src='http://127.0.0.1/x'/> &amp; <para>"
    assert text in shown(Paragraph(text))
    assert text in shown(Facts([("markup", text)]))
    assert text in shown(Heading(text))


def test_characters_that_the_font_lacks_are_question_marks() -> None:
    assert "Ł € – ñ ?? e? é x" in shown(Paragraph("Ł € – ñ 漢字 e\u0338 e\u0301 x\x00\x07\ud800".rstrip("\ud800")))
    assert "half ?" in shown(Paragraph("half \ud800"))


def test_line_breaks_are_kept() -> None:
    assert "one\ntwo" in shown(Paragraph("one\r\ntwo"))


def test_a_table_repeats_its_heads_on_each_page() -> None:
    pages = read_pages(report("T", [Table(["Day", "Amount"], [[f"day {n}", "1"] for n in range(200)])]), 100)
    assert len(pages) > 3
    assert all("Day Amount" in page for page in pages)
    assert [page.splitlines()[0] for page in pages] == [f"page {n}" for n in range(1, len(pages) + 1)]


def test_nothing_of_a_cell_longer_than_a_page_is_lost() -> None:
    words = [f"word{n}" for n in range(5000)]
    pages = read_pages(report("T", [Table(["a", "b"], [["x", " ".join(words)]])]), 100)
    assert len(pages) > 2
    assert [word for word in " ".join(pages).split() if word.startswith("word")] == words


@pytest.mark.parametrize("rows", [[["only one"]], [["a", "b", "c"]]])
def test_a_row_that_does_not_fit_its_columns_is_refused(rows: list[list[str]]) -> None:
    with pytest.raises(ValueError, match="a cell for each column"):
        report("T", [Table(["a", "b"], rows)])


def test_title_and_subject_are_the_documents_own() -> None:
    told = PdfReader(BytesIO(report("Q1\n<b>", [], subject="figures"))).metadata
    assert told is not None
    assert (told.title, told.subject) == ("Q1 <b>", "figures")


@settings(max_examples=40)
@given(texts, st.lists(part, max_size=5))
def test_any_content_becomes_a_pdf_that_can_be_read(title: str, parts: list[Part]) -> None:
    assert len(PdfReader(BytesIO(report(title, parts))).pages) == len(read_pages(report(title, parts), 1000))
