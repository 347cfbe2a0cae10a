"""`signalbox status` shows whether a stack is up, where, and what it is doing. Exit code 1 means it is not ready."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.options.shared import add_target, add_watch
from signalbox_cli.target.target import Target
from signalbox_cli.terminal import print_json
from signalbox_cli.views.times import show_age
from signalbox_laptop.home import StackState, home_folder
from signalbox_laptop.up import StackStatus, status

EXAMPLES = (
    Example("status", "show where the laptop's stack is, and what it is doing"),
    Example("status --json", "print it as JSON; exit code 1 if no stack runs, or its database does not answer"),
    Example("status --stack signalbox-prod", "show what AWS and its functions report of a stack on AWS"),
)


def configure(parser: CommandParser) -> None:
    add_watch(parser)
    add_target(parser)


def run(args: Namespace) -> int:
    return _run_on_aws(args) if args.stack else _run_on_laptop(args)


def _run_on_aws(args: Namespace) -> int:
    from signalbox_cli.stack.status import ask  # the laptop's status does not need it

    found = ask(Target(args.stack))
    if args.json:
        print_json(found.as_json())
    else:
        print("\n".join(found.lines(datetime.now(UTC))))
    return 0 if found.is_well else 1


def _run_on_laptop(args: Namespace) -> int:
    folder = home_folder(args.home)
    found = status(folder)
    if args.json:
        print_json(_as_json(found, folder))
    else:
        print("\n".join(_lines(found, folder)))
    return 0 if _is_ready(found) else 1


def _is_ready(found: StackStatus) -> bool:
    return found.detail is not None and found.database_answers


def _as_json(found: StackStatus, folder: Path) -> dict[str, object]:
    return {
        "running": found.running,
        "ready": _is_ready(found),
        "home": str(folder),
        **(asdict(found.state) if found.state else {}),
        "database_answers": found.database_answers,
        "orphans": list(found.orphans),
        "detail": found.detail,
    }


def _lines(found: StackStatus, folder: Path) -> list[str]:
    if found.orphans:
        pids = ", ".join(map(str, found.orphans))
        return [
            f"no stack runs in {folder}, but processes of one that was killed are left over ({pids}); "
            "`signalbox down` ends them"
        ]
    if not found.running:
        return [f"no stack runs in {folder}; `signalbox up` starts one"]
    if found.state is None:
        return [f"the stack in {folder} is starting"]
    state = found.state
    if found.detail is None:
        return [
            f"stack {state.stack} (process {state.pid}) does not answer at {state.endpoint}; `signalbox down` ends it"
        ]
    return _lines_of_running(state, found.detail, database_answers=found.database_answers)


def _lines_of_running(state: StackState, detail: Any, *, database_answers: bool) -> list[str]:
    running = ", ".join(f"{name} × {count}" for name, count in detail["running"].items() if count)
    missing = f"does not answer ({state.database}); `signalbox down`, then `signalbox up`"
    return [
        f"stack {state.stack} is up, started {show_age(state.started_at, datetime.now(UTC))} (process {state.pid})",
        f"  endpoint  {state.endpoint}",
        f"  database  {state.database if database_answers else missing}",
        *([f"  api       {state.api}"] if state.api else []),
        f"  clock     {'fires the rules' if detail['clock'] else 'off: `signalbox tick` fires the rules'}",
        f"  at work   {running or 'nothing'}; {detail['events_waiting']} asynchronous events wait",
    ]
