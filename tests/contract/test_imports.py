"""Imports go one way: functions and laptop → packs → engine. The rules of .importlinter are seen to bite."""

from __future__ import annotations

import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import pytest

from tests.support.template import ROOT

PACKS = ("forecasts", "compliance")
CONTRACTS = [f"--contract={name}" for name in ("direction", "deployed", "functions")]


def contracts() -> ConfigParser:
    parser = ConfigParser()
    parser.read(ROOT / ".importlinter")
    return parser


def test_every_package_of_a_layer_is_under_contract() -> None:
    packages = {init.parent.name for init in ROOT.glob("layers/*/*/__init__.py")} | {
        "signalbox_cli",
        "signalbox_laptop",
        "functions",
    }
    roots = contracts()["importlinter"]["root_packages"].split()
    placed = contracts()["importlinter:contract:direction"]["layers"].replace("|", " ").split()

    assert set(roots) == packages
    assert packages <= {name.strip("()") for name in placed}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a project of the same shape with two packs that joined as .importlinter says."""
    roots = "".join(f"    {package}\n" for package in ("signalbox_laptop", *PACKS))
    config = (ROOT / ".importlinter").read_text().replace("    signalbox_laptop\n", roots, 1)
    write(tmp_path, ".importlinter", config)
    for package in ("signalbox_cli", "signalbox_laptop", "signalbox", *PACKS):
        write(tmp_path, f"{package}/__init__.py", "")
    write(tmp_path, "forecasts/pack.py", "import signalbox")
    write(tmp_path, "signalbox_laptop/up.py", "import signalbox")
    for name in ("archiver", "poller"):
        write(tmp_path, f"functions/{name}/handler.py", "import signalbox, forecasts")
    return tmp_path


def write(project: Path, name: str, text: str) -> None:
    path = project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def broken(project: Path) -> bool:
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo", *CONTRACTS],
        cwd=project,
        env={"PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Contracts:" in done.stdout, done.stdout + done.stderr
    return done.returncode != 0


def test_imports_towards_the_engine_are_allowed(project: Path) -> None:
    assert not broken(project)


@pytest.mark.parametrize(
    ("module", "imports"),
    [
        ("signalbox/task.py", "forecasts"),
        ("signalbox/task.py", "signalbox_laptop"),
        ("forecasts/task.py", "compliance"),
        ("forecasts/task.py", "signalbox_laptop"),
        ("forecasts/task.py", "functions.archiver.handler"),
        ("functions/poller/more.py", "signalbox_laptop.up"),
        ("functions/poller/more.py", "functions.archiver.handler"),
        ("signalbox_laptop/more.py", "functions.archiver.handler"),
    ],
)
def test_an_import_the_other_way_is_refused(project: Path, module: str, imports: str) -> None:
    write(project, module, f"import {imports}")

    assert broken(project)
