"""`signalbox resume` resumes what was paused, unless another pause still holds it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.options.bulk_options import BulkCommand
from signalbox_cli.options.pause_resume import configure_pause, run_pause
from signalbox_cli.views.numbers import counted

EXAMPLES = (
    Example("resume type deliver_webhook", "resume the type, and release its jobs"),
    Example("resume schedule nightly-import", "submit jobs again, from its next time on"),
    Example("resume jobs ID", "resume one job"),
    Example("resume jobs --tag night --yes", "resume paused jobs by filter; do not ask"),
)


def configure(parser: CommandParser) -> None:
    parser.explain("A job that was paused by its id or a filter must be resumed the same way.")
    configure_pause(parser, "resume")


def run(args: Namespace) -> int:
    return run_pause(args, COMMAND)


def _describe(answer: Mapping[str, Any]) -> str:
    held = f"; {answer['held']:,} still held by another pause" if answer["held"] else ""
    return f"{counted(answer['resumed'], 'job')} released{held}"


COMMAND = BulkCommand("resume", "resume", ("paused",), _describe)
