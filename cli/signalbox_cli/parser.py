"""Parse the whole command line: the words after `signalbox` become a command with its options, or a text."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence

from signalbox_cli.command import all_commands, find_command
from signalbox_cli.errors import UsageRefused


class CommandLine:
    """Parse as argparse's own parsers do, and load only the command that was typed."""

    def parse_args(self, words: Sequence[str] | None = None) -> Namespace:
        """Return the options, with the command as `command`. End the process if only a text was asked for."""
        typed = list(sys.argv[1:] if words is None else words)
        if not typed:
            raise UsageRefused("name a command; `signalbox --help` lists them")
        if typed[0] in ("-h", "--help", "help"):
            print(overview())
            sys.exit(0)
        if typed[0] == "--version":
            from importlib.metadata import version

            print(f"signalbox {version('signalbox')}")
            sys.exit(0)
        command = find_command(typed[0])
        args = command.parser().parse_args(typed[1:], Namespace(command=command))
        if "stack" in args and args.stack is None and args.home is None:
            args.stack = os.environ.get("SIGNALBOX_STACK") or None
        return args


def build_parser() -> CommandLine:
    return CommandLine()


def overview() -> str:
    """Return the text of `signalbox --help`."""
    commands = all_commands()
    width = max(len(command.name) for command in commands)
    lines = [f"  {command.name:{width}}  {command.summary}" for command in commands]
    return "\n".join(
        [
            "usage: signalbox COMMAND [OPTION ...]",
            "",
            "Operates a Signalbox stack: the one on this laptop, or with --stack NAME (or SIGNALBOX_STACK) one on AWS.",
            "",
            "commands:",
            *lines,
            "",
            "`signalbox COMMAND --help` shows a command's options, and examples of its use.",
        ]
    )
