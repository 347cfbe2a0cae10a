"""Write a PDF report of headings, paragraphs, facts and tables. The same content gives the same bytes.

All text is plain: nothing in it is markup. It is set in the fonts that come with reportlab (Bitstream Vera, for Latin
script), and a character that they lack becomes "?".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from html import escape
from io import BytesIO
from threading import Lock
from typing import TYPE_CHECKING

from signalbox.postgres.pg_text import clean

if TYPE_CHECKING:
    from reportlab.pdfgen.canvas import Canvas
    from reportlab.platypus import Flowable, SimpleDocTemplate

_PLAIN, _BOLD = "Vera", "VeraBd"
_SIZE, _LEADING = 9, 12
_MARGIN = 56  # points
_PADDING = 6  # that reportlab leaves within it
_MOST_COLUMNS = 40
_MOST_WEIGHT = 60  # characters of a column's longest cell
_LABEL_SHARE = 0.3
_TALLEST_HEADER = 200  # points: a taller one would leave the rows no room
_REPORTLAB = Lock()  # it keeps fonts for the process, and what a document uses of them
_BLANK = re.compile(r"\s+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_GREY = "#bbbbbb"


@dataclass(frozen=True, slots=True)
class Heading:
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """Show labels with their values."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Table:
    """Show rows below the names of their columns, which each page repeats."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class PageBreak:
    pass


Part = Heading | Paragraph | Facts | Table | PageBreak


def report(title: str, parts: Sequence[Part], *, subject: str = "", footer: str = "") -> bytes:
    """Return the report as a PDF on A4. The footer stands beside the number of each page."""
    from reportlab.platypus import SimpleDocTemplate

    file = BytesIO()
    margins = dict.fromkeys(("leftMargin", "rightMargin", "topMargin", "bottomMargin"), _MARGIN)
    document = SimpleDocTemplate(
        file, **margins, title=_plain(title), subject=_plain(subject), author="", invariant=1, pageCompression=0
    )
    with _REPORTLAB:
        width = document.width - 2 * _PADDING
        flowables = [_text(title, _BOLD, 16), *(one for part in parts for one in _flowables(part, width))]
        end_page = partial(_end_page, footer=footer)
        document.build(flowables, onFirstPage=end_page, onLaterPages=end_page)
    return file.getvalue()


def _flowables(part: Part, width: float) -> list[Flowable]:
    from reportlab import platypus

    match part:
        case Heading(text):
            # Not reportlab's keepWithNext, which never ends for a heading longer than a page.
            return [platypus.CondPageBreak(6 * _LEADING), platypus.Spacer(1, _LEADING), _text(text, _BOLD, 12)]
        case Paragraph(text):
            return [_text(text), platypus.Spacer(1, _LEADING / 2)]
        case Facts(pairs):
            return [_facts(pairs, width)] if pairs else []
        case Table(columns, rows):
            return [_table(columns, rows, width)]
        case PageBreak():
            return [platypus.PageBreak()]


def _facts(pairs: Sequence[tuple[str, str]], width: float) -> Flowable:
    cells = [[_text(label, _BOLD), _text(value)] for label, value in pairs]
    return _grid(cells, [width * _LABEL_SHARE, width * (1 - _LABEL_SHARE)], header_rows=0)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], width: float) -> Flowable:
    """Repeat the columns' names on each page, unless they would fill it."""
    if not 1 <= len(columns) <= _MOST_COLUMNS or any(len(row) != len(columns) for row in rows):
        raise ValueError(f"a table takes from 1 to {_MOST_COLUMNS} columns, and in each row a cell for each column")
    widths = _widths([columns, *rows], width)
    names = [_text(name, _BOLD) for name in columns]
    tallest = max(name.wrap(space, 0)[1] for name, space in zip(names, widths, strict=True))
    cells = [names, *([_text(cell) for cell in row] for row in rows)]
    return _grid(cells, widths, header_rows=1 if tallest < _TALLEST_HEADER else 0)


def _widths(rows: Sequence[Sequence[str]], width: float) -> list[float]:
    """Share half of the page's width alike, so that each column has some, and half by the columns' longest cells."""
    longest = [min(_MOST_WEIGHT, max(map(len, column)) + 1) for column in zip(*rows, strict=True)]
    return [width / 2 * (1 / len(longest) + length / sum(longest)) for length in longest]


def _grid(cells: list[list[Flowable]], widths: list[float], header_rows: int) -> Flowable:
    from reportlab.platypus import LongTable

    line = (0, 0), (-1, -1), 0.5, _GREY
    style = [("LINEBELOW", *line), ("VALIGN", (0, 0), (-1, -1), "TOP")]
    sides = {"LEFT": 0, "RIGHT": 4, "TOP": 2, "BOTTOM": 2}
    style += [(f"{side}PADDING", (0, 0), (-1, -1), points) for side, points in sides.items()]
    # A row that is taller than a page goes on overleaf.
    return LongTable(cells, colWidths=widths, repeatRows=header_rows, splitInRow=1, style=style, spaceAfter=_LEADING)


def _text(text: str, font: str = _PLAIN, size: int = _SIZE) -> Flowable:
    from reportlab import platypus
    from reportlab.lib.styles import ParagraphStyle

    style = ParagraphStyle(font, fontName=font, fontSize=size, leading=size * _LEADING / _SIZE)
    lines = (_shown(line, font) for line in text.splitlines())
    return platypus.Paragraph("<br/>".join(map(escape, lines)), style)


def _shown(line: str, font: str) -> str:
    known = _glyphs(font)
    return "".join(one if ord(one) in known else "?" for one in _plain(line))


def _plain(text: str) -> str:
    """Return the text in one line, composed, without control characters and half surrogate pairs."""
    return unicodedata.normalize("NFC", clean(_CONTROL.sub("", _BLANK.sub(" ", text))))


@cache
def _glyphs(font: str) -> frozenset[int]:
    """Register the font, and return the characters that it has."""
    from reportlab.pdfbase.pdfmetrics import registerFont
    from reportlab.pdfbase.ttfonts import TTFont

    loaded = TTFont(font, f"{font}.ttf")
    registerFont(loaded)
    return frozenset(loaded.face.charToGlyph)


def _end_page(canvas: Canvas, document: SimpleDocTemplate, footer: str) -> None:
    words = _shown(footer, _PLAIN)  # registers the font, which a report without plain text has not used yet
    canvas.setFont(_PLAIN, _SIZE)
    canvas.drawString(document.leftMargin + _PADDING, _MARGIN / 2, words)
    canvas.drawRightString(document.leftMargin + document.width - _PADDING, _MARGIN / 2, f"page {document.page}")
