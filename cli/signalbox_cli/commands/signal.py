"""`signalbox signal` sends a signal that jobs wait for."""

from __future__ import annotations

import json
from argparse import ArgumentTypeError, Namespace
from typing import Any

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.options.bulk_options import actor_params
from signalbox_cli.options.shared import add_target
from signalbox_cli.target.target import choose_target
from signalbox_cli.terminal import print_json
from signalbox_cli.views.numbers import counted

EXAMPLES = (
    Example("signal approval:invoice-7", "the jobs that wait for this key go on"),
    Example("""signal approval:invoice-7 --payload '{"approved": true}'""", "and receive the payload"),
)


def configure(parser: CommandParser) -> None:
    parser.explain("The first signal with a key counts, whether jobs wait for it already or will.")
    parser.add_argument("key", metavar="KEY", help="the key that the jobs wait for")
    parser.add_argument("--payload", type=_json, metavar="JSON", help="what they receive")
    parser.add_argument("--reason", metavar="TEXT", help="the reason, for the audit log")
    add_target(parser)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ArgumentTypeError(f"'{text}' is not JSON ({error})") from None


def run(args: Namespace) -> int:
    found = choose_target(args).operate("send_signal", key=args.key, payload=args.payload, **actor_params(args))
    if args.json:
        print_json(found)
    elif found["signal"]["is_first"]:
        woken = found["signal"]["woken"]
        print(f"sent {args.key}: {counted(len(woken), 'job') + ' woken' if woken else 'no job waits for it yet'}")
    else:
        print(f"{args.key} was sent before: the first signal with a key counts")
    return 0
