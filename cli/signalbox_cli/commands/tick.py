"""`signalbox tick` fires rules by hand, as the clock would at that minute, on the laptop and on AWS."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.errors import CommandFailed, UsageRefused
from signalbox_cli.options.shared import TIME, TIME_FORMS, add_target, instant
from signalbox_cli.stack.laptop_api import LaptopControl
from signalbox_cli.stack.tick_results import gather, look_before
from signalbox_cli.target.target import Target, choose_target
from signalbox_cli.terminal import console, print_json, print_lines, say, width_of
from signalbox_cli.views.table import Column, Row, table
from signalbox_cli.views.tick_page import COLUMNS, TickResult, rows
from signalbox_cli.views.times import show_instant

EXAMPLES = (
    Example("tick", "fire the rules that are due this minute"),
    Example("tick --at 2026-01-05T02:30:00Z", "fire the rules that were due then, for that instant"),
    Example("tick --rule sweep_runs --rule poll_data", "fire these, due or not"),
    Example("tick --all --wait", "fire every enabled rule, wait for all runs, and show them"),
    Example("tick --rule sweep_runs --stack signalbox-prod", "fire one rule of a stack on AWS"),
)
_PATIENCE_SECONDS = 300.0
Fired = list[dict[str, Any]]


class Rules(Protocol):
    """Fire rules, on the laptop or on AWS."""

    def tick(self, at: datetime, rules: list[str] | None, *, due: bool) -> Fired: ...


def configure(parser: CommandParser) -> None:
    parser.explain(
        f"{TIME_FORMS} With --wait, exit code 1 means that a run failed or an invocation was refused. Without it, exit "
        "code 1 means that a rule did not reach its target."
    )
    parser.add_argument("--at", type=instant, metavar=TIME, help="the minute to fire for (default: now)")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--rule", metavar="NAME", action="append", help="fire this one, due or not; may be repeated")
    which.add_argument("--all", action="store_true", help="fire every enabled rule, due or not")
    parser.add_argument("--wait", action="store_true", help="wait until all runs have ended (laptop only)")
    add_target(parser)


def run(args: Namespace) -> int:
    if args.wait and args.stack:
        raise UsageRefused(
            "--wait works only on the laptop: AWS does not report when all runs have ended; "
            f"`signalbox history --stack {args.stack}` shows the runs as they come"
        )
    at = _minute(args.at, datetime.now(UTC))
    target = choose_target(args)
    return _fire_and_wait(args, target, at) if args.wait else _fire(args, target, at)


def _minute(given: datetime | None, clock: datetime) -> datetime:
    """Return the whole minute to fire for, and refuse one ahead of the clock: runs for it would be refused."""
    at = (given or clock).replace(second=0, microsecond=0)
    if at <= clock:
        return at
    from signalbox.ledger.task_payload import CLOCK_SKEW  # it is slow to load

    if at > clock + CLOCK_SKEW:
        ahead = CLOCK_SKEW // timedelta(minutes=1)
        raise UsageRefused(
            f"--at {show_instant(at)} is more than {ahead} minutes ahead, so each run would be refused; "
            "leave it out to fire for this minute"
        )
    return at


def _fire(args: Namespace, target: Target, at: datetime) -> int:
    fired = _tick(args, _rules_of(target), target.stack, at)
    if args.json:
        print_json({"at": at.isoformat(), "fired": fired})
    else:
        _show(fired, at)
    return 1 if any(rule["failed"] for rule in fired) else 0


def _fire_and_wait(args: Namespace, target: Target, at: datetime) -> int:
    before, began = look_before(target), datetime.now(UTC)
    control = LaptopControl(target.endpoint or "")
    fired = _tick(args, control, target.stack, at)
    if not control.idle(_PATIENCE_SECONDS)["idle"]:
        raise CommandFailed(
            f"the stack is still busy after {_PATIENCE_SECONDS:.0f} s; `signalbox logs` shows with what"
        )
    outcome = gather(target, fired, before, at=at, began=began, idle=True)
    failures = outcome.failures() if fired else []  # nothing due means nothing failed
    if args.json:
        print_json({"at": at.isoformat(), "fired": fired, "runs": list(outcome.runs), "failures": failures})
    else:
        _show(fired, at)
        _show_outcome(outcome)
    for failure in failures:
        say(f"signalbox: tick: {failure}")
    return 1 if failures else 0


def _tick(args: Namespace, rules: Rules, stack: str, at: datetime) -> Fired:
    """Fire the rules. A rule may also be named by its task."""
    names = [name if name.startswith(f"{stack}.") else f"{stack}.{name}" for name in args.rule or ()]
    return rules.tick(at, names or None, due=not args.all and not names)


def _rules_of(target: Target) -> Rules:
    if target.endpoint:
        return LaptopControl(target.endpoint)
    from signalbox_cli.stack.rules import StackRules  # slow to load; the laptop does not need it

    return StackRules(target)


def _show(fired: Fired, at: datetime) -> None:
    if not fired:
        print(f"no rule is due at {show_instant(at)}; --all fires every rule, --rule NAME one")
        return
    columns = [Column("rule"), Column("for"), Column("targets", right=True), Column("failed", right=True)]
    lines = [
        Row([rule["rule"], show_instant(rule["time"]), str(rule["targets"]), str(rule["failed"])]) for rule in fired
    ]
    out = console()
    print_lines(out, table(columns, lines, width_of(out)))


def _show_outcome(outcome: TickResult) -> None:
    if not outcome.fired:
        return
    out = console()
    print()
    print_lines(out, table(COLUMNS, rows(outcome), width_of(out)))
    print(outcome.counted())
