"""What a function of the stack can come to from its handler: a graph of definitions, and through it to tasks and jobs.

Where the code goes on by a name that is written nowhere, the graph goes on to whatever that name may be. Each such
place is listed here, so that a new one fails until somebody has said where it leads.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from signalbox.jobs.job_type import JobType
from signalbox.operations import OPERATIONS
from signalbox.registry import Task
from tests.contract.rights.code import Code
from tests.contract.rights.kinds import Client, Method, annotated
from tests.contract.rights.walk import Found, read

TASKS, JOBS, UPGRADES, ASKED = "tasks", "jobs", "upgrades", "operations"
LEADS: Mapping[str, str | None] = {
    "signalbox.runs._perform": TASKS,
    "signalbox.jobs.catalogue.Known.perform": JOBS,
    "signalbox.jobs.catalogue.Known.upgrade": UPGRADES,
    "signalbox.operations.operate": ASKED,
    # To what is no client and calls none: models of payloads, their checks, packs with their lists, columns.
    "signalbox.jobs.catalogue.Known._check": None,
    "signalbox.jobs.catalogue.Known.model": None,
    "signalbox.jobs.catalogue.Known._module": None,
    "signalbox.jobs.submission._COMMON": None,
    "signalbox.jobs.submission._column": None,
    "signalbox.packs._load": None,
    "signalbox.runs.check_params": None,
}
# NOAA's buckets are read unsigned, by clients that are made there and go nowhere else.
UNSIGNED = "forecasts.sources."
MAKERS: Mapping[str, frozenset[str]] = {
    "signalbox.clients": frozenset({"boto3", "botocore.config.Config"}),
    "forecasts.sources.s3_mirror": frozenset({"boto3", "botocore.UNSIGNED", "botocore.config.Config"}),
}
WORDLESS = ("botocore.exceptions.", "botocore.parsers.")


@dataclass(frozen=True, slots=True)
class Work:
    """What one function of the stack is given to run."""

    tasks: tuple[Task, ...] = ()
    jobs: tuple[JobType, ...] = ()

    def of(self, what: str) -> list[str]:
        """The definitions that a name written nowhere may mean."""
        match what:
            case "tasks":
                return [f"{task.module}.{task.name}" for task in self.tasks]
            case "jobs":
                return [f"{one.module}.{one.name}" for one in self.jobs]
            case "upgrades":
                return [f"{one.module}.upgrade" for one in self.jobs]
            case _:
                return [f"{module}.{name}" for name, module in OPERATIONS.items()]


@dataclass(frozen=True)
class Reading:
    """The whole project, read once."""

    code: Code

    @cached_property
    def found(self) -> Mapping[str, Found]:
        return {name: read(self.code, defined) for name, defined in self.code.defined.items()}

    def reach(self, root: str, work: Work) -> Mapping[str, set[str]]:
        """Each definition that the root may come to, with those that it was come to from."""
        came: dict[str, set[str]] = {root: set()}
        ahead = [root]
        while ahead:
            name = ahead.pop()
            for used in self._next(name, work):
                if used not in came:
                    ahead.append(used)
                came.setdefault(used, set()).add(name)
        return came

    def asks(self, reached: Iterable[str]) -> Iterable[tuple[str, Method]]:
        """What is asked of clients that sign, with where."""
        for name in reached:
            if not name.startswith(UNSIGNED):
                yield from ((name, method) for method in self.found[name].calls)

    def faults(self) -> list[str]:
        """What nobody can follow, in all the project."""
        found = [fault for one in self.found.values() for fault in one.faults]
        for name, one in self.found.items():
            if one.dynamic and name not in LEADS:
                found.append(f"{name}: {', '.join(sorted(one.dynamic))} leads to what is not listed in LEADS")
        return sorted([*found, *self._makers(), *self._mixed()])

    def _next(self, name: str, work: Work) -> Iterable[str]:
        lead = LEADS.get(name)
        led = [one for one in work.of(lead) if one in self.found] if lead else []
        return [*(used for used in self.found[name].uses if used in self.found), *led]

    def _makers(self) -> Iterable[str]:
        """Clients are made in few places, and nobody else knows the libraries that make them."""
        for name, module in self.code.modules.items():
            for meaning in module.imported.values():
                of_aws = meaning.partition(".")[0] in ("boto3", "botocore", "aiobotocore", "s3transfer")
                if of_aws and meaning not in MAKERS.get(name, ()) and not meaning.startswith(WORDLESS):
                    yield f"{name}: imports {meaning}, and may make a client of its own"

    def _mixed(self) -> Iterable[str]:
        """Clients that sign and clients that don't never meet."""
        for name, one in self.found.items():
            for used in one.uses:
                if name.startswith(UNSIGNED) and used.startswith("signalbox.clients."):
                    yield f"{name}: uses {used} among clients that sign nothing"
                if used.startswith(UNSIGNED) and not name.startswith(UNSIGNED) and self._takes_client(used):
                    yield f"{name}: hands {used} a client, and those there sign nothing"

    def _takes_client(self, name: str) -> bool:
        defined = self.code.defined[name]
        arguments = [one for one in ast.walk(defined.node) if isinstance(one, ast.arg)]
        return any(
            isinstance(kind, Client)
            for one in arguments
            for kind in annotated(self.code, one.annotation, defined.module)
        )
