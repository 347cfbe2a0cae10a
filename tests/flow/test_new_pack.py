"""`signalbox new` writes a pack that passes its own tests and runs in a stack on the laptop."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.template import ROOT

FOLDERS = ("cli", "laptop", "layers/engine", "layers/forecasts", "layers/bakery")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Copy this repository and add a new pack with a task and a job type."""
    project = tmp_path_factory.mktemp("a project") / "copy"
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in filter(None, subprocess.check_output(listed, cwd=ROOT, text=True).split("\0")):
        if (ROOT / name).is_file():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, project / name)
    for words in (
        ["pack", "bakery"],
        ["task", "count_ovens", "--pack", "bakery"],
        ["job", "bake_bread", "--pack", "bakery"],
    ):
        assert signalbox(project, "new", *words)["made"]
    return project


def run(project: Path, *words: str) -> str:
    """Run Python in the project, on its own code."""
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(str(project / folder) for folder in FOLDERS)}
    done = subprocess.run(
        [sys.executable, *words], cwd=project, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def signalbox(project: Path, *words: str) -> dict[str, object]:
    answer: dict[str, object] = json.loads(run(project, "-m", "signalbox_cli", *words, "--json"))
    return answer


def test_its_own_tests_pass(project: Path) -> None:
    out = run(project, "-m", "pytest", "layers/bakery/tests")
    assert "100%" in out
    assert out.count("....") >= 1, out


def test_its_code_and_its_template_are_as_the_checks_want_them(project: Path) -> None:
    run(project, "-m", "ruff", "check", "layers/bakery")
    run(project, "-m", "ruff", "format", "--check", "layers/bakery")
    run(project, "-c", "import sys; from cfnlint.runner import main; sys.exit(main())", "layers/bakery/template.yaml")
    run(project, "-m", "mypy", "layers/bakery/bakery")


def test_its_task_and_its_job_run_in_a_stack(project: Path, tmp_path: Path) -> None:
    home = ("--home", str(tmp_path / "stack"))
    signalbox(project, "up", *home, "--detach", "--port", "0", "--no-clock", "--parameter", "ForecastsPack=off")
    try:
        ran = signalbox(project, "invoke", "clean_bakery_notes", *home)
        signalbox(project, "submit", "add_bakery_note", "--payload", '{"words": "hello"}', "--wait", *home)
        jobs = signalbox(project, "jobs", "--type", "add_bakery_note", *home)["jobs"]
    finally:
        signalbox(project, "down", *home)
    assert "succeeded" in json.dumps(ran)
    assert isinstance(jobs, list)
    assert [job["status"] for job in jobs] == ["completed"]
