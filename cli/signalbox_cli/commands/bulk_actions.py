"""`signalbox bulk-actions` lists what was asked for all jobs or dead letters of a filter, and cancels it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.errors import UsageRefused
from signalbox_cli.options.bulk_options import actor_params, at_least
from signalbox_cli.options.shared import add_target, positive
from signalbox_cli.target.target import choose_target
from signalbox_cli.terminal import console, print_json, print_lines, width_of
from signalbox_cli.views.table import Column, Row, table
from signalbox_cli.views.times import show_instant

EXAMPLES = (
    Example("bulk-actions", "list the newest"),
    Example("bulk-actions --status running", "list those that are not done yet"),
    Example("bulk-actions show ID", "show one, and how many are left"),
    Example("bulk-actions cancel ID --reason 'wrong tenant'", "stop after the batch at work; what is done stays"),
)
VERBS = ("list", "show", "cancel")


def configure(parser: CommandParser) -> None:
    parser.usage = (
        "signalbox bulk-actions [list] [--status STATUS] [--limit N]\n"
        "       signalbox bulk-actions show ID\n"
        "       signalbox bulk-actions cancel ID [--reason TEXT]"
    )
    parser.explain("`cancel`, `retry`, `pause`, `resume` and `redrive` begin a bulk action where they have filters.")
    parser.add_argument("verb", metavar="VERB", nargs="?", choices=VERBS, default="list", help=", ".join(VERBS))
    parser.add_argument("id", metavar="ID", nargs="?", help="the id of a bulk action, or its start")
    parser.add_argument("--reason", metavar="TEXT", help="the reason, for the audit log")
    listing = parser.add_argument_group("list")
    listing.add_argument("--status", choices=("running", "cancelled", "completed"), help="only those in this state")
    listing.add_argument("--limit", type=positive, metavar="N", help="show at most N (default: 50)")
    add_target(parser)


def run(args: Namespace) -> int:
    if (args.id is None) != (args.verb == "list"):
        raise UsageRefused(f"`bulk-actions {args.verb}` takes {'no' if args.verb == 'list' else 'an'} ID")
    if args.verb == "list":
        return _list(args)
    by = actor_params(args) if args.verb == "cancel" else {}
    found = choose_target(args).operate(f"{args.verb}_bulk_action", id=args.id, **by)
    if args.json:
        print_json(found)
    else:
        print("\n".join(_lines(found["bulk_action"])))
    return 0


def _list(args: Namespace) -> int:
    found = choose_target(args).operate("list_bulk_actions", status=args.status, limit=args.limit)
    if args.json:
        print_json(found)
    elif found["bulk_actions"]:
        out = console()
        print_lines(out, table(_COLUMNS, [_row(one) for one in found["bulk_actions"]], width_of(out)))
    else:
        print("no bulk action matches" if args.status else "no bulk action yet")
    return 0


_COLUMNS = (Column("id", ids=8), Column("action"), Column("status"), Column("done"), Column("created"))


def _row(one: Mapping[str, Any]) -> Row:
    cells = [one["id"], one["action"], one["status"], _counts(one), show_instant(one["created_at"])]
    return Row(cells, "; ".join([_selection(one), *([one["reason"]] if one["reason"] else [])]))


def _counts(one: Mapping[str, Any]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in one["counts"].items() if count)


def _selection(one: Mapping[str, Any]) -> str:
    given = one["selection"].items()
    return ", ".join(f"{name} {_shown(name, value)}" for name, value in given if name not in ("until", "status"))


def _shown(name: str, value: Any) -> str:
    if name in ("since", "until"):
        return show_instant(value)
    return " or ".join(value) if isinstance(value, list) else str(value)


def _lines(one: Mapping[str, Any]) -> list[str]:
    facts = {
        "filter": ", ".join(f"{name} {_shown(name, value)}" for name, value in one["selection"].items()),
        "done": _counts(one),
        "left": at_least(one["left"], more=one["more"]) if one.get("left") else None,
        "rate": one["rate_per_minute"] and f"{one['rate_per_minute']:,} a minute",
        "created": f"{show_instant(one['created_at'])} by {one['requested_by']}",
        "ended": one["finished_at"] and show_instant(one["finished_at"]),
        "reason": one["reason"],
    }
    return [
        f"bulk action {one['id']} ({one['action']}) is {one['status']}",
        *(f"  {name:9} {value}" for name, value in facts.items() if value),
        *(f"  refused   {refused['id']}  {refused['reason']}" for refused in one["refused"]),
    ]
