"""`signalbox pause` stops jobs of a type, lane, tenant, key or schedule, or certain jobs, from starting."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.options.bulk_options import BulkCommand
from signalbox_cli.options.pause_resume import configure_pause, run_pause

EXAMPLES = (
    Example(
        "pause type deliver_webhook --reason 'the receiver is down'", "start no job of the type; running jobs continue"
    ),
    Example("pause tenant acme", "start no job of the tenant"),
    Example("pause schedule nightly-import", "submit no job until it is resumed"),
    Example("pause jobs ID", "pause one job"),
    Example("pause jobs --type import_table --tag night --dry-run", "preview a pause by filter"),
)


def configure(parser: CommandParser) -> None:
    parser.explain("Running jobs continue. `signalbox caps` lists what is paused.")
    configure_pause(parser, "pause")


def run(args: Namespace) -> int:
    return run_pause(args, COMMAND)


def _describe(answer: Mapping[str, Any]) -> str:
    return f"paused {answer['paused']:,}"


COMMAND = BulkCommand("pause", "pause", ("pending", "queued"), _describe)
