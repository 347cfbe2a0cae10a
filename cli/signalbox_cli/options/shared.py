"""Define options that several commands share, and turn an option's text into a value."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from typing import Any

from signalbox_cli.command_parser import CommandParser
from signalbox_cli.views.times import TimeRefused, read_instant


def add_target(parser: CommandParser) -> None:
    """Add the options of commands that work on the laptop and on AWS alike."""
    group = parser.add_argument_group("which stack")
    which = group.add_mutually_exclusive_group()
    which.add_argument(
        "--stack", metavar="NAME", help="a stack on AWS, with the usual AWS configuration (or SIGNALBOX_STACK)"
    )
    _add_home(which)
    add_output(parser)


def add_laptop(parser: CommandParser) -> None:
    """Add the options of commands that concern the laptop's stack alone."""
    _add_home(parser.add_argument_group("which stack"))
    add_output(parser)


def add_output(parser: CommandParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print JSON, also for errors")
    group.add_argument("--debug", action="store_true", help="show the traceback of an error (or SIGNALBOX_DEBUG=1)")


def add_watch(parser: CommandParser) -> None:
    """Add the option of commands that only show something."""
    parser.add_argument(
        "--watch",
        metavar="SECONDS",
        nargs="?",
        const=2.0,
        type=interval,
        help="refresh every SECONDS (default: 2) until Ctrl-C",
    )


def _add_home(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--home", metavar="DIR", help="the laptop stack's folder (default: SIGNALBOX_HOME, else .signalbox)"
    )


TIME = "TIME"
TIME_FORMS = "TIME is ISO-8601 with a zone (2026-01-31T06:00:00Z), `now`, or how long ago (90s, 10m, 2h, 3d, 1w)."


def instant(text: str) -> datetime:
    try:
        return read_instant(text, datetime.now(UTC))
    except TimeRefused as refusal:
        raise argparse.ArgumentTypeError(str(refusal)) from None


def json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"'{text}' is not JSON ({error})") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"'{text}' is not a JSON object, such as {{\"limit\": 4}}")
    return value


def positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number from 1")
    return int(text)


def interval(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds from 0.1 to 86400")
    return seconds


def port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port: a number from 0 (any free one) to 65535")
    return int(text)


def parameter(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form NAME=VALUE")
    return name, value
