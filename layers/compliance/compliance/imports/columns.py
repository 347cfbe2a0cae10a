"""Find out which column of a spreadsheet holds what. Nothing here reads or writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from signalbox.documents.spreadsheet import Cell

REQUIRED = ("permit_number", "obligation_title", "frequency", "deadline_date", "site_id")
FIELDS = (*REQUIRED, "obligation_description", "site_name")
_LEAST_LIKENESS = 85
_LEFT_OUT = str.maketrans("", "", " _-")


def map_columns(header: Sequence[Cell], mapping: Mapping[str, str]) -> dict[str, int]:
    """Return the place of each field's column: as the mapping says, else by the header's name, else by the nearest."""
    names = {place: _simple(str(cell)) for place, cell in enumerate(header) if cell is not None}
    given = {_simple(theirs): ours for theirs, ours in mapping.items()}
    found: dict[str, int] = {}
    for place, name in names.items():
        if given.get(name) in FIELDS:
            found.setdefault(given[name], place)
    free = {place: name for place, name in names.items() if name not in given}
    ours = {_simple(field): field for field in FIELDS}
    for place, name in free.items():
        if name in ours:
            found.setdefault(ours[name], place)
    return found | _nearest({place: name for place, name in free.items() if name not in ours}, found)


def missing_columns(columns: Mapping[str, int]) -> list[str]:
    return [field for field in REQUIRED if field not in columns]


def _nearest(names: Mapping[int, str], found: Mapping[str, int]) -> dict[str, int]:
    """Match what is left, the most alike first; each column and each field once."""
    from rapidfuzz import fuzz

    open_fields = [field for field in FIELDS if field not in found]
    alike = [(fuzz.ratio(name, _simple(field)), place, field) for place, name in names.items() for field in open_fields]
    nearest: dict[str, int] = {}
    for likeness, place, field in sorted(alike, key=lambda one: (-one[0], one[1])):
        if likeness >= _LEAST_LIKENESS and field not in nearest and place not in nearest.values():
            nearest[field] = place
    return nearest


def _simple(name: str) -> str:
    return "".join(name.casefold().split()).translate(_LEFT_OUT)
