"""`signalbox dead-letters` lists dead letters, one by one or by kind, and records how they were triaged."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime
from typing import Any

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.errors import UsageRefused
from signalbox_cli.options.bulk_options import (
    actor_params,
    add_consent,
    at_least,
    confirmed,
    nothing_done,
    require_consent,
)
from signalbox_cli.options.filters import LETTERS
from signalbox_cli.options.shared import TIME, TIME_FORMS, add_target, instant, positive
from signalbox_cli.target.pages import DEAD_LETTERS, fetch_pages
from signalbox_cli.target.target import Target, choose_target
from signalbox_cli.terminal import console, print_json, print_lines, say, width_of
from signalbox_cli.views.dead_letter_page import letter_page
from signalbox_cli.views.dead_letter_table import COLUMNS, KIND_COLUMNS, kind_row, letter_row
from signalbox_cli.views.table import table
from signalbox_cli.views.times import read_span, show_instant

EXAMPLES = (
    Example("dead-letters", "list the newest open dead letters"),
    Example("dead-letters --kinds", "list the kinds of failure, with counts"),
    Example("dead-letters show ID", "show one, with its attempts"),
    Example("dead-letters investigate ID --reason 'looking into it'", "record that you are looking into it"),
    Example(
        "dead-letters resolve --fingerprint PRINT --yes --reason 'fixed in 1.4'", "close a kind of failure as fixed"
    ),
    Example(
        "dead-letters ignore --type deliver_webhook --tenant acme --dry-run",
        "count the dead letters that this would change",
    ),
    Example(
        "dead-letters ignore --fingerprint PRINT --ignore-until 2d --yes --reason 'the receiver moves'",
        "ignore a kind of failure for two days",
    ),
)
DECISIONS = {
    "investigate": "investigating",
    "resolve": "resolved",
    "ignore": "ignored",
    "reopen": "pending",
}
VERBS = ("list", "show", *DECISIONS)
_OPEN = ["pending", "investigating"]


def configure(parser: CommandParser) -> None:
    parser.usage = (
        "signalbox dead-letters [list] [FILTER ...] [--kinds] [--everything]\n"
        "       signalbox dead-letters show ID\n"
        "       signalbox dead-letters investigate|resolve|ignore|reopen ID ... | FILTER ... [--reason TEXT]\n"
        "       signalbox dead-letters ignore --fingerprint PRINT --ignore-until TIME | --ignore-next N [--reason TEXT]"
    )
    parser.explain(
        "A resolved kind of failure is reopened when it occurs again. An ignored dead letter stays ignored; with "
        "--ignore-until or --ignore-next so are new ones of its kind, until a decision by the fingerprint alone. "
        f"`signalbox redrive` retries dead letters. {TIME_FORMS}"
    )
    parser.add_argument("verb", metavar="VERB", nargs="?", choices=VERBS, default="list", help=", ".join(VERBS))
    parser.add_argument("ids", metavar="ID", nargs="*", help="the ids of the dead letters, or their starts")
    LETTERS.add(parser)
    listing = parser.add_argument_group("list")
    listing.add_argument("--kinds", action="store_true", help="list the kinds of failure instead")
    listing.add_argument("--everything", action="store_true", help="also list closed ones")
    listing.add_argument("--limit", type=positive, default=50, metavar="N", help="show at most N (default: 50)")
    listing.add_argument("--before", metavar="PLACE", help="show the page before PLACE, as printed below a list")
    ignoring = parser.add_argument_group("ignore a kind of failure, with --fingerprint").add_mutually_exclusive_group()
    ignoring.add_argument(
        "--ignore-until", type=_time_to_come, metavar=TIME, help="until TIME, or for a length of time such as 2h or 3d"
    )
    ignoring.add_argument("--ignore-next", type=positive, metavar="N", help="for the next N failures")
    add_consent(parser)
    add_target(parser)


def _time_to_come(text: str) -> datetime:
    span = read_span(text)
    return instant(text) if span is None else datetime.now(UTC) + span


def run(args: Namespace) -> int:
    if args.verb != "ignore" and (args.ignore_until or args.ignore_next):
        raise UsageRefused("--ignore-until and --ignore-next go with `dead-letters ignore`")
    if args.verb == "list":
        return _list(args)
    return _show(args) if args.verb == "show" else _decide(args)


def _list(args: Namespace) -> int:
    if args.ids:
        raise UsageRefused("`dead-letters list` takes filters; `dead-letters show ID` shows one")
    filters = LETTERS.filters(args)
    if "status" not in filters and not args.everything:
        filters["status"] = _OPEN
    target = choose_target(args)
    if args.kinds:
        found = target.operate("list_dead_letters", by_kind=True, limit=args.limit, before=args.before, **filters)
    else:
        letters, following = fetch_pages(target, DEAD_LETTERS, args.limit, args.before, **filters)
        found = {"dead_letters": letters, "next": following}
    if args.json:
        print_json(found)
        return 0
    rows, clock = found["kinds" if args.kinds else "dead_letters"], datetime.now(UTC)
    if not rows:
        print("no dead letter matches" if LETTERS.filters(args) or args.everything else "no dead letter is open")
        return 0
    out = console()
    columns, row = (KIND_COLUMNS, kind_row) if args.kinds else (COLUMNS, letter_row)
    print_lines(out, table(columns, [row(one, clock) for one in rows], width_of(out)))
    if found.get("more"):
        print(f"{found['more']:,} more; --limit N shows more")
    if found.get("next"):
        print(f"the newest {len(rows):,}; --limit N shows more, --before {found['next']} the next page")
    return 0


def _show(args: Namespace) -> int:
    if len(args.ids) != 1 or LETTERS.filters(args):
        raise UsageRefused("name the ID of one dead letter; `signalbox dead-letters` lists them")
    found = choose_target(args).operate("show_dead_letter", id=args.ids[0])
    if args.json:
        print_json(found)
    else:
        out = console()
        print_lines(out, letter_page(found["dead_letter"], width_of(out), datetime.now(UTC)))
    return 0


def _decide(args: Namespace) -> int:
    LETTERS.require(args, args.ids)
    if not args.ids:
        require_consent(args)
    target = choose_target(args)
    rule = {name: value for name in ("ignore_until", "ignore_next") if (value := getattr(args, name))}
    params = {"ids": args.ids or None, "decision": DECISIONS[args.verb], **LETTERS.filters(args), **rule}
    if not args.ids or args.dry_run:
        count = _look(target, args, params)
        if args.dry_run:
            return 0
        if not count and not rule:
            return nothing_done(args, "no dead letter matches", code=0)
        if not (args.yes or confirmed(f"{args.verb} them?")):
            return nothing_done(args, "it was not confirmed", code=1)
    done = target.operate("triage_dead_letters", **params, **actor_params(args))
    if args.json:
        print_json(done)
    else:
        left = f"; {done['unchanged']:,} unchanged" if done["unchanged"] else ""
        print(f"{done['changed']:,} are {DECISIONS[args.verb]} now{left}{_to_come(args)}")
    return 0


def _to_come(args: Namespace) -> str:
    """Say which failures to come are ignored too."""
    if args.ignore_until:
        return f"; so are new ones of this kind until {show_instant(args.ignore_until)}"
    return f"; so are the next {args.ignore_next:,} of this kind" if args.ignore_next else ""


def _look(target: Target, args: Namespace, params: dict[str, Any]) -> int:
    """Show and return how many dead letters the action would change."""
    seen = target.operate("triage_dead_letters", dry_run=True, **params)["dry_run"]
    if args.json and args.dry_run:
        print_json({"dry_run": seen})
    else:
        (print if args.dry_run else say)(f"to {args.verb}: {at_least(seen['count'], more=seen['more'])}")
    count: int = seen["count"]
    return count
