"""Requirements here and in Lambda are pinned with hashes, alike in both, and tied to no host."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.template import ROOT

APART = (ROOT / "tests/support/lambda_runtime/requirements", ROOT / "checks/requirements")
PINNED = [
    *(ROOT / "requirements.txt", ROOT / "requirements-uv.txt", *(path.with_suffix(".txt") for path in APART)),
    *sorted(ROOT.glob("layers/*/requirements.txt")),
]
NAMED = [
    *(ROOT / "requirements.in", *(path.with_suffix(".in") for path in APART)),
    *sorted(ROOT.glob("layers/*/requirements.in")),
]
# Each of these names the host of every file it lists.
LOCK_FILES = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "pylock.toml", "package-lock.json", "yarn.lock")


def requirements(text: str) -> list[str]:
    """Return each requirement in one line with its hashes."""
    joined = re.sub(r"\s*\\\n\s*", " ", text)
    return [line for line in joined.splitlines() if line.strip() and not line.strip().startswith("#")]


def unpinned(text: str) -> list[str]:
    return [line for line in requirements(text) if not re.match(r"[\w.\[\]-]+==\S+.* --hash=sha256:\w{64}", line)]


def pins(path: Path) -> set[str]:
    """Return each name==version; a name may have two, for two versions of Python."""
    return {line.split()[0] for line in requirements(path.read_text())}


@pytest.mark.parametrize("path", PINNED, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_requirement_is_pinned_and_has_a_hash(path: Path) -> None:
    assert pins(path)
    assert unpinned(path.read_text()) == []


@pytest.mark.parametrize("text", ["one==1.0\n", "one>=1.0 \\\n    --hash=sha256:00\n", "one\n", "./wheels/one.whl\n"])
def test_a_requirement_without_pin_or_hash_is_found(text: str) -> None:
    good = f"zero==1.0 ; python_version < '3.12' \\\n    --hash=sha256:{'0' * 64}\n    # via one\n"

    assert unpinned(good + text) == requirements(text)


@pytest.mark.parametrize("path", [*PINNED, *NAMED], ids=lambda path: str(path.relative_to(ROOT)))
@pytest.mark.parametrize("words", ["://", "index-url", "find-links"])
def test_no_requirement_names_a_host(path: Path, words: str) -> None:
    assert words not in path.read_text()


def test_each_list_of_requirements_has_been_pinned() -> None:
    own = [path for path in NAMED if path.parent.parent != ROOT / "layers"]  # those of the layers are pinned together
    assert [path for path in own if path.with_suffix(".txt") not in PINNED] == []


def test_lambda_loads_the_versions_that_are_tested_here() -> None:
    for layer in ROOT.glob("layers/*/requirements.txt"):
        assert pins(layer) <= pins(ROOT / "requirements.txt"), layer


def test_the_installer_that_sets_up_is_the_one_that_builds() -> None:
    assert pins(ROOT / "requirements-uv.txt") <= pins(ROOT / "requirements.txt")


def test_no_lock_file_that_names_hosts_lies_here() -> None:
    folders = [path for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")]
    found = [path for name in LOCK_FILES for folder in folders for path in folder.rglob(name)]

    assert found + [ROOT / name for name in LOCK_FILES if (ROOT / name).exists()] == []
