"""`import signalbox` gives the names that applications and packs import, at little cost."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import signalbox

HEAVY = {"aws_lambda_powertools", "boto3", "botocore", "cronsim", "django", "sqlalchemy", "urllib3"}


def loaded_by(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return {name for name in done.stdout.split() if name.startswith("signalbox.") or "." not in name}


def test_type_checker_reads_the_names_that_are_exported() -> None:
    tree = ast.parse(Path(signalbox.__file__).read_text("utf-8"))
    imported = {
        alias.name: (node.module or "").removeprefix("signalbox.")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("signalbox.")
        for alias in node.names
    }
    assert imported == signalbox._MODULES
    assert sorted(imported) == sorted(signalbox.__all__) == sorted(dir(signalbox))


@pytest.mark.parametrize("name", signalbox.__all__)
def test_each_name_is_there(name: str) -> None:
    assert getattr(signalbox, name).__name__ == name


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="'signalbox' has no attribute 'Cilent'"):
        getattr(signalbox, "Cilent")  # noqa: B009 - the type checker knows that it is not there


def test_importing_the_package_loads_none_of_its_modules() -> None:
    assert not {name for name in loaded_by("import signalbox") if name.startswith("signalbox.")}


def test_client_loads_no_library_of_aws_or_frameworks() -> None:
    loaded = loaded_by("from signalbox import AsyncClient, Client, NewJob; AsyncClient('stack'); Client('stack')")
    assert not loaded & HEAVY
    assert "signalbox.app" not in loaded


def test_payloads_of_all_job_types_load_no_library_of_aws() -> None:
    loaded = loaded_by("from signalbox import Client; [one.model for one in Client().job_types.by_name.values()]")
    assert "signalbox.job_types.tables.export_table" in loaded
    assert not loaded & HEAVY
