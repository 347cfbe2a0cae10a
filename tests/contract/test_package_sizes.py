"""docs/deploy.md says how large each function is with its layers, and a ceiling; both hold."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.support.build import Built, layers_of, runtime_version
from tests.support.template import FUNCTION, ROOT, deployed

pytest_plugins = ["tests.support.packages"]

MEGABYTE = 1024 * 1024
LAMBDAS_CEILING = 250  # MB that a function and its layers may take up unzipped
MOST_OFF = 0.1  # of a size in the document, by which it may be out of date
FUNCTIONS = sorted(deployed().of(FUNCTION))
ROW = re.compile(r"^\| `(\w+)` \| ([\d.]+) \| (\d+) \| ([\d.]+) \| (\d+) \|$", re.MULTILINE)


@dataclass(frozen=True)
class Row:
    """Hold sizes in MB, each with its maximum."""

    unzipped: float
    most_unzipped: int
    zipped: float
    most_zipped: int


def rows() -> dict[str, Row]:
    found = ROW.findall((ROOT / "docs/deploy.md").read_text("utf-8"))
    return {name: Row(float(a), int(b), float(c), int(d)) for name, a, b, c, d in found}


@cache
def sizes(folder: Path) -> tuple[float, float]:
    """Return the built folder's size, unzipped and zipped, in MB."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    archive = folder.with_suffix(".zip")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        for path in files:
            zipped.write(path, path.relative_to(folder))
    return sum(path.stat().st_size for path in files) / MEGABYTE, archive.stat().st_size / MEGABYTE


def measured(built: Path, function: str) -> tuple[float, float]:
    parts = [sizes(built / name) for name in (function, *layers_of(deployed().resources, function))]
    return sum(part[0] for part in parts), sum(part[1] for part in parts)


def test_each_function_has_a_ceiling_far_below_lambdas() -> None:
    assert sorted(rows()) == FUNCTIONS
    assert max(row.most_unzipped for row in rows().values()) < LAMBDAS_CEILING * 0.6


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_with_its_layers_stays_below_its_ceiling(built_for_lambda: Path, function: str) -> None:
    unzipped, zipped = measured(built_for_lambda, function)
    row = rows()[function]

    assert unzipped < row.most_unzipped
    assert zipped < row.most_zipped


@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_document_has_its_size(built_for_lambda: Path, built_here: Built, function: str) -> None:
    if built_here.interpreter.version != runtime_version():
        pytest.skip("the sizes are with bytecode, for which this machine lacks the runtime's Python")
    unzipped, zipped = measured(built_for_lambda, function)
    row = rows()[function]

    assert unzipped == pytest.approx(row.unzipped, rel=MOST_OFF), f"write {unzipped:.1f} into docs/deploy.md"
    assert zipped == pytest.approx(row.zipped, rel=MOST_OFF), f"write {zipped:.1f} into docs/deploy.md"
