"""Each cold start pays for what it loads, so what few invocations need is imported where it is used.

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
    "http.client": {"urllib3", "urllib3.exceptions"},  # only who asks a service outside
    # Only a function, and not who submits jobs.
    "runtime.log": {"aws_lambda_powertools"},
    "runtime.metrics": {"aws_lambda_powertools.metrics"},
    "aws.clients": {"boto3", "botocore.config"},  # only a task that calls AWS
    # Only an operator's question; only the function that each is for.
    "app": {
        *("signalbox.operations", "signalbox.worker.worker", "signalbox.dead_letters.consumer"),
        *(
            "signalbox.api.serve",
            "signalbox.api.pack_routes",
            "signalbox.pages.serve",
            "signalbox.runtime.metrics",
            "signalbox.packs.payload",
            "signalbox.ledger.run",
            "signalbox.ledger.task_payload",
        ),
    },
    # Only what changes or submits jobs.
    "ledger.context": {"signalbox.submit.insert"},
    "invocation": {"signalbox.publish.publisher"},
    "migrate.migrations": {"hashlib"},  # only the migrator compares checksums
    "submit.dependencies": {"graphlib"},  # only jobs that wait for others of their own submit
    "worker.job_context": {"signalbox.submit.groups"},  # only jobs that fan out
    "packs.suggest": {"difflib"},  # only a misspelt name
    "ledger.run": {"signalbox.ledger.backfill"},  # only a backfill's run
    "packs.schedule": {"cronsim"},  # only a schedule that is not even
    "api.routes": {"signalbox.operations.submit"},  # only a submit
    "operations.bulk": {"signalbox.tasks.advance_bulk_actions"},  # only who asks how far one is
    # Only who asks what there is; only a token of an issuer.
    "api.serve": {"signalbox.api.openapi", "signalbox.api.issuer"},
    "client.sender": {"boto3.session", "botocore.config"},  # only who may send, and has AWS's library
    "worker.timeout": {"ctypes"},  # only a time-out in a thread
    "jobs.verdict": {"hashlib"},  # only a job that fails for good
    # Building blocks: only what asks for them.
    "calendars": {"holidays"},
    "documents.pdf_text": {"ctypes", "pypdfium2", "pypdfium2.raw"},
    "documents.report": {
        *("reportlab", "reportlab.lib.styles", "reportlab.pdfbase.pdfmetrics", "reportlab.pdfbase.ttfonts"),
        "reportlab.platypus",
    },
    "documents.sheet_process": {"python_calamine"},
}
# What only some applications have, and no function.
APPLICATIONS = {"client.session_commit": {"sqlalchemy"}}
FORECASTS = {
    "sources.observations": {"botocore.exceptions"},
    "sources.s3_mirror": {"boto3", "botocore", "botocore.config", "botocore.exceptions", "botocore.parsers"},
    "billing.stripe_api": {"stripe"},  # only one task, once a day
}
COMPLIANCE = {
    "documents.rules": {"regex"},
    "imports.columns": {"rapidfuzz"},
    "sharing.links": {"boto3", "botocore.config"},
}
PASSPORTS = {
    "encoding.canonical": {"rfc8785"},
    "issuing.qr": {"segno"},
    "issuing.signature": {"cryptography.exceptions", "cryptography.hazmat.primitives.asymmetric.ed25519"},
}
ROOMS = [
    ("engine/signalbox", ENGINE | APPLICATIONS),
    ("forecasts/forecasts", FORECASTS),
    ("compliance/compliance", COMPLIANCE),
    ("passports/passports", PASSPORTS),
    ("records/records", {}),
]


@pytest.mark.parametrize(("room", "late"), ROOMS)
def test_late_imports_are_the_ones_listed(room: str, late: dict[str, set[str]]) -> None:
    found: dict[str, set[str]] = {}
    root = ROOT / "layers" / room
    for path in root.rglob("*.py"):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        if module.startswith("testing."):  # is in no layer
            continue
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(function, ast.FunctionDef):
                names = {name for node in ast.walk(function) for name in _imported(node)}
                found.setdefault(module, set()).update(names)
    assert {module: names for module, names in found.items() if names} == late


def test_naming_a_pack_loads_none_of_its_tasks() -> None:
    code = "import sys; from signalbox.engine_pack import registry_of; registry_of(['forecasts']); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {name for name in loaded if name.startswith("forecasts")} == {
        "forecasts",
        "forecasts.pack",
        "forecasts.tasks",
    }


@pytest.mark.parametrize(
    ("function", "own", "others"),
    [
        ("archiver", "signalbox.ledger.run", {"signalbox.worker.worker", "signalbox.dead_letters.consumer"}),
        ("poller", "signalbox.ledger.run", {"signalbox.worker.worker", "signalbox.dead_letters.consumer"}),
        ("worker", "signalbox.worker.worker", {"signalbox.ledger.run", "signalbox.dead_letters.consumer", "hashlib"}),
        ("dead_letter", "signalbox.dead_letters.consumer", {"signalbox.ledger.run", "signalbox.worker.worker"}),
        ("api", "signalbox.api.serve", {"signalbox.ledger.run", "signalbox.worker.worker"}),
    ],
)
def test_start_loads_only_what_most_invocations_need(function: str, own: str, others: set[str]) -> None:
    costly = {"boto3", "botocore.session", "cronsim", "difflib", "jwt", "cryptography", "signalbox.ledger.backfill"}
    costly |= {"holidays", "pypdfium2", "python_calamine", "reportlab"}
    costly |= {"signalbox.operations"} if function != "api" else set()
    code = "import sys, handler; handler.App; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "functions" / function, capture_output=True, text=True, check=True
    ).stdout.split()
    assert own in loaded
    assert (costly | others) & set(loaded) == set()


def _imported(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.module:
        room = ROOT / "layers" / "engine" / node.module.replace(".", "/")
        return {
            f"{node.module}.{alias.name}" if (room / f"{alias.name}.py").exists() else node.module
            for alias in node.names
        }
    return set()
