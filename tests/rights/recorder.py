"""Record which calls of AWS the tested code makes, and who asks; `tests/rights/calls.txt` lists them all.

A line names who asks (a task, a job type, a function of the stack), the operation of a client, and the definition that
decides on what. A call that is not listed fails the test that led to it; a line that no test leads to fails a run of
all tests. The policies of the template are held against the lines, so that no role has more or less.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from botocore import UNSIGNED, xform_name
from botocore.client import BaseClient

from compliance import job_types as compliance
from passports import job_types as passports
from records import job_types as records
from tests.rights.wants import WHERE

LIST = Path(__file__).with_name("calls.txt")
_OURS = ("signalbox.", "compliance.", "forecasts.", "passports.", "records.")
_OF_PACKS = "|".join(job_type.name for job_type in (*compliance.JOB_TYPES, *passports.JOB_TYPES, *records.JOB_TYPES))
# In this order, the first that is anywhere on the stack says who asks.
_ASKERS = (
    (re.compile(r"signalbox\.aws\.database_secret\b"), "any function"),
    (re.compile(r"compliance\.tasks\.triggers\."), "task trigger_monitoring_schedule"),  # it stands for those beside it
    (re.compile(r"\w+\.tasks\.(\w+)\."), "task {}"),
    (re.compile(r"\w+\.job_types\.(?:\w+\.)?(import_table|export_table|deliver_webhook)\."), "job {}"),
    (re.compile(r"\w+\.job_types\.(?!tables|webhooks)(\w+)\."), "job {}"),
    (re.compile(rf"\w+\.\w+\.({_OF_PACKS})\."), "job {}"),
    (re.compile(r"signalbox\.operations\b|compliance\.sharing\.links\."), "api"),
    (re.compile(r"signalbox\.dead_letters\.consumer\b"), "dead-letter"),
    (re.compile(r"signalbox\.migrate\.migrator\b"), "migrator"),
    (re.compile(r"signalbox\.worker\."), "worker"),
    (re.compile(r"signalbox\.ledger\.run\b"), "run"),
)
_submitted = threading.local()


class Call(NamedTuple):
    """Hold a line of the list."""

    asker: str
    service: str
    method: str
    decider: str

    def __str__(self) -> str:
        return f"{self.asker}: {self.service}.{self.method} by {self.decider}"

    @staticmethod
    def read(line: str) -> Call:
        found = re.fullmatch(r"(.+): ([\w-]+)\.(\w+) by (.+)", line)
        assert found, line
        return Call(*found.groups())


def listed() -> set[Call]:
    """Return all listed calls."""
    lines = LIST.read_text("utf-8").splitlines()
    return {Call.read(line) for line in lines if line and not line.startswith("#")}


class Recorder:
    """Keep the calls that this process has seen."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def start(self) -> None:
        """Lead each later call of a client by here."""
        original: Callable[..., Any] = BaseClient._make_api_call  # type: ignore[attr-defined]

        def make_api_call(client: Any, operation: str, params: Any) -> Any:
            if client.meta.config.signature_version is not UNSIGNED:  # what is read unsigned takes no right
                self._note(client.meta.service_model.service_name, xform_name(operation))
            return original(client, operation, params)

        BaseClient._make_api_call = make_api_call  # type: ignore[attr-defined]
        _carry_stacks_into_pools()

    def _note(self, service: str, method: str) -> None:
        stack = [*_names(sys._getframe(2)), *getattr(_submitted, "stack", ())]
        asker = next((who.format(*found.groups()) for what, who in _ASKERS if (found := _search(what, stack))), None)
        if asker is not None:  # else a test asks for itself
            decider = next((one for name in stack if (one := _decider(name, service))), "nothing")
            self.seen.add(str(Call(asker, service, method, decider)))


def _names(frame: FrameType | None) -> Iterator[str]:
    """Yield our definitions on the stack, the nearest first."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith(_OURS):
            yield f"{module}.{frame.f_code.co_qualname}"
        frame = frame.f_back


def _search(what: re.Pattern[str], stack: list[str]) -> re.Match[str] | None:
    return next((found for name in stack if (found := what.match(name))), None)


def _decider(name: str, service: str) -> str | None:
    """Return a definition's own entry, or that of its module."""
    while name:
        if (name, service) in WHERE:
            return name
        name = name.rpartition(".")[0]
    return None


def _carry_stacks_into_pools() -> None:
    original = ThreadPoolExecutor.submit

    def submit(pool: ThreadPoolExecutor, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        stack = [*_names(sys._getframe(1)), *getattr(_submitted, "stack", ())]

        def run(*args: Any, **kwargs: Any) -> Any:
            _submitted.stack = stack
            return function(*args, **kwargs)

        return original(pool, run, *args, **kwargs)

    ThreadPoolExecutor.submit = submit  # type: ignore[method-assign, assignment]
