"""A real bash reads the script of `signalbox completion` and completes with it."""

from __future__ import annotations

import subprocess

import pytest

from signalbox_cli.__main__ import main
from signalbox_cli.command import all_commands


def script_for(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("signalbox dead", {"dead-letters"}),
        ("signalbox jobs --sta", {"--status", "--stack"}),
        ("signalbox jobs --status fai", {"failed"}),
        ("signalbox completion z", {"zsh"}),
        ("signalbox nothing --", set()),
    ],
)
def test_bash_completes(typed: str, found: set[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = typed.split(" ")
    ask = f'COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}; _signalbox; echo "${{COMPREPLY[@]}}"'
    script = f"{script_for('bash', capsys)}\n{ask}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == found


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_each_shell_has_all_commands(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    script = script_for(shell, capsys)
    assert [command.name for command in all_commands() if command.name not in script] == []
