"""Check what a stack stands on: this machine and the laptop's processes, or the AWS account."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from signalbox_cli.doctor.check import Finding, Verdict, fail, ok, warn
from signalbox_cli.target.target import Target
from signalbox_laptop.up import status

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_sts import STSClient

_OLDEST_PYTHON = (3, 11)
_TOOLS = {"make": "`make demo`, `make test` and `make build` need it", "git": "you will want it to keep your changes"}


def check_machine() -> list[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    return [
        ok("python", f"{version} in {sys.prefix}")
        if sys.version_info >= _OLDEST_PYTHON
        else fail("python", f"{version} is too old", "make PYTHON=python3.13 setup, with a Python from 3.11 on"),
        warn("tools", f"{', '.join(missing)} not on PATH", "; ".join(_TOOLS[tool] for tool in missing))
        if missing
        else ok("tools", f"{' and '.join(_TOOLS)} are there"),
    ]


def check_laptop(home: Path) -> list[Finding]:
    found = status(home)
    if found.orphans:
        left = f"none runs in {home}, and {len(found.orphans)} processes of one that was killed are left over"
        return [fail("stack", left, "`signalbox down` ends them")]
    if not found.running:
        return [fail("stack", f"none runs in {home}", "start one with `signalbox up`")]
    if found.state is None:
        return [fail("stack", f"the one in {home} is still starting", "ask again in a few seconds")]
    state, detail = found.state, found.detail
    runs = ok("stack", f"{state.stack} runs in {home} (process {state.pid})")
    if detail is None:
        return [runs, fail("endpoint", f"{state.endpoint} does not answer", "`signalbox down`, then `signalbox up`")]
    answers = ok("endpoint", f"{state.endpoint} answers; {detail['under_way']} invocations under way")
    return [runs, answers, _clock(clock=bool(detail["clock"])), *_database(found.database_answers, state.database)]


def _database(answers: bool, dsn: str) -> list[Finding]:
    """Report a database that does not answer. If it does, the functions tell more."""
    advice = "`signalbox down`, then `signalbox up`, which keeps its data"
    return [] if answers else [fail("database", f"{dsn} does not answer", advice)]


def _clock(*, clock: bool) -> Finding:
    if clock:
        return ok("clock", "fires the rules")
    return warn(
        "clock", "is off, so no rule fires by itself", "`signalbox tick` fires them, `up` without --no-clock, too"
    )


def check_account(target: Target) -> list[Finding]:
    sts: STSClient = target.client("sts")
    identity = sts.get_caller_identity()
    return [ok("identity", f"{identity['Arn']} in {sts.meta.region_name}")]


def check_stack(target: Target) -> list[Finding]:
    cloudformation: CloudFormationClient = target.client("cloudformation")
    stack = cloudformation.describe_stacks(StackName=target.stack)["Stacks"][0]["StackStatus"]
    verdict = judge_stack(stack)
    advice = f"`aws cloudformation describe-stack-events --stack-name {target.stack}` says why"
    return [Finding("deployment", verdict, f"{target.stack} is {stack}", "" if verdict == "ok" else advice)]


def judge_stack(status: str) -> Verdict:
    """Judge whether a stack with this CloudFormation status can be used."""
    if status in ("CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE"):
        return "ok"
    return "warn" if status == "UPDATE_ROLLBACK_COMPLETE" or status.endswith("_IN_PROGRESS") else "fail"
