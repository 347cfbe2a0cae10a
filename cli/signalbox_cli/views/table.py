"""Draw tables of plain columns, each as wide as its cells.

A note that does not fit beside a row stands below it, indented: an error message deserves a line, not a narrow column.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from signalbox_cli.views.palette import style_of

_GAP = "  "
_NARROWEST_NOTE = 30
_ID_SIZES = (8, 13, 18, 23)  # where the parts of a UUID end


@dataclass(frozen=True, slots=True)
class Column:
    """Describe a column: its heading, and on which side its cells are flush."""

    name: str
    right: bool = False
    spare: int = 0  # columns with the highest are left out first if the table is too wide; 0: never
    ids: int = 0  # the cells are ids: show this many characters, or more if the ids differ only later; 0: no ids


@dataclass(frozen=True, slots=True)
class Row:
    """Describe a row: its cells as text, a status in its colour. The note may be long."""

    cells: Sequence[str]
    note: str = ""


def table(columns: Sequence[Column], rows: Sequence[Row], width: int) -> list[Text]:
    """Return the lines of a table for a terminal of that width."""
    sizes = [_size(column, [row.cells[at] for row in rows]) for at, column in enumerate(columns)]
    rows = [
        Row([cell.replace("\n", " ")[:size] for cell, size in zip(row.cells, sizes, strict=True)], row.note)
        for row in rows
    ]
    widths = [max([len(column.name), *(len(row.cells[at]) for row in rows)]) for at, column in enumerate(columns)]
    kept = _fitting(columns, widths, width)
    columns, widths = [columns[at] for at in kept], [widths[at] for at in kept]
    rows = [Row([row.cells[at] for at in kept], row.note) for row in rows]
    # Set columns closer together if that makes them fit.
    gap = _GAP if sum(widths) + len(_GAP) * (len(widths) - 1) <= width else " "
    heads = _line([column.name for column in columns], columns, widths, gap)
    lines = [Text(heads.plain.rstrip(), style="bold")]
    for row in rows:
        lines += _row(_line(row.cells, columns, widths, gap), row.note, width)
    return lines


def _size(column: Column, cells: Sequence[str]) -> int | None:
    """Return to how many characters the cells of a column are cut: ids to those that tell them apart."""
    if not column.ids:
        return None
    sizes = (size for size in _ID_SIZES if size >= column.ids)
    return next((size for size in sizes if len({cell[:size] for cell in cells}) == len(set(cells))), None)


def _fitting(columns: Sequence[Column], widths: Sequence[int], width: int) -> list[int]:
    """Return the places of the columns that are shown, closely set if need be."""
    kept = list(range(len(columns)))
    for at in sorted(kept, key=lambda at: -columns[at].spare):
        if columns[at].spare and sum(widths[one] + 1 for one in kept) - 1 > width:
            kept.remove(at)
    return kept


def _line(cells: Sequence[str], columns: Sequence[Column], widths: Sequence[int], gap: str) -> Text:
    line = Text()
    for at, (cell, column, size) in enumerate(zip(cells, columns, widths, strict=True)):
        if at:
            line.append(gap)
        line.append(cell.rjust(size) if column.right else cell.ljust(size), style=style_of(cell))
    return line


def _row(line: Text, note: str, width: int) -> list[Text]:
    if not note:
        line.rstrip()
        return [line]
    if "\n" not in note and len(line) + len(_GAP) + len(note) <= width:
        return [line.append(_GAP).append(note, style="dim")]
    line.rstrip()
    indent = _GAP * 3
    # Keep a command in an error whole at its hyphens.
    wrapped = textwrap.wrap(note, max(width - len(indent), _NARROWEST_NOTE), break_on_hyphens=False)
    return [line, *(Text(indent + part, style="dim") for part in wrapped)]
