"""What a function loads is paid at each cold start: what few invocations need is imported where it is used.

The lists are exact, so that a late import without need, or an early one that costs, is seen in review.
"""

from __future__ import annotations

import ast
import subprocess
import sys

from tests.support.template import ROOT

# module: what it imports late, and so who pays for it
LATE = {
    "clients": {"boto3", "botocore.config"},  # only a task that calls AWS
    "engine": {"signalbox.operations"},  # only an operator's question
    "handoff": {"botocore.exceptions"},
    "migrations": {"hashlib"},  # only the migrator compares checksums
    "registry": {"difflib"},  # only a misspelt name
    "runs": {"signalbox.backfills"},  # only a backfill's run
    "schedule": {"cronsim"},  # only a schedule that is not even
    "secret": {"botocore.exceptions", "psycopg.conninfo"},
}


def test_late_imports_are_the_ones_listed() -> None:
    found: dict[str, set[str]] = {}
    for path in ROOT.glob("layers/engine/signalbox/**/*.py"):
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(function, ast.FunctionDef):
                names = {name for node in ast.walk(function) for name in _imported(node)}
                found.setdefault(path.stem, set()).update(names)
    assert {stem: names for stem, names in found.items() if names} == LATE


def test_a_start_loads_nothing_that_only_few_invocations_need() -> None:
    costly = {"boto3", "botocore.session", "cronsim", "difflib", "signalbox.operations", "signalbox.backfills"}
    code = "import sys, handler; handler.Engine; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "functions" / "archiver",
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert costly & set(loaded) == set()


def _imported(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.module:
        return {f"{node.module}.{alias.name}" for alias in node.names} if node.module == "signalbox" else {node.module}
    return set()
