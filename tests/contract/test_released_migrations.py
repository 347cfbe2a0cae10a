"""What the last release has run on people's databases is never rewritten: what changes is a migration more."""

from __future__ import annotations

import subprocess

import pytest

from tests.support.template import ROOT

RELEASE = (ROOT / "tests/upgrade/last_release").read_text("utf-8").strip()


def of_the_release(*command: str) -> str:
    return subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=True).stdout


RELEASED = [
    path
    for path in of_the_release("ls-tree", "-r", "--name-only", RELEASE, "layers").splitlines()
    if "/migrations/" in path and path.endswith(".sql")
]


def test_the_release_has_migrations_of_the_engine_and_of_the_pack() -> None:
    assert {path.split("/")[1] for path in RELEASED} == {"engine", "forecasts"}


@pytest.mark.parametrize("path", RELEASED)
def test_a_released_migration_is_as_it_was(path: str) -> None:
    assert (ROOT / path).read_text("utf-8") == of_the_release("show", f"{RELEASE}:{path}")
