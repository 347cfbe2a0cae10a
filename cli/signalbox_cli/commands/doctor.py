"""`signalbox doctor` checks the whole stack and shows problems first, with fixes. A failure gives exit code 1."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.doctor.check import Finding, examined
from signalbox_cli.doctor.database import check_ledger, check_migrations, check_tasks
from signalbox_cli.doctor.deployment import check_failed_invocations, check_functions, check_rules
from signalbox_cli.doctor.environment import check_account, check_laptop, check_machine, check_stack
from signalbox_cli.doctor.jobs import check_jobs
from signalbox_cli.doctor.lanes import check_lanes
from signalbox_cli.options.shared import add_target
from signalbox_cli.target.target import Target, choose_target
from signalbox_cli.terminal import console, print_json
from signalbox_cli.views.palette import style_of
from signalbox_laptop.home import home_folder

EXAMPLES = (
    Example("doctor", "check the laptop stack"),
    Example("doctor --stack signalbox-prod", "check a stack on AWS"),
    Example("doctor --json", "print the findings as JSON; exit code 1 for any failure"),
)

_URGENCY = ("fail", "warn", "ok")
_CHECK_WIDTH = len("failed invocations")


def configure(parser: CommandParser) -> None:
    add_target(parser)


def run(args: Namespace) -> int:
    findings = sorted(_findings(args), key=lambda finding: _URGENCY.index(finding.verdict))
    healthy = all(finding.verdict != "fail" for finding in findings)
    if args.json:
        print_json({"healthy": healthy, "findings": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            _show(finding)
        print(_conclusion(findings))
    return 0 if healthy else 1


def _findings(args: Namespace) -> Iterator[Finding]:
    """Check from the ground up, and stop where the ground fails: nothing above it can be checked then."""
    ground = list(_on_aws(args) if args.stack else _on_laptop(args))
    yield from ground
    if any(finding.verdict == "fail" and finding.check != "python" for finding in ground):
        return
    yield from _deployed(choose_target(args))


def _on_laptop(args: Namespace) -> Iterator[Finding]:
    yield from examined("machine", check_machine)
    yield from examined("stack", lambda: check_laptop(home_folder(args.home)))


def _on_aws(args: Namespace) -> Iterator[Finding]:
    identity = examined("identity", lambda: check_account(Target(args.stack)))
    yield from identity
    if identity[0].verdict == "ok":
        yield from examined("deployment", lambda: check_stack(Target(args.stack)))


def _deployed(target: Target) -> Iterator[Finding]:
    yield from examined("functions", lambda: check_functions(target))
    yield from examined("migrations", lambda: check_migrations(target))
    yield from examined("database", lambda: check_ledger(target))
    tasks: list[dict[str, Any]] = []

    def ask() -> list[Finding]:
        tasks.extend(target.operate("list_tasks")["tasks"])
        return check_tasks(tasks)

    yield from examined("tasks", ask)
    if tasks:
        yield from examined("rules", lambda: check_rules(target, tasks))
    yield from examined("lanes", lambda: check_lanes(target))
    yield from examined("jobs", lambda: check_jobs(target))
    yield from examined("failed invocations", lambda: check_failed_invocations(target))


def _show(finding: Finding) -> None:
    out = console()
    out.print(f"{finding.verdict:4}  ", style=style_of(finding.verdict), end="")
    out.print(f"{finding.check:{_CHECK_WIDTH}}  {finding.detail}")
    if finding.advice:
        out.print(f"{' ' * (_CHECK_WIDTH + 8)}→ {finding.advice}", style="dim")


def _conclusion(findings: list[Finding]) -> str:
    count = {verdict: sum(finding.verdict == verdict for finding in findings) for verdict in ("ok", "warn", "fail")}
    return f"{count['ok']} ok, {count['warn']} warnings, {count['fail']} failed"
