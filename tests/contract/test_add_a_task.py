"""docs/add-a-task.md works when followed to the letter, and a test notices each step that is left out."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from signalbox.testing.stage import as_url
from tests.support.template import ROOT

GUIDE = (ROOT / "docs" / "add-a-task.md").read_text("utf-8")
REGISTRY = "layers/engine/signalbox/tasks/__init__.py"
FOLDERS = ("layers", "functions", "events", "cli", "laptop", "tests", "docs")
PROOF = ["tests/contract/test_registry.py", "tests/contract/test_resources.py", "tests/contract/test_events.py"]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy the repository and follow the guide."""
    for folder in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    for name in ("template.yaml", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    for file, text in re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", GUIDE, re.DOTALL):
        (tmp_path / file).write_text(text, "utf-8")
    _insert(tmp_path / REGISTRY, before=r"^\)$", text=f"    {_block('registry')},\n")
    _insert(tmp_path / "template.yaml", before=r"^Outputs:$", text=_block("rule") + "\n\n")
    (tmp_path / "events" / "forget_visitors.json").write_text('{"task": "forget_visitors"}\n')
    return tmp_path


def test_who_follows_the_guide_has_a_task_that_the_tests_accept(copy: Path) -> None:
    proved = _prove(copy)
    assert proved.returncode == 0, proved.stdout


@pytest.mark.parametrize(
    ("step", "named", "of"),
    [
        ("module", "registered_tasks_match", ""),
        ("line", "registered_tasks_match", ""),
        ("rule", "each_scheduled_task_has_one_rule", ""),
        ("event", "a_task_has_an_event_of_its_name", "[forget_visitors]"),
    ],
)
def test_a_step_that_is_left_out_is_named(copy: Path, step: str, named: str, of: str) -> None:
    match step:
        case "module":
            (copy / "layers/engine/signalbox/tasks/forget_visitors.py").unlink()
        case "line":
            shutil.copy(ROOT / REGISTRY, copy / REGISTRY)
        case "rule":
            shutil.copy(ROOT / "template.yaml", copy)
        case "event":
            (copy / "events" / "forget_visitors.json").unlink()
    proved = _prove(copy, "-k", named)
    assert proved.returncode == 1
    assert named + of in proved.stdout


def test_the_guides_task_does_what_it_says(copy: Path, dsn: str, db: psycopg.Connection) -> None:
    db.execute(
        "CREATE TABLE visitors AS SELECT id, now() - id * interval '1 day' AS last_visit FROM generate_series(1, 50) id"
    )
    program = (
        "import json; from datetime import UTC, datetime; from signalbox.app import App;"
        "from signalbox.invocation import Invocation; import os, sys;"
        "answer = App.start(os.environ).run_task(json.loads(sys.argv[1]), Invocation.of('r', datetime.now(UTC), 60));"
        "print(json.dumps(answer))"
    )
    payload = json.dumps({"task": "forget_visitors", "params": {"days": 20}})
    environ = os.environ | {
        "SIGNALBOX_STACK": "s",
        "SIGNALBOX_DATABASE_URL": as_url(dsn),
        "PYTHONPATH": "layers/engine",
    }
    command = [sys.executable, "-W", "ignore", "-c", program, payload]
    ran = subprocess.run(command, cwd=copy, env=environ, capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout.splitlines()[-1])["items"] == 31
    assert db.execute("SELECT count(*) FROM visitors").fetchone() == (19,)


def _prove(copy: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", *PROOF, *options]
    return subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False, env=_environ())


def _environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}


def _block(name: str) -> str:
    found = re.search(rf"<!-- {name} -->\n```\w+\n(.*?)\n```", GUIDE, re.DOTALL)
    assert found is not None
    return found[1]


def _insert(path: Path, before: str, text: str) -> None:
    content = path.read_text("utf-8")
    *_, place = re.finditer(before, content, re.MULTILINE)
    path.write_text(content[: place.start()] + text + content[place.start() :], "utf-8")
