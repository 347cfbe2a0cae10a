"""Define a command of `signalbox`: a name, one line about it, and a module that holds the rest.

Modules are named, not imported: only the typed command's module is loaded, so that `signalbox --help` is quick. Each
has EXAMPLES, `configure`, which adds its options, and `run`, which returns the exit code.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Protocol, cast

from signalbox_cli.command_parser import CommandParser
from signalbox_cli.errors import UsageRefused


@dataclass(frozen=True, slots=True)
class Example:
    """Pair a line, as it is typed after `signalbox`, with what it does."""

    line: str
    does: str


class CommandModule(Protocol):
    """Declare what a command's module must have."""

    EXAMPLES: Sequence[Example]

    def configure(self, parser: CommandParser) -> None: ...

    def run(self, args: Namespace) -> int: ...


@dataclass(frozen=True, slots=True)
class Command:
    """Describe one command, as a line of `signalbox --help` does."""

    name: str
    summary: str
    room: str = "signalbox_cli.commands"  # where its module is

    def load(self) -> CommandModule:
        return cast(CommandModule, import_module(f"{self.room}.{self.name.replace('-', '_')}"))

    def parser(self) -> CommandParser:
        """Return the command's own parser, with its options and its examples."""
        module = self.load()
        parser = CommandParser(f"signalbox {self.name}", self.summary, _epilog(module.EXAMPLES))
        module.configure(parser)
        return parser


_OF_PACKS = "commands"  # a namespace that packs share
COMMANDS = (
    Command("new", "write a new pack, or a new task or job type in a pack"),
    Command("up", "start the laptop stack and keep it up"),
    Command("down", "stop the laptop stack"),
    Command("status", "show whether a stack is up, where, and what it is doing"),
    Command("demo", "start a separate laptop stack, fire every rule once, show the results, and stop"),
    Command("tick", "fire rules by hand, due or not"),
    Command("invoke", "run a task now, or send any payload to a function"),
    Command("history", "list the runs in the ledger, newest first"),
    Command("slots", "show the slots of each task in a grid: succeeded, failed, missed, skipped"),
    Command("backfill", "run a task for a range of past slots, and manage backfills"),
    Command("submit", "submit a job, or many from a file"),
    Command("jobs", "list jobs, newest first"),
    Command("job", "show one job: its state, its attempts and its history"),
    Command("cancel", "cancel waiting jobs, and ask running jobs to stop"),
    Command("retry", "run jobs now that wait for a retry or their time"),
    Command("pause", "pause a type, lane, tenant, key or schedule, or certain jobs"),
    Command("resume", "resume what was paused"),
    Command("bulk-actions", "list what was begun for all jobs of a filter, and cancel it"),
    Command("caps", "list what is paused and capped, and set or clear caps"),
    Command("group", "show the progress of a group of jobs, or seal it"),
    Command("signal", "send a signal that jobs wait for"),
    Command("schedules", "list, create, pause, resume and delete job schedules"),
    Command("dead-letters", "list dead letters, and triage them"),
    Command("redrive", "retry dead letters"),
    Command("stats", "show job counts, throughput, failures and health"),
    Command("tokens", "list, create and revoke tokens of the HTTP API"),
    Command("migrate", "apply the pending migrations of the deployed code"),
    Command("logs", "show what the functions logged"),
    Command("doctor", "check the whole stack, and suggest fixes"),
    Command("completion", "print a completion script for your shell"),
)


def commands_of_packs() -> list[Command]:
    """Return the commands of the packs in this project: the modules of `layers/<pack>/commands`."""
    spec = find_spec(_OF_PACKS)
    found = (spec.submodule_search_locations if spec else None) or []
    folders = dict.fromkeys(Path(folder).resolve() for folder in found)
    return [
        Command(name.replace("_", "-"), _summary_of(folder / f"{name}.py"), _OF_PACKS)
        for folder in folders
        for _, name, _ in iter_modules([str(folder)])
    ]


def _summary_of(module: Path) -> str:
    """Return the first line of a module's docstring as those above are written; to import it would take long."""
    with module.open(encoding="utf-8") as lines:
        line = lines.readline().strip().strip('"').removesuffix(".")
    return line[:1].lower() + line[1:]


def all_commands() -> list[Command]:
    return [*COMMANDS, *commands_of_packs()]


def find_command(name: str) -> Command:
    """Return the command, or raise an error that names the nearest one."""
    by_name = {command.name: command for command in all_commands()}
    if name in by_name:
        return by_name[name]
    from difflib import get_close_matches

    close = get_close_matches(name, by_name, n=1)
    hint = f"did you mean `signalbox {close[0]}`?" if close else "`signalbox --help` lists the commands"
    raise UsageRefused(f"'{name}' is not a command; {hint}")


def _epilog(examples: Sequence[Example]) -> str:
    lines = [f"  signalbox {example.line}\n      {example.does}" for example in examples]
    return "\n".join(["examples:", *lines])
