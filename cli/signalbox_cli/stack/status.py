"""Read the status of a stack on AWS: from CloudFormation, its functions, and what the api finds in the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from signalbox_cli.doctor.environment import judge_stack
from signalbox_cli.errors import FunctionFailed
from signalbox_cli.explain import as_value, explain
from signalbox_cli.target.target import Target
from signalbox_cli.views.times import show_age

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

_UNREACHED = "DatabaseUnavailable"


@dataclass(frozen=True, slots=True)
class StackStatus:
    """Describe the stack's status. `fault` is the error that kept the api from looking."""

    target: Target
    region: str
    status: str
    changed_at: datetime
    functions: Sequence[str]  # short names
    examined: Mapping[str, Any] | None
    fault: Exception | None

    @property
    def is_well(self) -> bool:
        return judge_stack(self.status) != "fail" and self.examined is not None

    @property
    def database_answers(self) -> bool | None:
        """Return None if that is unknown."""
        if self.examined is not None:
            return True
        return False if isinstance(self.fault, FunctionFailed) and self.fault.kind == _UNREACHED else None

    def as_json(self) -> dict[str, Any]:
        return {
            "stack": self.target.stack,
            "region": self.region,
            "status": self.status,
            "changed_at": self.changed_at.isoformat(),
            "functions": list(self.functions),
            "database_answers": self.database_answers,
            "examined": self.examined,
            **({"error": as_value(self.fault)} if self.fault else {}),
        }

    def lines(self, clock: datetime) -> list[str]:
        """Return the status as lines for people."""
        return [
            f"stack {self.target.stack} in {self.region} is {self.status}, changed {show_age(self.changed_at, clock)}",
            f"  functions {', '.join(self.functions) or 'none'}",
            *(_examined_lines(self.examined) if self.examined is not None else self._fault_lines()),
        ]

    def _fault_lines(self) -> list[str]:
        why = explain(self.fault) if self.fault else "unknown"
        return (
            ["  database  does not answer", f"    {why}"] if self.database_answers is False else [f"  api       {why}"]
        )


def ask(target: Target) -> StackStatus:
    """Read the status; raise if there is no such stack, or access to it is denied."""
    cloudformation: CloudFormationClient = target.client("cloudformation")
    stack = cloudformation.describe_stacks(StackName=target.stack)["Stacks"][0]
    examined, fault = _examine(target)
    return StackStatus(
        target=target,
        region=cloudformation.meta.region_name,
        status=stack["StackStatus"],
        changed_at=stack.get("LastUpdatedTime", stack["CreationTime"]),
        functions=[name.removeprefix(f"{target.stack}-") for name in target.functions()],
        examined=examined,
        fault=fault,
    )


def _examine(target: Target) -> tuple[dict[str, Any] | None, Exception | None]:
    """Return what the api finds, or its error: a stack whose api fails or is missing has a status all the same."""
    try:
        return target.operate("examine"), None
    except Exception as error:
        return None, error


def _examined_lines(found: Mapping[str, Any]) -> list[str]:
    database, schema, locks, runs, tasks = (found[name] for name in ("database", "schema", "locks", "runs", "tasks"))
    versions = ", ".join(f"{pack} at {version}" for pack, version in schema["versions"].items()) or "none"
    disabled = ", ".join(tasks["disabled"]) or "none"
    return [
        f"  database  PostgreSQL {database['server_version']}, {database['name']}",
        f"  schema    {versions}; pending: {', '.join(schema['pending']) or 'none'}",
        f"  at work   {runs['running']:,} runs; {locks['held']:,} leases held, {locks['expired']:,} expired",
        f"  last day  {runs['failed_last_day']:,} failed, {runs['missed_last_day']:,} missed",
        f"  tasks     {tasks['registered']} registered; disabled: {disabled}",
    ]
