"""`signalbox caps` lists pauses and caps, and sets and clears caps while jobs run."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError, Namespace
from datetime import UTC, datetime
from typing import Any

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.errors import UsageRefused
from signalbox_cli.options.bulk_options import actor_params
from signalbox_cli.options.pause_resume import WHOLE
from signalbox_cli.options.shared import add_target
from signalbox_cli.target.target import choose_target
from signalbox_cli.terminal import console, print_json, print_lines, width_of
from signalbox_cli.views.table import Column, Row, table
from signalbox_cli.views.times import read_span, show_age

EXAMPLES = (
    Example("caps", "list every pause and cap, with its running jobs"),
    Example("caps set tenant acme --max-running 5", "run at most five jobs of a tenant at once"),
    Example("caps set type deliver_webhook --rate 100/60s", "start at most a hundred jobs of a type per minute"),
    Example("caps clear tenant acme", "remove its cap"),
)
_RATE = re.compile(r"([1-9]\d{0,6})/(\w+)")


def configure(parser: CommandParser) -> None:
    parser.usage = (
        "signalbox caps\n"
        "       signalbox caps set type|lane|tenant|key NAME [--max-running N] [--rate N/SPAN] [--reason TEXT]\n"
        "       signalbox caps clear type|lane|tenant|key NAME [--reason TEXT]"
    )
    parser.explain("A cap is replaced as a whole: limits that you omit are removed. Jobs over a limit wait their turn.")
    parser.add_argument("verb", metavar="VERB", nargs="?", choices=("list", "set", "clear"), default="list",
                        help="list (the default), set or clear")  # fmt: skip
    parser.add_argument("kind", metavar="KIND", nargs="?", choices=WHOLE, help="type, lane, tenant or key")
    parser.add_argument("name", metavar="NAME", nargs="?", help="its name")
    parser.add_argument("--max-running", type=_count, metavar="N", help="run at most N at once; 0 starts none")
    parser.add_argument("--rate", type=_rate, metavar="N/SPAN", help="start at most N in a SPAN: 100/60s")
    parser.add_argument("--reason", metavar="TEXT", help="the reason, for the audit log")
    add_target(parser)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError(f"'{text}' is not a whole number from 0")
    return int(text)


def _rate(text: str) -> tuple[int, int]:
    found = _RATE.fullmatch(text)
    span = read_span(found[2]) if found else None
    if found is None or span is None or span.total_seconds() < 1:
        raise ArgumentTypeError(f"'{text}' is not a rate, such as 100/60s or 5/1h")
    return int(found[1]), int(span.total_seconds())


def run(args: Namespace) -> int:
    capped = args.max_running is not None or args.rate is not None
    if args.verb == "list":
        if args.kind or capped or args.reason:
            raise UsageRefused("`caps list` takes no arguments; `caps set` and `caps clear` take a kind and a name")
        return _list(args)
    if not args.name:
        raise UsageRefused(f"give a kind and a name, such as `caps {args.verb} tenant acme`")
    if capped != (args.verb == "set"):
        raise UsageRefused("`caps set` takes --max-running, --rate or both, and `caps clear` neither")
    rate, per_seconds = args.rate or (None, None)
    cap = {"max_running": args.max_running, "rate": rate, "per_seconds": per_seconds}
    answer = choose_target(args).operate("set_cap", kind=args.kind, key=args.name, **cap, **actor_params(args))
    if args.json:
        print_json(answer)
    else:
        control = answer["control"]
        print(
            f"{args.kind} {args.name}: {_limits(control) or 'no cap'}"
            if control
            else f"{args.kind} {args.name}: no cap"
        )
    return 0


def _list(args: Namespace) -> int:
    answer = choose_target(args).operate("list_controls")
    if args.json:
        print_json(answer)
    elif answer["controls"]:
        out, clock = console(), datetime.now(UTC)
        print_lines(out, table(_COLUMNS, [_row(control, clock) for control in answer["controls"]], width_of(out)))
    else:
        print("nothing is paused or capped")
    return 0


_COLUMNS = (
    Column("kind"),
    Column("name"),
    Column("state"),
    Column("cap"),
    Column("running", right=True),
    Column("held", right=True),
)


def _row(control: dict[str, Any], clock: datetime) -> Row:
    state = "paused" if control["paused"] else "open"
    numbers = [f"{control['running']:,}", f"{control['held']:,}"]
    who = f"by {control['changed_by']} {show_age(control['changed_at'], clock)}" + (
        f": {control['reason']}" if control["reason"] else ""
    )
    return Row([control["kind"], control["key"], state, _limits(control), *numbers], who)


def _limits(control: dict[str, Any]) -> str:
    at_once = [f"{control['max_running']:,} at once"] if control["max_running"] is not None else []
    rate = [f"{control['rate']:,} in {control['per_seconds']:,} s"] if control["rate"] is not None else []
    return ", ".join(at_once + rate)
