"""A migration that the last release has applied to people's databases never changes: a change is a new migration."""

from __future__ import annotations

import subprocess

import pytest

from tests.support.template import ROOT

RELEASE = (ROOT / "tests/upgrade/last_release").read_text("utf-8").strip()


def git(*command: str) -> str:
    return subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=True).stdout


RELEASED = [
    path
    for path in git("ls-tree", "-r", "--name-only", RELEASE, "layers").splitlines()
    if "/migrations/" in path and path.endswith(".sql")
]


def test_release_has_migrations_of_the_engine_and_of_the_pack() -> None:
    assert {path.split("/")[1] for path in RELEASED} == {"engine", "forecasts"}


@pytest.mark.parametrize("path", RELEASED)
def test_released_migration_never_changes(path: str) -> None:
    assert (ROOT / path).read_text("utf-8") == git("show", f"{RELEASE}:{path}")
