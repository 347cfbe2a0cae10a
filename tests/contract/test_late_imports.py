"""What a function loads is paid at each cold start: what few invocations need is imported where it is used.

The lists are exact, so that a late import without need, or an early one that costs, is seen in review.
"""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from tests.support.template import ROOT

# module: what it imports late, and so who pays for it
ENGINE = {
    "aws_failure": {"botocore.exceptions"},
    "client": {"urllib3", "urllib3.exceptions"},  # only who asks a service outside
    "clients": {"boto3", "botocore.config"},  # only a task that calls AWS
    "cold_storage": {"botocore.exceptions"},
    "deliver_notification": {"botocore.exceptions"},
    # Only an operator's question; only the function that each is for.
    "engine": {
        *("signalbox.operations", "signalbox.worker.worker", "signalbox.jobs.burial"),
        *("signalbox.metrics", "signalbox.payload", "signalbox.runs"),
    },
    "events": {"botocore.exceptions"},
    # Only what changes or submits jobs.
    "context": {"signalbox.jobs.courier", "signalbox.jobs.submission"},
    "invocation": {"signalbox.jobs.courier"},
    "handoff": {"botocore.exceptions"},
    "lanes": {"botocore.exceptions"},
    "login": {"botocore.exceptions"},
    "migrations": {"hashlib"},  # only the migrator compares checksums
    "notify_dead_letters": {"botocore.exceptions"},
    "parents": {"graphlib"},  # only jobs that wait for others of their own submit
    "redrive": {"botocore.exceptions"},
    "registry": {"difflib"},  # only a misspelt name
    "runs": {"signalbox.backfills"},  # only a backfill's run
    "s3_faults": {"botocore.exceptions"},
    "s3_folder": {"botocore.exceptions"},
    "schedule": {"cronsim"},  # only a schedule that is not even
    "sqs": {"botocore.exceptions"},
    "secret": {"botocore.exceptions", "psycopg.conninfo"},
    "signing_key": {"botocore.exceptions"},
    "timeout": {"ctypes"},  # only a time-out in a thread
    "verdict": {"hashlib"},  # only a job that fails for good
    "visibility": {"botocore.exceptions"},
}
FORECASTS = {
    "api_key": {"botocore.exceptions"},
    "observations": {"botocore.exceptions"},
    "s3_mirror": {"boto3", "botocore", "botocore.config", "botocore.exceptions", "botocore.parsers"},
    "stripe_api": {"stripe"},  # only one task, once a day
}


@pytest.mark.parametrize(("room", "late"), [("engine/signalbox", ENGINE), ("forecasts/forecasts", FORECASTS)])
def test_late_imports_are_the_ones_listed(room: str, late: dict[str, set[str]]) -> None:
    found: dict[str, set[str]] = {}
    for path in ROOT.glob(f"layers/{room}/**/*.py"):
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(function, ast.FunctionDef):
                names = {name for node in ast.walk(function) for name in _imported(node)}
                found.setdefault(path.stem, set()).update(names)
    assert {stem: names for stem, names in found.items() if names} == late


def test_naming_a_pack_loads_none_of_its_tasks() -> None:
    code = "import sys; from signalbox.packs import registry_of; registry_of(['forecasts']); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {name for name in loaded if name.startswith("forecasts")} == {
        "forecasts",
        "forecasts.pack",
        "forecasts.tasks",
    }


@pytest.mark.parametrize(
    ("function", "own", "others"),
    [
        ("archiver", "signalbox.runs", {"signalbox.worker.worker", "signalbox.jobs.burial"}),
        ("poller", "signalbox.runs", {"signalbox.worker.worker", "signalbox.jobs.burial"}),
        ("worker", "signalbox.worker.worker", {"signalbox.runs", "signalbox.jobs.burial", "hashlib"}),
        ("dead_letter", "signalbox.jobs.burial", {"signalbox.runs", "signalbox.worker.worker"}),
    ],
)
def test_a_start_loads_what_the_function_is_for_and_nothing_that_few_invocations_need(
    function: str, own: str, others: set[str]
) -> None:
    costly = {"boto3", "botocore.session", "cronsim", "difflib", "signalbox.operations", "signalbox.backfills"}
    code = "import sys, handler; handler.Engine; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "functions" / function, capture_output=True, text=True, check=True
    ).stdout.split()
    assert own in loaded
    assert (costly | others) & set(loaded) == set()


def _imported(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.module:
        return {f"{node.module}.{alias.name}" for alias in node.names} if node.module == "signalbox" else {node.module}
    return set()
