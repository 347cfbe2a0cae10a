"""docs/testing.md works when followed to the letter in a folder of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.template import ROOT

GUIDE = (ROOT / "docs" / "testing.md").read_text("utf-8")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a project by the guide."""
    for file, text in re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", GUIDE, re.DOTALL):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text, "utf-8")
    return tmp_path


def run_tests(project: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", "-ra", "."]
    return subprocess.run(command, cwd=project, env=os.environ | environ, capture_output=True, text=True, check=False)


def test_the_guides_tests_pass(project: Path, server: str) -> None:
    done = run_tests(project, SIGNALBOX_TEST_DATABASE=server)
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


def test_without_a_server_the_fixture_says_what_brings_one(project: Path) -> None:
    (project / "signalbox_laptop").mkdir()
    (project / "signalbox_laptop" / "__init__.py").write_text("raise ImportError")
    done = run_tests(project, PYTHONPATH=str(project), SIGNALBOX_TEST_DATABASE="")
    assert done.returncode != 0
    assert "install signalbox[laptop], which brings PostgreSQL" in done.stdout + done.stderr
