"""`signalbox tick`: rules of the laptop stack fired by hand, as the clock would at that minute."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime
from typing import Any

from local.cli.command import Example
from local.cli.command_parser import CommandParser
from local.cli.errors import CommandFailed
from local.cli.instant import show_instant
from local.cli.laptop_control import find_control
from local.cli.options import TIME, TIME_FORMS, add_laptop, instant
from local.cli.table import Column, Row, table
from local.cli.target import choose_target
from local.cli.terminal import console, print_json, print_lines, width_of

EXAMPLES = (
    Example("tick", "fire the rules that are due this minute"),
    Example("tick --at 2026-01-05T02:30:00Z", "fire those that were due then, for that instant"),
    Example("tick --rule sweep_runs --rule poll_data", "fire these, due or not"),
    Example("tick --all --wait", "fire every enabled rule, and wait until all is done"),
)
_PATIENCE_SECONDS = 300.0


def configure(parser: CommandParser) -> None:
    parser.explain(TIME_FORMS)
    parser.add_argument("--at", type=instant, metavar=TIME, help="the minute to fire for (default: now)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--rule", metavar="NAME", action="append", help="fire this one, due or not; may be repeated")
    which.add_argument("--all", action="store_true", help="fire every enabled rule, due or not")
    parser.add_argument("--wait", action="store_true", help="wait until all that follows is done")
    add_laptop(parser)


def run(args: Namespace) -> int:
    # The clock fires for whole minutes.
    at: datetime = (args.at or datetime.now(UTC)).replace(second=0, microsecond=0)
    control = find_control(args)
    due = not args.all and not args.rule
    fired = control.tick(at, _full_names(args), due=due)
    if args.wait and not control.idle(_PATIENCE_SECONDS)["idle"]:
        raise CommandFailed(
            f"the stack is still at work after {_PATIENCE_SECONDS:.0f} s; `signalbox logs` shows at what"
        )
    if args.json:
        print_json({"at": at.isoformat(), "fired": fired})
    else:
        _show(fired, at)
    return 1 if any(rule["failed"] for rule in fired) else 0


def _full_names(args: Namespace) -> list[str] | None:
    """Rules are called by their tasks, too."""
    if not args.rule:
        return None
    stack = choose_target(Namespace(stack=None, home=args.home)).stack
    return [name if name.startswith(f"{stack}-") else f"{stack}-{name}" for name in args.rule]


def _show(fired: list[dict[str, Any]], at: datetime) -> None:
    if not fired:
        print(f"no rule is due at {show_instant(at)}; --all fires every rule, --rule NAME one")
        return
    columns = [Column("rule"), Column("for"), Column("targets", right=True), Column("failed", right=True)]
    rows = [
        Row([rule["rule"], show_instant(rule["time"]), str(rule["targets"]), str(rule["failed"])]) for rule in fired
    ]
    out = console()
    print_lines(out, table(columns, rows, width_of(out)))
