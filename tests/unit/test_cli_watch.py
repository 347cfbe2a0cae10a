"""`--watch` repeats a command until somebody stops it."""

from __future__ import annotations

from argparse import Namespace

import pytest

from signalbox_cli.errors import UsageRefused
from signalbox_cli.parser import build_parser
from signalbox_cli.watch import watch


def test_command_is_shown_until_it_is_stopped(capsys: pytest.CaptureFixture[str]) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    def show(_: Namespace) -> int:
        print(f"look {len(pauses) + 1}")
        return 0

    with pytest.raises(KeyboardInterrupt):
        watch(show, Namespace(watch=0.5), pause)
    assert capsys.readouterr().out == "look 1\nlook 2\nlook 3\n"
    assert pauses == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(("words", "seconds"), [([], None), (["--watch"], 2.0), (["--watch", "10"], 10.0)])
@pytest.mark.parametrize("command", ["jobs", "history", "slots", "stats", "status"])
def test_lists_may_be_watched(command: str, words: list[str], seconds: float | None) -> None:
    assert build_parser().parse_args([command, *words]).watch == seconds


def test_interval_is_a_time() -> None:
    with pytest.raises(UsageRefused, match="'0' is not a number of seconds"):
        build_parser().parse_args(["jobs", "--watch", "0"])
