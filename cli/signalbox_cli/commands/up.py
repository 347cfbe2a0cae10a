"""`signalbox up` runs the laptop stack, in the foreground until Ctrl-C, or detached once it is ready."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.options.shared import add_laptop, parameter, port
from signalbox_cli.terminal import print_json, say
from signalbox_laptop.home import StackState, home_folder
from signalbox_laptop.project import ROOT
from signalbox_laptop.up import DEFAULT_PORT, StackOptions, up, up_attached

EXAMPLES = (
    Example("up", "start the stack, and run until Ctrl-C"),
    Example("up --detach --json", "start it, print its addresses as JSON, and return"),
    Example("up --port 0 --no-clock", "use any free port; only `signalbox tick` fires rules"),
    Example("up --fresh", "start with an empty database; otherwise the last one is kept"),
    Example("up --parameter DisabledTasks=poll_data", "set a parameter of the template"),
)


def configure(parser: CommandParser) -> None:
    parser.add_argument("--detach", action="store_true", help="return once the stack is ready")
    parser.add_argument(
        "--port", type=port, default=DEFAULT_PORT, help="the port of the endpoint (default: 4566; 0: any free)"
    )
    parser.add_argument("--no-clock", action="store_true", help="fire no rules by the clock")
    parser.add_argument("--fresh", action="store_true", help="start with an empty database instead of the last one")
    add_deployment(parser)
    add_laptop(parser)


def add_deployment(parser: CommandParser) -> None:
    """Add the options that say what is deployed; `demo` takes them, too."""
    parser.add_argument(
        "--template", metavar="FILE", type=Path, default=ROOT / "template.yaml", help="use another template"
    )
    parser.add_argument(
        "--parameter",
        metavar="NAME=VALUE",
        type=parameter,
        action="append",
        default=[],
        help="set a parameter of the template; may be repeated",
    )


def run(args: Namespace) -> int:
    options = StackOptions(
        home=home_folder(args.home),
        template=args.template,
        port=args.port,
        fresh=args.fresh,
        clock=not args.no_clock,
        parameters=dict(args.parameter),
    )

    def announce(state: StackState) -> None:
        if args.json:
            print_json(state.announcement())
        else:
            print("\n".join(_lines(state, detached=args.detach)), flush=True)

    if args.detach:
        announce(up(options, say))
    else:
        up_attached(options, say, announce)
    return 0


def _lines(state: StackState, *, detached: bool) -> list[str]:
    stop = "`signalbox down` stops it" if detached else "Ctrl-C stops it"
    return [
        f"stack {state.stack} is up; {stop}",
        f"  endpoint  {state.endpoint}",
        f"  database  {state.database}",
        *(_api(state) if state.api else []),
        "  try       signalbox slots · signalbox invoke sweep_runs · signalbox logs --follow",
    ]


def _api(state: StackState) -> list[str]:
    return [
        f"  pages     {state.api}/login#token={state.token}",
        f"  api       {state.api}",
        f"  token     {state.token}",
    ]
