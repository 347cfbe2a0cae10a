"""A spreadsheet's columns are found by their names, and each row is checked on its own."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest

from compliance.imports.columns import FIELDS, REQUIRED, map_columns, missing_columns
from compliance.imports.import_rows import Sites, check_duplicates, check_sites, preview_of, read_import_rows
from signalbox.documents.spreadsheet import Cell

SITE = "11111111-1111-4111-8111-111111111111"
FOREIGN = "22222222-2222-4222-8222-222222222222"
PLACES = {name: place for place, name in enumerate(FIELDS)}


def cells(**fields: Cell) -> list[Cell]:
    good = {"permit_number": "P1", "obligation_title": "T", "frequency": "monthly", "deadline_date": "2026-04-01"}
    return [(good | fields).get(name) for name in FIELDS]


def preview(*given: list[Cell], may_create: bool = False, skip: bool = True, existing: Any = ()) -> dict[str, Any]:
    rows = read_import_rows(given, PLACES, SITE)
    check_sites(rows, Sites({SITE}, {FOREIGN}), may_create=may_create)
    check_duplicates(rows, existing)
    return preview_of(rows, skip_duplicates=skip)


@pytest.mark.parametrize(
    "header",
    [
        list(REQUIRED),
        ["Permit Number", "OBLIGATION-TITLE", " frequency ", "DeadlineDate", "Site ID"],
        ["Permit Numbr", "Obligation Titel", "Frequncy", "Deadline Dates", "Site_id"],
    ],
)
def test_columns_are_found_by_their_names(header: list[Cell]) -> None:
    assert map_columns(header, {}) == {name: place for place, name in enumerate(REQUIRED)}


def test_unlike_names_are_missing() -> None:
    assert missing_columns(map_columns(["permit", None, 7, "when"], {})) == list(REQUIRED)


def test_mapping_wins_over_names() -> None:
    header: list[Cell] = ["permit_number", "Licence", "site name"]
    mapping = {"licence": "permit_number", "site name": "obligation_title", "absent": "frequency"}
    assert map_columns(header, mapping) == {"permit_number": 1, "obligation_title": 2}


def test_exact_name_wins_over_a_near_one() -> None:
    assert map_columns(["site names", "site_name"], {}) == {"site_name": 1}


def test_good_row_is_in_our_names() -> None:
    row = cells(permit_number=12.0, obligation_title=" T ", frequency="One-Time", site_name="North")
    [valid] = preview([None, " "], row)["valid_rows"]
    assert valid == {
        "row_number": 3,
        "data": {
            "permit_number": "12",
            "obligation_title": "T",
            "frequency": "ONE_TIME",
            "deadline_date": "2026-04-01",
            "site_id": SITE,
            "obligation_description": None,
            "site_name": "North",
        },
    }


@pytest.mark.parametrize(
    "given",
    [date(2026, 4, 1), datetime.fromisoformat("2026-04-01T09:00"), "2026-04-01", "2026-04-01 00:00:00", "01/04/2026"],
)
def test_dates_are_read(given: Cell) -> None:
    assert preview(cells(deadline_date=given))["valid_rows"][0]["data"]["deadline_date"] == "2026-04-01"


@pytest.mark.parametrize("given", [None, "04/13/2026", "31/02/2026", "1.4.2026", "20260401", 46113.0, "soon"])
def test_other_dates_are_bad(given: Cell) -> None:
    assert preview(cells(deadline_date=given))["error_rows"] == [{"row_number": 2, "errors": ["Invalid date format"]}]


def test_all_faults_of_a_row_are_said() -> None:
    row = cells(permit_number=" ", obligation_title=None, deadline_date="x", frequency="ANNUAL", site_id="nowhere")
    assert preview(row)["error_rows"][0]["errors"] == [
        "Missing permit_number",
        "Missing obligation_title",
        "Invalid date format",
        "Invalid frequency value",
        "Site not found",
    ]


@pytest.mark.parametrize(
    ("site", "may_create", "errors", "warnings"),
    [
        (SITE.upper(), False, [], []),
        ("Plant B", False, ["Site not found"], []),
        ("Plant B", True, [], ["Site will be created"]),
        (FOREIGN, True, ["Site not found"], []),
    ],
)
def test_site_is_ours_or_made(site: str, may_create: bool, errors: list[str], warnings: list[str]) -> None:
    found = preview(cells(site_id=site), may_create=may_create)
    assert [one for row in found["error_rows"] for one in row["errors"]] == errors
    assert [one for row in found["warning_rows"] for one in row["warnings"]] == warnings


@pytest.mark.parametrize(("skip", "valid"), [(True, [2]), (False, [2, 3, 4])])
def test_duplicates_are_warned_of(skip: bool, valid: list[int]) -> None:
    rows = [cells(), cells(), cells(obligation_title="known"), cells(frequency="never")]
    found = preview(*rows, skip=skip, existing={("P1", "known", SITE)})
    assert [row["row_number"] for row in found["valid_rows"]] == valid
    assert [row["row_number"] for row in found["warning_rows"]] == [3, 4]
    assert (found["row_count"], found["error_rows"][0]["row_number"]) == (4, 5)


def test_bad_row_makes_no_duplicate() -> None:
    found = preview(cells(frequency=None), cells(), [*cells()][:4])
    assert [row["row_number"] for row in found["valid_rows"]] == [3]
