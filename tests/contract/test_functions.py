"""A function's folder holds a handler that decodes, calls the engine and encodes, and stays small."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.template import ROOT

MOST_LINES = 40
HANDLERS = sorted(ROOT.glob("functions/*/handler.py"))


def long_functions(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > MOST_LINES:
                yield f"{node.name} has {lines} lines"


@pytest.mark.parametrize("path", HANDLERS, ids=lambda path: path.parent.name)
def test_no_function_of_a_handler_is_longer_than_forty_lines(path: Path) -> None:
    assert list(long_functions(path.read_text())) == []


@pytest.mark.parametrize("path", HANDLERS, ids=lambda path: path.parent.name)
def test_a_handler_is_where_the_template_looks_for_it(path: Path) -> None:
    names = {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}

    assert "handler" in names


def test_a_folder_of_functions_holds_nothing_but_its_handler() -> None:
    found = {path for path in ROOT.glob("functions/*/*") if path.name != "__pycache__"}

    assert HANDLERS
    assert found == set(HANDLERS)


@pytest.mark.parametrize(("lines", "faults"), [(MOST_LINES, []), (MOST_LINES + 1, ["handler has 41 lines"])])
def test_the_forty_first_line_is_found(lines: int, faults: list[str]) -> None:
    body = "    pass\n" * (lines - 1)

    assert list(long_functions(f"def handler(event, context):\n{body}")) == faults
