"""`signalbox new` writes a new pack, or a new task or job type in a pack. What it writes works as it is."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.errors import UsageRefused
from signalbox_cli.options.shared import add_output
from signalbox_cli.scaffold.project import Changes
from signalbox_cli.scaffold.write import require_pack, write_job, write_pack, write_task
from signalbox_cli.terminal import print_json

EXAMPLES = (
    Example("new pack shop", "layers/shop with one task, one job type, a migration, a template and tests"),
    Example("new task close_orders --pack shop", "a task with a rule that fires each night"),
    Example("new job ship_order --pack shop", "a job type"),
)
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_LONGEST = 40


def configure(parser: CommandParser) -> None:
    parser.explain("Run it at the top of a project. It adds files, and the new names to existing files.")
    parser.add_argument("kind", metavar="KIND", choices=("pack", "task", "job"), help="pack, task or job")
    parser.add_argument(
        "name", metavar="NAME", help="lower case, digits and _; also the name of the task's or job's function"
    )
    parser.add_argument("--pack", metavar="PACK", help="the pack of a new task or job type")
    add_output(parser)


def run(args: Namespace) -> int:
    for name in filter(None, (args.name, args.pack)):
        if not _NAME.fullmatch(name) or len(name) > _LONGEST:
            raise UsageRefused(
                f"'{name}' is not a valid name: use up to {_LONGEST} lower-case letters, digits and _: close_orders"
            )
    if (args.kind == "pack") == bool(args.pack):
        raise UsageRefused("--pack is required for a new task or job, and not allowed for a new pack")
    changes = Changes(Path.cwd())
    if args.kind == "pack":
        write_pack(changes, args.name)
    else:
        require_pack(changes, args.pack)
        write = write_task if args.kind == "task" else write_job
        write(changes, args.pack, args.name, f"do what {args.name} is for")
    changes.write()
    made, changed = (
        sorted(str(path.relative_to(changes.root)) for path in paths) for paths in (changes.made, changes.changed)
    )
    if args.json:
        print_json({"made": made, "changed": changed})
        return 0
    for path in made:
        print(f"made     {path}")
    for path in changed:
        print(f"changed  {path}")
    print("then     make docs && make check && make test")
    return 0
