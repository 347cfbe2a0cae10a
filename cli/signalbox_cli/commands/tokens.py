"""`signalbox tokens` lists, creates and revokes the tokens of the HTTP API."""

from __future__ import annotations

import sys
from argparse import Namespace
from datetime import UTC, datetime
from typing import Any

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.errors import UsageRefused
from signalbox_cli.options.bulk_options import requester
from signalbox_cli.options.shared import add_target, positive
from signalbox_cli.target.target import choose_target
from signalbox_cli.terminal import console, print_json, print_lines, width_of
from signalbox_cli.views.table import Column, Row, table
from signalbox_cli.views.times import show_age, show_instant

EXAMPLES = (
    Example("tokens", "who may use the HTTP API"),
    Example("tokens create grafana", "a token that reads; it is printed once"),
    Example("tokens create deploys --role operator --days 90", "one that also changes, for ninety days"),
    Example("tokens create portal --tenant acme", "one that sees the jobs of one tenant"),
    Example("tokens revoke grafana", "end its use at once"),
)


def configure(parser: CommandParser) -> None:
    parser.usage = (
        "signalbox tokens\n"
        "       signalbox tokens create NAME [--role viewer|operator] [--tenant NAME] [--days N] [--replace]\n"
        "       signalbox tokens revoke NAME"
    )
    parser.explain("A token is shown once. Only its hash is stored.")
    parser.add_argument("verb", metavar="VERB", nargs="?", choices=("list", "create", "revoke"), default="list",
                        help="list (the default), create or revoke")  # fmt: skip
    parser.add_argument("name", metavar="NAME", nargs="?", help="who uses the token; audit rows have it")
    parser.add_argument("--role", choices=("viewer", "operator"), help="viewer reads (the default), operator changes")
    parser.add_argument("--tenant", metavar="NAME", help="bind it to the jobs of one tenant")
    parser.add_argument("--days", type=positive, metavar="N", help="how long it is good (default: until it is revoked)")
    parser.add_argument("--replace", action="store_true", help="revoke the token that has this name now")
    add_target(parser)


def run(args: Namespace) -> int:
    if args.verb != "create" and (args.role or args.tenant or args.days or args.replace):
        raise UsageRefused("--role, --tenant, --days and --replace belong to `tokens create`")
    if (args.name is None) != (args.verb == "list"):
        raise UsageRefused(f"`tokens {args.verb}` takes {'no NAME' if args.name else 'a NAME'}")
    return {"list": _list, "create": _create, "revoke": _revoke}[args.verb](args)


def _create(args: Namespace) -> int:
    answer = choose_target(args).operate(
        "create_token",
        name=args.name,
        role=args.role,
        bound_to=args.tenant,
        expires_days=args.days,
        replacing=args.replace,
        by=requester(),
    )
    if args.json:
        print_json(answer)
        return 0
    made = answer["token"]
    print(made["token"])
    until = f"until {show_instant(made['expires_at'])}" if made["expires_at"] else "until it is revoked"
    print(f"for {_reach(made)}, good {until}; it is not shown again", file=sys.stderr)
    return 0


def _revoke(args: Namespace) -> int:
    answer = choose_target(args).operate("revoke_token", name=args.name, by=requester())
    if args.json:
        print_json(answer)
    else:
        print(f"token {args.name} is revoked")
    return 0


def _list(args: Namespace) -> int:
    answer = choose_target(args).operate("list_tokens")
    if args.json:
        print_json(answer)
    elif answer["tokens"]:
        out, clock = console(), datetime.now(UTC)
        print_lines(out, table(_COLUMNS, [_row(token, clock) for token in answer["tokens"]], width_of(out)))
    else:
        print("no token; `signalbox tokens create NAME` makes one")
    return 0


_COLUMNS = (Column("name"), Column("role"), Column("tenant"), Column("state"), Column("created"), Column("used"))


def _row(token: dict[str, Any], clock: datetime) -> Row:
    used = show_age(token["last_used_at"], clock) if token["last_used_at"] else "never"
    cells = [token["name"], token["role"], token["tenant"] or "", _state(token, clock)]
    return Row([*cells, show_age(token["created_at"], clock), used])


def _state(token: dict[str, Any], clock: datetime) -> str:
    if token["revoked_at"]:
        return "revoked"
    if not token["expires_at"]:
        return "active"
    expired = datetime.fromisoformat(token["expires_at"]) <= clock
    return "expired" if expired else f"until {show_instant(token['expires_at'])}"


def _reach(token: dict[str, Any]) -> str:
    return f"the role {token['role']}" + (f", tenant {token['tenant']}" if token["tenant"] else "")
