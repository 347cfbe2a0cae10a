"""`signalbox migrate` lets the migrator function apply the pending migrations, or lists them."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.options.shared import add_target
from signalbox_cli.target.target import choose_target
from signalbox_cli.terminal import print_json

EXAMPLES = (
    Example("migrate --plan", "list the pending migrations, and apply none"),
    Example("migrate", "apply them"),
    Example("migrate --stack signalbox-prod", "apply them to a stack on AWS"),
)


def configure(parser: CommandParser) -> None:
    parser.add_argument("--plan", action="store_true", help="only list what is pending")
    add_target(parser)


def run(args: Namespace) -> int:
    action = "plan" if args.plan else "apply"
    answer: dict[str, Any] = choose_target(args).invoke("migrator", {"action": action}).value()
    if args.json:
        print_json(answer)
    else:
        print("\n".join(_lines(answer)))
    return 0


def _lines(answer: dict[str, Any]) -> list[str]:
    schemas = [f"schema {pack} is at version {version}" for pack, version in answer["versions"].items()]
    versions = ", ".join(schemas) or "there is no schema yet"
    return [
        *(f"applied  {label}" for label in answer["applied"]),
        *(f"pending  {label}" for label in answer["pending"]),
        versions if answer["applied"] or answer["pending"] else f"nothing to apply; {versions}",
        *([roles["advice"]] if (roles := answer.get("roles", {})).get("advice") else []),
    ]
