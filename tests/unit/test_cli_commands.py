"""The commands have help and examples, and refuse what they should."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from signalbox_cli.__main__ import main
from signalbox_cli.command import COMMANDS, Command, all_commands, commands_of_packs
from signalbox_cli.errors import UsageRefused
from signalbox_cli.parser import build_parser, overview
from tests.support.template import ROOT

NAMES = (
    "new up down status demo tick invoke history slots backfill submit jobs job cancel retry pause resume bulk-actions "
    "caps group signal schedules dead-letters redrive stats tokens migrate logs doctor completion"
)
EXAMPLES = [
    pytest.param(example.line, id=example.line) for command in all_commands() for example in command.load().EXAMPLES
]
each_command = pytest.mark.parametrize("command", all_commands(), ids=lambda command: command.name)


def refusal(line: str) -> str:
    with pytest.raises(UsageRefused) as refused:
        build_parser().parse_args(shlex.split(line))
    return str(refused.value)


def test_the_commands_are_those_promised_and_the_overview_names_them() -> None:
    assert [command.name for command in COMMANDS] == NAMES.split()
    for command in all_commands():
        assert f"  {command.name}" in overview()


def test_commands_of_packs_are_listed_with_what_their_modules_say() -> None:
    summary = "verify the chains of events of passports, and say which is broken"
    assert [(command.name, command.summary) for command in commands_of_packs()] == [("verify-events", summary)]


def test_each_module_of_a_command_is_on_the_list() -> None:
    modules = {path.stem for path in ROOT.glob("cli/signalbox_cli/commands/*.py") if path.stem != "__init__"}
    assert modules == {command.name.replace("-", "_") for command in COMMANDS}


@each_command
def test_a_command_has_examples_in_its_help_and_takes_json(command: Command) -> None:
    text = command.parser().format_help()
    assert f"examples:\n  signalbox {command.name}" in text
    assert "--json" in text
    assert len(command.load().EXAMPLES) >= 2


@pytest.mark.parametrize("line", EXAMPLES)
def test_each_example_is_one_that_the_command_takes(line: str) -> None:
    args = build_parser().parse_args(shlex.split(line))
    assert args.command.name == line.split(maxsplit=1)[0]


@pytest.mark.parametrize("line", EXAMPLES)
def test_a_file_that_an_example_names_is_there(line: str) -> None:
    assert [name for name in re.findall(r"events/\S+", line) if not (ROOT / name).exists()] == []


@each_command
def test_an_example_is_of_its_own_command(command: Command) -> None:
    assert {example.line.split()[0] for example in command.load().EXAMPLES} == {command.name}


@pytest.mark.parametrize(
    ("line", "stack"),
    [("jobs", "signalbox-prod"), ("jobs --stack other", "other"), ("jobs --home .signalbox", None)],
)
def test_stack_may_be_named_by_a_variable(monkeypatch: pytest.MonkeyPatch, line: str, stack: str | None) -> None:
    monkeypatch.setenv("SIGNALBOX_STACK", "signalbox-prod")
    assert build_parser().parse_args(line.split()).stack == stack


def test_laptops_own_commands_know_no_other_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGNALBOX_STACK", "signalbox-prod")
    assert "stack" not in build_parser().parse_args(["up"])


def test_help_loads_nothing_that_takes_long() -> None:
    """A limit in milliseconds would hold on some machines only."""
    code = (
        "import sys\nfrom signalbox_cli.__main__ import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    print(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "signalbox_cli.parser" in loaded
    assert not loaded & {"rich", "boto3", "botocore", "psycopg", "psutil", "signalbox_laptop.up"}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "name a command; `signalbox --help` lists them"),
        ("hstory", "'hstory' is not a command; did you mean `signalbox history`?"),
        ("frobnicate", "'frobnicate' is not a command; `signalbox --help` lists"),
        ("history --limmit 3", "unrecognized arguments: --limmit 3; `signalbox history --help` shows examples"),
        ("history --since 2026-01-05T02:30", "'2026-01-05T02:30' has no time zone; in UTC it is 2026-01-05T02:30:00Z"),
        ("slots --until soon", "'soon' is not a time"),
        ("tick --at 2026-01-05", "has no time zone"),
        ("tick --all --rule x", "not allowed with"),
        ("history --limit 0", "'0' is not a whole number from 1"),
        ("history --status done", "invalid choice: 'done'"),
        ("history --stack a --home b", "not allowed with"),
        ("invoke sweep_runs --params {", "'{' is not JSON"),
        ("invoke sweep_runs --params []", "'[]' is not a JSON object"),
        ("up --port 70000", "'70000' is not a port"),
        ("up --parameter X", "'X' is not of the form NAME=VALUE"),
        ("logs --grep (", "'(' is not a regular expression"),
        ("down --stack prod", "unrecognized arguments"),
        ("dead-leters", "did you mean `signalbox dead-letters`?"),
        ("jobs --status done", "invalid choice: 'done'"),
        ("submit x --delay soon", "'soon' is not a length of time"),
        ("submit x --delay 5m --at 2026-01-05T00:00Z", "not allowed with"),
        ("caps set tenant acme --rate fast", "'fast' is not a rate, such as 100/60s"),
        ("caps set tenant acme --max-running -1", "'-1' is not a whole number from 0"),
        ("pause person jo", "invalid choice: 'person'"),
        ("stats --window ever", "'ever' is not a length of time"),
        ("dead-letters consume X", "invalid choice: 'consume'"),
        ("dead-letters ignore X --ignore-next 3 --ignore-until 2h", "not allowed with"),
        ("dead-letters ignore X --ignore-next 0", "'0' is not a whole number from 1"),
        ("dead-letters ignore X --ignore-until soon", "'soon' is not a time"),
        ("schedules create a b --cron '* * * * *' --every 5m", "not allowed with"),
        ("redrive X --payload []", "is not a JSON object"),
    ],
)
def test_what_is_mistyped_is_refused_in_one_line_that_says_what_next(line: str, words: str) -> None:
    assert words in refusal(line)
    assert "\n" not in refusal(line)


def test_mistake_is_a_json_error_where_json_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--limmit", "3", "--json"]) == 2
    told = capsys.readouterr()
    message = "unrecognized arguments: --limmit 3; `signalbox history --help` shows examples"
    assert json.loads(told.out) == {"error": {"type": "UsageRefused", "message": message}}
    assert told.err == f"signalbox: {message}\n"


def test_a_mistake_leaves_the_output_empty_where_people_read_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "--limmit", "3"]) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("which", [[], ["--stack", "prod"]], ids=["laptop", "aws"])
def test_a_tick_far_ahead_is_refused_before_anything_is_asked(
    which: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    ahead = datetime.now(UTC) + timedelta(minutes=7)
    assert main(["tick", "--at", ahead.isoformat(), *which]) == 2
    said = capsys.readouterr().err
    assert f"--at {ahead:%Y-%m-%dT%H:%MZ} is more than 5 minutes ahead, so each run would be refused" in said


def test_waiting_for_an_aws_stack_is_refused_with_an_alternative(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tick", "--wait", "--stack", "prod"]) == 2
    assert "`signalbox history --stack prod` shows the runs" in capsys.readouterr().err
