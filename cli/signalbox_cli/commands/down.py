"""`signalbox down` stops the laptop stack and every process that it started."""

from __future__ import annotations

from argparse import Namespace

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.options.shared import add_laptop
from signalbox_cli.terminal import print_json, say
from signalbox_laptop.home import home_folder
from signalbox_laptop.up import down

EXAMPLES = (
    Example("down", "stop the stack of this folder"),
    Example("down --home /tmp/another", "stop the stack of another folder"),
)


def configure(parser: CommandParser) -> None:
    add_laptop(parser)


def run(args: Namespace) -> int:
    folder = home_folder(args.home)
    stopped = down(folder, say)
    if args.json:
        print_json({"stopped": stopped, "home": str(folder)})
    else:
        print("stopped" if stopped else f"no stack runs in {folder}")
    return 0
