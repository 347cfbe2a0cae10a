"""`signalbox backfill` runs past slots of a task again after showing the plan, and lists and controls backfills.

The first word is a verb or a TASK. A verb wins, so a task with the name of a verb can't be backfilled here.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from signalbox_cli.backfill_progress import Backfill, watch
from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.errors import UsageRefused
from signalbox_cli.options.bulk_options import actor_params, requester
from signalbox_cli.options.shared import TIME, TIME_FORMS, add_target, instant, json_object, positive
from signalbox_cli.target.target import Target, choose_target
from signalbox_cli.terminal import console, print_json, print_lines, say, width_of
from signalbox_cli.views.table import Column, Row, table
from signalbox_cli.views.times import show_instant

EXAMPLES = (
    Example("backfill prune_history --from 7d --to 1d", "show the plan, ask, start it, and watch it"),
    Example("backfill prune_history --from 7d --to 1d --dry-run", "only show the plan"),
    Example(
        "backfill poll_data --from 6h --to now --rate 4 --yes --no-wait", "four slots a minute; do not ask or wait"
    ),
    Example("backfill sync_stripe --from 7d --to now --only failed --newest-first", "failed slots, newest first"),
    Example("backfill sync_stripe --from 7d --to now --stop-after 3", "pause once three slots have failed"),
    Example("backfill list", "list the newest backfills"),
    Example("backfill show ID", "show one backfill"),
    Example("backfill pause ID --reason 'upstream is down'", "start no more slots"),
    Example("backfill rate ID --rate 10", "ten slots a minute from now on"),
    Example("backfill resume ID", "continue, and retry failed slots"),
    Example("backfill cancel ID", "start no more slots; can't be undone"),
)
VERBS = ("list", "show", "pause", "resume", "rate", "cancel")
_CREATE_ONLY = (
    "first",
    "last",
    "rate",
    "params",
    "force",
    "only",
    "newest_first",
    "stop_after",
    "dry_run",
    "yes",
    "wait",
)


def configure(parser: CommandParser) -> None:
    parser.usage = (
        "signalbox backfill TASK --from TIME --to TIME [OPTION ...]\n"
        "       signalbox backfill list [--status STATUS] [--limit N]\n"
        "       signalbox backfill show|pause|resume|cancel ID [--reason TEXT]\n"
        "       signalbox backfill rate ID --rate N [--reason TEXT]"
    )
    parser.explain(f"{TIME_FORMS} If the first word is {', '.join(VERBS)}, it is a verb, otherwise a TASK.")
    parser.add_argument("what", metavar="TASK|VERB", help="the task to run, or a verb")
    parser.add_argument("id", metavar="ID", nargs="?", help="the id of a backfill, or its start, after a verb")
    parser.add_argument("--reason", metavar="TEXT", help="the reason, which is kept with the backfill")
    _configure_create(parser)
    listing = parser.add_argument_group("list")
    listing.add_argument(
        "--status", choices=("running", "paused", "cancelled", "completed"), help="only backfills with this status"
    )
    listing.add_argument("--limit", type=positive, metavar="N", help="show at most N (default: 50)")
    add_target(parser)


def _configure_create(parser: CommandParser) -> None:
    create = parser.add_argument_group("create")
    create.add_argument("--from", dest="first", type=instant, metavar=TIME, help="the start of the range")
    create.add_argument("--to", dest="last", type=instant, metavar=TIME, help="the end of the range")
    create.add_argument("--rate", type=positive, metavar="N", help="slots per minute (default: 60)")
    create.add_argument("--params", type=json_object, metavar="JSON", help="the task's params")
    create.add_argument("--force", action="store_true", default=None, help="also run slots that have succeeded")
    create.add_argument("--only", choices=("failed", "missing"), help="only slots that failed, or that never ran")
    create.add_argument("--newest-first", action="store_true", default=None, help="start with the newest slot")
    create.add_argument("--stop-after", type=positive, metavar="N", help="pause once so many slots have failed")
    create.add_argument("--dry-run", action="store_true", default=None, help="only show the plan")
    create.add_argument("--yes", "-y", action="store_true", default=None, help="do not ask for confirmation")
    waiting = create.add_mutually_exclusive_group()
    waiting.add_argument("--wait", action="store_true", default=None, help="watch it until it ends (the default)")
    waiting.add_argument("--no-wait", dest="wait", action="store_false", default=None, help="return once it is created")


def run(args: Namespace) -> int:
    if args.what not in VERBS:
        return _create(args)
    given = {name for name in _CREATE_ONLY if getattr(args, name) is not None}
    if given - ({"rate"} if args.what == "rate" else set()):
        raise UsageRefused(
            f"`backfill {args.what}` takes no options of a new backfill; `signalbox backfill --help` lists its own"
        )
    if (args.id is None) != (args.what == "list"):
        raise UsageRefused(
            "`backfill list` takes no ID"
            if args.id
            else "name the ID of a backfill; `signalbox backfill list` shows them"
        )
    if args.what == "rate" and args.rate is None:
        raise UsageRefused("`backfill rate` needs --rate N, the slots per minute")
    return _list(args) if args.what == "list" else _look_after(args)


def _list(args: Namespace) -> int:
    found = choose_target(args).operate("list_backfills", status=args.status, limit=args.limit)
    if args.json:
        print_json(found)
    elif found["backfills"]:
        out = console()
        print_lines(out, table(_COLUMNS, [_row(backfill) for backfill in found["backfills"]], width_of(out)))
    else:
        print("no backfill matches" if args.status else "no backfill yet")
    return 0


_COLUMNS = (
    Column("id", ids=8),
    Column("task"),
    Column("from"),
    Column("to"),
    Column("status"),
    Column("slots", right=True),
)


def _row(backfill: Backfill) -> Row:
    slots = backfill["slots"]
    done = slots["total"] - slots["pending"] - slots["dispatched"]
    cells = [
        backfill["id"],
        backfill["task"],
        show_instant(backfill["from"]),
        show_instant(backfill["to"]),
        backfill["status"],
        f"{done:,}/{slots['total']:,}",
    ]
    notes = [f"{slots['failed']:,} failed"] if slots["failed"] else []
    return Row(cells, "; ".join([*notes, *([backfill["reason"]] if backfill["reason"] else [])]))


def _look_after(args: Namespace) -> int:
    target = choose_target(args)
    if args.what == "show":
        if args.reason is not None:
            raise UsageRefused("`backfill show` takes no --reason")
        backfill = target.operate("show_backfill", id=args.id)["backfill"]
    elif args.what == "rate":
        changed = target.operate("change_backfill", id=args.id, rate_per_minute=args.rate, **actor_params(args))
        backfill = changed["backfill"]
    else:
        backfill = target.operate(f"{args.what}_backfill", id=args.id, **actor_params(args))["backfill"]
    _print(backfill, args)
    return 0


def _print(backfill: Backfill, args: Namespace) -> None:
    if args.json:
        print_json({"backfill": backfill})
    else:
        print("\n".join(_lines(backfill)))


def _lines(backfill: Backfill) -> list[str]:
    counted = [f"{count:,} {name}" for name, count in backfill["slots"].items() if count and name != "total"]
    facts = {
        "range": f"{show_instant(backfill['from'])} to {show_instant(backfill['to'])}",
        "slots": f"{backfill['slots']['total']:,}: {', '.join(counted)}",
        "rate": f"{backfill['rate_per_minute']:,} a minute",
        "params": backfill["params"] or None,
        "force": "also runs slots that had succeeded" if backfill["force"] else None,
        "created": f"{show_instant(backfill['created_at'])} by {backfill['requested_by'] or 'unknown'}",
        "paused": _last_change(backfill) if backfill["status"] == "paused" else None,
        "cancelled": _last_change(backfill) if backfill["status"] == "cancelled" else None,
        "ended": backfill["finished_at"] and show_instant(backfill["finished_at"]),
        "reason": backfill["reason"],
    }
    head = f"backfill {backfill['id']} of {backfill['task']} is {backfill['status']}"
    return [head, *(f"  {name:9} {value}" for name, value in facts.items() if value)]


def _last_change(backfill: Backfill) -> str:
    """Return the time and the author of the last change."""
    return f"{show_instant(backfill['updated_at'])} by {backfill['changed_by'] or 'unknown'}"


def _create(args: Namespace) -> int:
    _refuse_incomplete(args)
    target = choose_target(args)
    plan = target.operate("create_backfill", **_params(args), dry_run=True)["dry_run"]
    if args.dry_run and args.json:
        print_json({"dry_run": plan})
        return 0
    (print if args.dry_run else say)("\n".join(_plan_lines(plan, args)))
    if args.dry_run or not plan["to_run"] or not (args.yes or _confirmed()):
        return _nothing_created(plan, args)
    origin = {"requested_by": requester(), "reason": args.reason}
    backfill = target.operate("create_backfill", **_params(args), **origin)["backfill"]
    if args.wait is not False:
        backfill = _watched(target, backfill)
    _print(backfill, args)
    return 1 if backfill["slots"]["failed"] else 0


def _refuse_incomplete(args: Namespace) -> None:
    if args.id is not None:
        raise UsageRefused(
            f"'{args.what}' is read as a task, so '{args.id}' is unexpected; the verbs are {', '.join(VERBS)}"
        )
    if args.status or args.limit:
        raise UsageRefused("--status and --limit belong to `backfill list`")
    if args.first is None or args.last is None:
        raise UsageRefused(
            f"a backfill of '{args.what}' needs --from and --to; `signalbox backfill --help` shows examples"
        )
    if not (args.yes or args.dry_run or sys.stdin.isatty()):
        raise UsageRefused("nothing was done: no terminal to prompt on; add --yes, or --dry-run to only show the plan")


def _params(args: Namespace) -> dict[str, Any]:
    return {
        "task": args.what,
        "from_": args.first,
        "to": args.last,
        "rate_per_minute": args.rate,
        "params": args.params,
        "force": args.force,
        "only": args.only,
        "newest_first": args.newest_first,
        "stop_after_failures": args.stop_after,
    }


def _plan_lines(plan: dict[str, Any], args: Namespace) -> list[str]:
    done, to_run = plan["already_succeeded"], plan["to_run"]
    again = "run again" if args.force else "skipped"
    if not plan["slots"]:
        return [f"{plan['task']}: no slot of the range is {args.only}"]
    return [
        f"{plan['task']}: {plan['slots']:,} slots from {show_instant(plan['first'])} to {show_instant(plan['last'])}",
        *([f"  {done:,} succeeded before: {again}"] if done else []),
        f"  {to_run:,} to run, {args.rate or 60:,} a minute"
        + (f": about {plan['minutes']:,} minutes" if plan["minutes"] > 1 else ""),
    ]


def _confirmed() -> bool:
    """Ask on stderr, because a program may read the result."""
    print("run them? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _nothing_created(plan: dict[str, Any], args: Namespace) -> int:
    if args.dry_run:
        return 0
    why = "all slots have succeeded; --force runs them again" if not plan["to_run"] else "it was not confirmed"
    if not plan["slots"]:
        why = f"no slot of the range is {args.only}"
    say(f"nothing was done: {why}")
    if args.json:
        print_json({"backfill": None})
    return 0 if not plan["to_run"] else 1


def _watched(target: Target, backfill: Backfill) -> Backfill:
    try:
        return watch(target, backfill)
    except KeyboardInterrupt:
        say(
            f"the backfill keeps running: `signalbox backfill show {backfill['id']}` shows its progress, "
            f"`signalbox backfill cancel {backfill['id']}` stops it"
        )
        raise
