"""Read the rows of a spreadsheet's first sheet: xlsx, xls, ods, or CSV in UTF-8 with commas or semicolons.

A file from outside may be made to fill the memory: five kilobytes can name a cell in the last row of the last column,
and the library then asks for a table up to there. Workbooks are read in a process of their own, `sheet_process`, whose
bounds end only itself.
"""

from __future__ import annotations

import csv
import os
import pickle
import subprocess
import sys
from datetime import date, datetime
from io import BytesIO, StringIO
from itertools import islice
from zipfile import BadZipFile, ZipFile

from signalbox.packs.outcome import Permanent

Cell = str | float | int | bool | date | datetime | None
_ZIP, _XLS = b"PK", b"\xd0\xcf\x11\xe0"
_MOST_UNPACKED = 100 * 1024 * 1024


def read_rows(data: bytes, *, most_rows: int, most_unpacked: int = _MOST_UNPACKED) -> list[list[Cell]]:
    """Return the rows, without empty ones at the end; raise Permanent for what can't be read, or is too large.

    The cells of a CSV are texts. A duration or a time of day is a text, too, and an empty cell is None.
    """
    if data.startswith(_ZIP):
        _check_unpacked_size(data, most_unpacked)
    read = _sheet_rows if data.startswith((_ZIP, _XLS)) else _csv_rows
    rows = read(data, most_rows)
    while rows and all(cell is None for cell in rows[-1]):
        rows.pop()
    return rows


def _check_unpacked_size(data: bytes, most: int) -> None:
    """Look at what the directory declares, before anything is unpacked."""
    try:
        with ZipFile(BytesIO(data)) as archive:
            size = sum(file.file_size for file in archive.infolist())
    except (BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise Permanent(f"the spreadsheet is damaged: {error}") from None
    if size > most:
        raise Permanent(f"the spreadsheet unpacks to {size} bytes, and at most {most} are read")


def _sheet_rows(data: bytes, most_rows: int) -> list[list[Cell]]:
    # The layers are on the path of this process alone.
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "signalbox.documents.sheet_process", str(most_rows)]
    done = subprocess.run(command, input=data, env=environ, capture_output=True, check=False)
    if done.returncode:
        raise Permanent("the spreadsheet can't be read: it is damaged, or takes too much memory or time")
    read: list[list[Cell]] | str = pickle.loads(done.stdout)  # noqa: S301 - of our own process
    if isinstance(read, str):
        raise Permanent(f"the spreadsheet can't be read: {read}")
    return read


def _csv_rows(data: bytes, most_rows: int) -> list[list[Cell]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Permanent("the file is no spreadsheet, nor CSV in UTF-8") from None
    if "\0" in text:
        raise Permanent("the file is no spreadsheet, nor CSV: it holds NUL characters")
    try:
        rows = list(islice(csv.reader(StringIO(text, newline=""), delimiter=_delimiter(text)), most_rows + 1))
    except csv.Error as error:
        raise Permanent(f"the CSV can't be read: {error}") from None
    if len(rows) > most_rows:
        raise Permanent(f"the CSV has more than {most_rows} rows")
    return [[cell or None for cell in row] for row in rows]


def _delimiter(text: str) -> str:
    """Return the one that divides the first line into more cells."""
    first = text[: text.find("\n")] if "\n" in text else text
    return max(",;", key=lambda delimiter: len(next(csv.reader([first], delimiter=delimiter), [])))
