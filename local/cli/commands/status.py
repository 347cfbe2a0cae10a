"""`signalbox status`: whether the laptop stack runs, where, and what it is at. Exit code 1 where none does."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from local.cli.command import Example
from local.cli.command_parser import CommandParser
from local.cli.instant import show_age
from local.cli.options import add_laptop
from local.cli.terminal import print_json
from local.home import home_folder
from local.stack import Status, status

EXAMPLES = (
    Example("status", "where the stack is, and what it is at"),
    Example("status --json", "the same for programs; exit code 1 where no stack runs"),
)


def configure(parser: CommandParser) -> None:
    add_laptop(parser)


def run(args: Namespace) -> int:
    folder = home_folder(args.home)
    found = status(folder)
    if args.json:
        print_json(_as_json(found, folder))
    else:
        print("\n".join(_lines(found, folder)))
    return 0 if found.detail is not None else 1


def _as_json(found: Status, folder: Path) -> dict[str, object]:
    state = asdict(found.state) if found.state else {}
    return {"running": found.running, "ready": found.detail is not None, "home": str(folder), **state} | {
        "detail": found.detail
    }


def _lines(found: Status, folder: Path) -> list[str]:
    if not found.running:
        return [f"no stack runs in {folder}; `signalbox up` starts one"]
    if found.state is None:
        return [f"the stack in {folder} is starting"]
    state = found.state
    if found.detail is None:
        return [
            f"stack {state.stack} (process {state.pid}) does not answer at {state.endpoint}; `signalbox down` ends it"
        ]
    detail = found.detail
    running = ", ".join(f"{name} × {count}" for name, count in detail["running"].items() if count)
    return [
        f"stack {state.stack} is up, started {show_age(state.started_at, datetime.now(UTC))} (process {state.pid})",
        f"  endpoint  {state.endpoint}",
        f"  database  {state.database}",
        *([f"  api       {state.api}"] if state.api else []),
        f"  clock     {'fires the rules' if detail['clock'] else 'off: `signalbox tick` fires the rules'}",
        f"  at work   {running or 'nothing'}; {detail['events_waiting']} asynchronous events wait",
    ]
