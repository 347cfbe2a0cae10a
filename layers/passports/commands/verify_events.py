"""Verify the chains of events of passports, and say which is broken."""

from __future__ import annotations

from argparse import Namespace

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.options.shared import add_target
from signalbox_cli.target.target import choose_target
from signalbox_cli.terminal import print_json

EXAMPLES = (
    Example("verify-events", "verify all chains; exit 1 where one is broken"),
    Example("verify-events --tenant 0b0e7f4c-0d5b-4d43-9a63-2f5f0c1a7e11", "verify one tenant's"),
)


def configure(parser: CommandParser) -> None:
    parser.add_argument("--tenant", metavar="ID", help="verify this tenant's chains alone")
    add_target(parser)


def run(args: Namespace) -> int:
    params = {"params": {"tenant_id": args.tenant}} if args.tenant else {}
    answer = choose_target(args).invoke("archiver", {"task": "verify_events", "force": True, **params}).value()
    found = answer.get("detail")
    if found is None:  # it goes on in a next run
        if args.json:
            print_json({"events": answer["items"], "more": True})
            return 0
        print(f"verified {answer['items']} events so far; `signalbox history --task verify_events` shows how it ends")
        return 0
    if args.json:
        print_json(found)
    else:
        print(f"{found['events']} events in {found['chains']} chains: {answer.get('reason') or 'all are whole'}")
    return 1 if found["first_broken"] else 0
