"""Rows of the first sheet are read with their types, and what is no spreadsheet, or too large, is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from io import BytesIO
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import pytest
from openpyxl import Workbook

from signalbox.documents.spreadsheet import read_rows
from signalbox.packs.outcome import Permanent


def workbook(fill: Callable[[Any], object]) -> bytes:
    book, file = Workbook(), BytesIO()
    fill(book.active)
    book.save(file)
    return file.getvalue()


def with_cells(**cells: object) -> bytes:
    return workbook(lambda sheet: [sheet.__setitem__(name, value) for name, value in cells.items()])


def archive(**files: bytes) -> bytes:
    file = BytesIO()
    with ZipFile(file, "w") as zipped:
        for name, data in files.items():
            zipped.writestr(name, data, ZIP_STORED if name == "mimetype" else ZIP_DEFLATED)
    return file.getvalue()


def test_cells_of_a_workbook_have_their_types() -> None:
    moment = datetime(2026, 3, 10, 14, 30)  # noqa: DTZ001 - a sheet has no zones
    row = ["Müller", 12, 1.5, True, date(2026, 3, 10), moment, time(14, 30), timedelta(hours=30), None, "end"]
    read = ["Müller", 12, 1.5, True, date(2026, 3, 10), moment, "14:30:00", "1 day, 6:00:00", None, "end"]
    assert read_rows(workbook(lambda sheet: sheet.append(row)), most_rows=1) == [read]


def test_rows_and_columns_keep_their_place_and_empty_rows_at_the_end_go() -> None:
    assert read_rows(with_cells(B2="x", A5=""), most_rows=9) == [[None, None], [None, "x"]]
    assert read_rows(workbook(lambda sheet: None), most_rows=9) == []


def test_a_workbook_of_open_office_is_read() -> None:
    assert read_rows(open_document("<table:table-cell office:value-type='float' office:value='7'/>"), most_rows=1) == [
        [7.0]
    ]


def test_more_rows_than_asked_for_are_refused() -> None:
    data = workbook(lambda sheet: [sheet.append([number]) for number in range(11)])
    assert len(read_rows(data, most_rows=11)) == 11
    with pytest.raises(Permanent, match="11 rows, and at most 10"):
        read_rows(data, most_rows=10)
    with pytest.raises(Permanent, match="more than 10 rows"):
        read_rows(b"x\n" * 11, most_rows=10)


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        ("name,sum\nMüller,1".encode(), [["name", "sum"], ["Müller", "1"]]),
        (b"\xef\xbb\xbfname;sum\r\n'x,y;2\r\n;\r\n\r\n", [["name", "sum"], ["'x,y", "2"]]),
        (b'"a,b";"c\nd"\n,;2', [["a,b", "c\nd"], [",", "2"]]),
        (b"a,,c", [["a", None, "c"]]),
        (b"", []),
    ],
)
def test_csv_is_read_by_the_delimiter_of_its_first_line(data: bytes, rows: list[list[str | None]]) -> None:
    assert read_rows(data, most_rows=10) == rows


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"%PDF-1.7 \xe2\xe3\xcf", "no spreadsheet, nor CSV in UTF-8"),
        ("a,b".encode("utf-16"), "no spreadsheet, nor CSV in UTF-8"),
        (b"a\0b", "NUL"),
        (b"x" * 200_000, "field limit"),
        (b"PK\3\4 and nothing", "is damaged"),
        (archive(readme=b"no workbook"), "can't be read"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(2000), "can't be read"),
    ],
    ids=["PDF", "UTF-16", "NUL", "long cell", "cut zip", "other zip", "other OLE"],
)
def test_what_is_no_spreadsheet_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(Permanent, match=reason):
        read_rows(data, most_rows=10)


def test_a_zip_that_unpacks_to_too_much_is_refused_by_its_directory() -> None:
    bomb = archive(**{"xl/workbook.xml": bytes(2_000_000)})
    assert len(bomb) < 4000
    with pytest.raises(Permanent, match=r"unpacks to 2000000 bytes, and at most 1000000"):
        read_rows(bomb, most_rows=10, most_unpacked=1_000_000)


def test_a_small_file_that_fills_the_memory_ends_only_the_process_that_reads_it() -> None:
    with pytest.raises(Permanent, match="too much memory"):
        read_rows(with_cells(A1=1, XFD1048576=2), most_rows=10)


def open_document(cell: str) -> bytes:
    names = "urn:oasis:names:tc:opendocument:xmlns"
    content = (
        f"<office:document-content xmlns:office='{names}:office:1.0' xmlns:table='{names}:table:1.0'><office:body>"
        f"<office:spreadsheet><table:table table:name='S'><table:table-row>{cell}</table:table-row></table:table>"
        "</office:spreadsheet></office:body></office:document-content>"
    )
    manifest = f"<manifest:manifest xmlns:manifest='{names}:manifest:1.0'/>"
    kind = b"application/vnd.oasis.opendocument.spreadsheet"
    return archive(**{"mimetype": kind, "content.xml": content.encode(), "META-INF/manifest.xml": manifest.encode()})
