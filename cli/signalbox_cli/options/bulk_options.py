"""Send bulk actions on jobs: at once for ids, after a preview for a filter."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from getpass import getuser
from typing import Any

from signalbox_cli.command_parser import CommandParser
from signalbox_cli.errors import UsageRefused
from signalbox_cli.options.filters import JOBS
from signalbox_cli.target.target import Target, choose_target
from signalbox_cli.terminal import console, print_json, print_lines, say, width_of
from signalbox_cli.views.job_table import job_table

MOST_COUNTED = 10_000  # by a preview, in each state that can change, and of all jobs that have ended
ENDED = ("completed", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class BulkCommand:
    """Describe one kind of bulk command."""

    operation: str
    verb: str  # "cancel": for the prompt, and for the text when nothing was done
    states: Sequence[str]  # the states of the jobs that it changes
    describe: Callable[[Mapping[str, Any]], str]


def add_bulk_options(parser: CommandParser) -> None:
    """Add filters, and the options of every bulk command."""
    JOBS.add(parser)
    add_consent(parser)


def add_consent(parser: CommandParser) -> None:
    group = parser.add_argument_group("how")
    group.add_argument("--reason", metavar="TEXT", help="the reason, for the audit log")
    group.add_argument("--dry-run", action="store_true", help="only show a preview")
    group.add_argument("--yes", "-y", action="store_true", help="do not ask for confirmation")


def run_bulk_action(command: BulkCommand, args: Namespace, ids: list[str]) -> int:
    """Carry out the action and return the exit code: 1 if a job was refused, or the action was not confirmed."""
    JOBS.require(args, ids)
    if ids:
        target = choose_target(args)
        if args.dry_run:
            return _preview(command, args, target, {"ids": ids})
        return _report(command, args, target.operate(command.operation, ids=ids, **actor_params(args)))
    require_consent(args)
    target = choose_target(args)
    filters = JOBS.filters(args)
    if args.dry_run:
        return _preview(command, args, target, filters)
    seen = target.operate(command.operation, dry_run=True, **filters)["dry_run"]
    count = show_preview(command, seen, to_stderr=True)
    if not count:
        return nothing_done(args, f"no matching job is {' or '.join(command.states)}", code=0)
    if not (args.yes or confirmed(f"{command.verb} them?")):
        return nothing_done(args, "it was not confirmed", code=1)
    filters["until"] = seen["as_of"]
    return _report(command, args, target.operate(command.operation, **filters, **actor_params(args)))


def actor_params(args: Namespace) -> dict[str, Any]:
    """Return who requests the command, and why."""
    return {"by": requester(), "reason": args.reason}


def requester() -> str | None:
    try:
        return getuser()
    except (KeyError, OSError):
        return None  # in a container, a user may have no name


def require_consent(args: Namespace) -> None:
    if not (args.yes or args.dry_run or sys.stdin.isatty()):
        raise UsageRefused("nothing was done: no terminal to prompt on; add --yes, or --dry-run for a preview")


def confirmed(question: str) -> bool:
    """Ask on stderr, because a program may read the result."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def show_preview(command: BulkCommand, seen: Mapping[str, Any], *, to_stderr: bool) -> int:
    """Show the preview, and return how many jobs the action would change."""
    counts, more, out = seen["counts"], seen.get("more", False), console(stderr=to_stderr)
    if seen["sample"]:
        print_lines(out, job_table(seen["sample"], width_of(out), datetime.now(UTC)))
    if sum(counts.values()) > len(seen["sample"]):
        out.print(f"the newest {len(seen['sample'])} of {at_least(sum(counts.values()), more=more)}")
    concerned = {state: counts[state] for state in command.states if state in counts}
    others = {state: number for state, number in counts.items() if state not in command.states}
    out.print(f"to {command.verb}: {_total(concerned, more=more)}")
    if others:
        out.print(f"unchanged: {_total(others, more=more)}")
    return sum(concerned.values())


def nothing_done(args: Namespace, why: str, code: int) -> int:
    say(f"nothing was done: {why}")
    if args.json:
        print_json({"ordered": False, "reason": why})
    return code


def _preview(command: BulkCommand, args: Namespace, target: Target, params: Mapping[str, Any]) -> int:
    seen = target.operate(command.operation, dry_run=True, **params)
    if args.json:
        print_json(seen)
    else:
        show_preview(command, seen["dry_run"], to_stderr=False)
    return 0


def _report(command: BulkCommand, args: Namespace, answer: dict[str, Any]) -> int:
    refused = answer.get("refused", [])
    if args.json:
        print_json(answer)
    else:
        print(command.describe(answer))
        say_the_rest(answer)
        for one in refused:
            say(f"job {one['id']} is {one['status']}: unchanged")
    return 1 if refused else 0


def say_the_rest(answer: Mapping[str, Any]) -> None:
    """Say what becomes of the jobs that the first pass of a bulk action left."""
    if (answer.get("more") or answer.get("left")) and "bulk_action" in answer:
        say(f"the rest follows; `signalbox bulk-actions show {answer['bulk_action']}` shows how far it is")
    elif answer.get("more") or answer.get("left"):
        say("some are left: repeat the command")


def at_least(number: int, *, more: bool) -> str:
    """Return the number, or that there are more."""
    return f"more than {number:,}" if more else f"{number:,}"


def _total(counts: Mapping[str, int], *, more: bool) -> str:
    """Return the sum with its parts. A preview counts 10,000 in a state, and 10,000 that have ended."""
    total = sum(counts.values())
    ended = sum(number for state, number in counts.items() if state in ENDED)
    is_capped = more and max(ended, *counts.values(), 0) >= MOST_COUNTED
    counted = ", ".join(f"{number:,} {state}" for state, number in counts.items())
    return at_least(total, more=is_capped) + (f" ({counted})" if counted and not is_capped else "")
