"""The command line draws its tables right."""

from __future__ import annotations

import pytest

from signalbox_cli.terminal import console, print_lines, say
from signalbox_cli.views.table import Column, Row, table

COLUMNS = [Column("task"), Column("items", right=True)]
LONG = "TaskDisabled: task 'sweep_runs' is disabled in this stack: take it out of SIGNALBOX_DISABLED_TASKS to run it"


def plain(rows: list[Row], width: int = 100) -> list[str]:
    return [line.plain for line in table(COLUMNS, rows, width)]


def test_columns_fit_their_content_and_numbers_are_flush_right() -> None:
    assert plain([Row(["sweep_runs", "7"]), Row(["poll", "1,250"])]) == [
        "task        items",
        "sweep_runs      7",
        "poll        1,250",
    ]


def test_a_note_stands_beside_its_row_where_there_is_room() -> None:
    assert plain([Row(["poll", "7"], "no upstream")])[1] == "poll      7  no upstream"


def test_a_long_note_stands_below_its_row_whole_and_within_the_width() -> None:
    lines = plain([Row(["poll", "7"], LONG), Row(["next", "8"])], width=60)
    assert lines[1] == "poll      7"
    assert lines[-1] == "next      8"
    assert all(line.startswith("      ") and len(line) <= 60 for line in lines[2:-1])
    assert " ".join(line.strip() for line in lines[2:-1]) == LONG


def test_columns_stand_closer_where_that_makes_them_fit() -> None:
    assert plain([Row(["sweep_runs", "7"])], width=16) == ["task       items", "sweep_runs     7"]


def test_columns_that_can_be_spared_make_room() -> None:
    columns = [Column("task"), Column("lane", spare=1), Column("items", right=True, spare=2)]
    heads = {width: table(columns, [Row(["sweep_runs", "low", "7"])], width)[0].plain for width in (30, 21, 20, 14, 9)}
    assert heads == {
        30: "task        lane  items",
        21: "task       lane items",
        20: "task        lane",
        14: "task",
        9: "task",
    }


def test_a_note_of_several_lines_never_tears_the_row() -> None:
    assert plain([Row(["poll", "7"], "one\ntwo")])[1:] == ["poll      7", "      one two"]


def test_a_cell_of_several_lines_never_tears_the_table() -> None:
    assert plain([Row(["po\nll", "7"])])[1:] == ["po ll      7"]


def test_what_others_have_named_does_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """A job's name may hold codes that clear the screen or write to the clipboard."""
    print_lines(console(), table(COLUMNS, [Row(["\x1b[2Jpoll\x9b", "7"], "\x1b]52;c;eA==\x07")], 80))
    say("\x1b[31mred")
    told = capsys.readouterr()
    assert told.out.splitlines()[1] == "?[2Jpoll?      7  ?]52;c;eA=="
    assert told.err == "?[31mred\n"


def test_a_status_has_its_colour_and_no_line_ends_in_blanks() -> None:
    (_, line) = table([Column("status"), Column("why")], [Row(["failed", ""])], 80)
    assert line.plain == "failed"
    assert [span.style for span in line.spans] == ["bold red"]


ID = "01a1f5ab-6ece-7d78-aa22-f7a61e63bba7"


@pytest.mark.parametrize(
    ("other", "shown"),
    [("02" + ID[2:], 8), (ID.replace("ece", "ecf"), 13), (ID.replace("22", "23"), 23), (ID[:-1] + "8", 36)],
)
def test_ids_are_cut_to_what_tells_them_apart(other: str, shown: int) -> None:
    lines = table([Column("id", ids=8)], [Row([ID]), Row([other])], 80)
    assert [line.plain for line in lines[1:]] == [ID[:shown], other[:shown]]
