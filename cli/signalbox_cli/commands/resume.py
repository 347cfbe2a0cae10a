"""`signalbox resume` lets what was paused go on, unless another pause still holds it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.options.bulk_options import BulkCommand
from signalbox_cli.options.pause_resume import configure_pause, run_pause

EXAMPLES = (
    Example("resume type deliver_webhook", "the type goes on, and its jobs that were held back"),
    Example("resume schedule nightly-import", "it submits jobs again, from its next time on"),
    Example("resume jobs ID", "one job, by its id"),
    Example("resume jobs --tag night --yes", "paused jobs by filter; do not ask"),
)


def configure(parser: CommandParser) -> None:
    parser.explain("A job that was paused by itself goes on only when it is resumed by itself, too.")
    configure_pause(parser, "resume")


def run(args: Namespace) -> int:
    return run_pause(args, COMMAND)


def _tell(answer: Mapping[str, Any]) -> str:
    held = f"; {answer['held']:,} stay paused, since something else holds them" if answer["held"] else ""
    return f"resumed {answer['resumed']:,} jobs{held}"


COMMAND = BulkCommand("resume", "resume", ("paused",), _tell)
