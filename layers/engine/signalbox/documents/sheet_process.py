"""Read the first sheet of the workbook on the standard input, with bounded memory and time, in a process of its own.

The answer on the standard output is a pickle: the rows, or the reason why there are none. A process that ends without
an answer has met its bounds, or a fault of the library.
"""

from __future__ import annotations

import pickle
import resource
import sys
from contextlib import suppress
from datetime import date, time, timedelta
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from signalbox.documents.spreadsheet import Cell

_MOST_MEMORY = 256 * 1024 * 1024  # half of what a worker has
_MOST_SECONDS = 60  # of a processor
_Value = str | float | int | bool | date | time | timedelta


def main() -> None:
    """Answer for the workbook on the standard input; the first argument is the number of rows that it may have."""
    data = sys.stdin.buffer.read()
    with suppress(ValueError):  # macOS bounds no memory
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY + len(data), _MOST_MEMORY + len(data)))
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_SECONDS, _MOST_SECONDS))
    sys.stdout.buffer.write(pickle.dumps(_read(data, int(sys.argv[1]))))


def _read(data: bytes, most_rows: int) -> list[list[Cell]] | str:
    from python_calamine import CalamineError, load_workbook

    try:
        with load_workbook(BytesIO(data)) as book:
            if not book.sheet_names:
                return "it has no sheet"
            sheet = book.get_sheet_by_index(0)
            if sheet.end is None:
                return []
            if (rows := sheet.end[0] + 1) > most_rows:
                return f"it has {rows} rows, and at most {most_rows} are read"
            return [[_cell(value) for value in row] for row in sheet.to_python(skip_empty_area=False)]
    except CalamineError as error:
        return str(error)


def _cell(value: _Value) -> Cell:
    if value == "":
        return None
    return str(value) if isinstance(value, time | timedelta) else value


if __name__ == "__main__":
    main()
