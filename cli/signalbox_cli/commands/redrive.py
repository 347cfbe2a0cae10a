"""`signalbox redrive` retries dead letters, with a full new set of attempts, all at once or at a rate."""

from __future__ import annotations

from argparse import Namespace
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
    say_the_rest,
)
from signalbox_cli.options.filters import LETTERS
from signalbox_cli.options.shared import TIME_FORMS, add_target, json_object, positive
from signalbox_cli.target.target import choose_target
from signalbox_cli.terminal import print_json, say
from signalbox_cli.views.times import show_instant

EXAMPLES = (
    Example("redrive ID", "redrive one dead letter"),
    Example("""redrive ID --payload '{"url": "https://example.com/hook"}'""", "redrive it with another payload"),
    Example("redrive --fingerprint PRINT --rate 60", "preview a kind of failure, ask, and redrive sixty per minute"),
    Example("redrive --type deliver_webhook --since 2h --dry-run", "only show a preview"),
)


def configure(parser: CommandParser) -> None:
    parser.explain(f"Filters match only open dead letters, unless you give a --status. {TIME_FORMS}")
    parser.add_argument("ids", metavar="ID", nargs="*", help="the ids of the dead letters, or their starts")
    LETTERS.add(parser)
    add_consent(parser)
    parser.add_argument("--rate", type=positive, metavar="N", help="redrive N per minute (default: all at once)")
    parser.add_argument("--payload", type=json_object, metavar="JSON", help="replace the payload of one dead letter")
    add_target(parser)


def run(args: Namespace) -> int:
    LETTERS.require(args, args.ids)
    if args.payload is not None and len(args.ids) != 1:
        raise UsageRefused("--payload is for one dead letter: name its ID, and no other")
    if not args.ids:
        require_consent(args)
    target = choose_target(args)
    params: dict[str, Any] = {"rate_per_minute": args.rate, "payload": args.payload, **LETTERS.filters(args)}
    params |= {"ids": args.ids} if args.ids else {}
    if args.dry_run or not args.ids:
        seen = target.operate("redrive", dry_run=True, **params)
        if (code := _look(args, seen)) is not None:
            return code
    return _report(args, target.operate("redrive", **params, **actor_params(args)))


def _look(args: Namespace, seen: dict[str, Any]) -> int | None:
    """Show what the redrive would affect; return the exit code if it is not to be done."""
    if args.dry_run and args.json:
        print_json(seen)
    else:
        (print if args.dry_run else say)("\n".join(preview_lines(seen)))
    if args.dry_run:
        return 0
    if not seen["count"]:
        return nothing_done(args, "no dead letter that matches can be redriven", code=0)
    return None if args.yes or confirmed("redrive them?") else nothing_done(args, "it was not confirmed", code=1)


def _report(args: Namespace, done: dict[str, Any]) -> int:
    if args.json:
        print_json(done)
    else:
        print("\n".join(_done_lines(done)))
        say_the_rest(done)
    return 1 if done["refused"]["count"] and not done["redriven"] else 0


def preview_lines(seen: dict[str, Any]) -> list[str]:
    sample = [f"  {one['id']}  {one['job_type']}  {one['error'] or ''}".rstrip() for one in seen["sample"]]
    more = [f"  and {seen['count'] - len(sample):,} more"] if seen["count"] > len(sample) else []
    last = f", the last one at {show_instant(seen['last_at'])}" if seen["last_at"] and seen["count"] > 1 else ""
    return [f"to redrive: {at_least(seen['count'], more=seen['more'])}{last}", *sample, *more, *_refused_lines(seen)]


def _done_lines(done: dict[str, Any]) -> list[str]:
    last = f", the last one at {show_instant(done['last_at'])}" if done["last_at"] and done["redriven"] > 1 else ""
    return [f"redriven {done['redriven']:,}{last}", *_refused_lines(done)]


def _refused_lines(answer: dict[str, Any]) -> list[str]:
    refused = answer["refused"]
    if not refused["count"]:
        return []
    return [
        f"{refused['count']:,} can't be redriven:",
        *(f"  {one['id']}  {one['reason']}" for one in refused["sample"]),
    ]
