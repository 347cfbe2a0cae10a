"""`signalbox new` writes all of it or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from signalbox_cli.errors import CommandFailed, UsageRefused
from signalbox_cli.parser import build_parser
from signalbox_cli.scaffold.project import Changes


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        (["pack", "Shop"], UsageRefused, "'Shop' is not a valid name"),
        (["pack", "a" * 41], UsageRefused, "is not a valid name"),
        (["pack", "shop", "--pack", "other"], UsageRefused, "--pack is required for a new task or job"),
        (["task", "close_orders"], UsageRefused, "--pack is required for a new task or job"),
        (["task", "close_orders", "--pack", "shop"], CommandFailed, "there is no pack 'shop' in layers/"),
        (["pack", "shop"], CommandFailed, "there is no template.yaml"),
    ],
)
def test_what_can_not_be_written_is_named(empty: Path, words: list[str], error: type[Exception], said: str) -> None:
    args = build_parser().parse_args(["new", *words])
    with pytest.raises(error, match=said):
        args.command.load().run(args)
    assert list(empty.iterdir()) == []


def test_a_file_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(CommandFailed, match="mine is there already: nothing was written"):
        Changes(tmp_path).add("mine", "theirs")


def test_a_file_without_a_place_for_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "template.yaml").write_text("Resources: {}\n")
    with pytest.raises(CommandFailed, match=r"template\.yaml has no place for this"):
        Changes(tmp_path).insert("template.yaml", "signalbox new pack: stack", "Shop: {}\n")
