"""Something reaches everything that is deployed or installed: a name without other mention is unused code."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from signalbox.postgres.queries import load_queries
from tests.support.template import ROOT

CODE = sorted(
    path
    for folder in ("layers", "functions", "cli", "laptop")
    for path in (ROOT / folder).rglob("*.py")
    if "tests" not in path.relative_to(ROOT).parts
)
_WORD = re.compile(r"\w+")
# What Python's library, pydantic, Lambda or Django's settings call by its name.
CALLED_FROM_OUTSIDE = re.compile(
    r"__\w+__|handle_\w+|do_[A-Z]+|handler|log_message|shutdown_default_executor|readinto|makefile|commit|rollback"
    "|SignalboxBackend"
)
CHECKS = {"field_validator", "model_validator"}
# Queries that a module names by the table, or gives to another.
NAMED_BY_TABLE = {"drop_job_executions", "drop_job_history", "weigh"}


def test_each_function_and_class_is_named_by_something_else() -> None:
    """What packs may use, and no pack here does, is named by the page of the building blocks."""
    named = Counter(word for path in CODE for word in _named(path))
    named.update(_WORD.findall((ROOT / "docs/building-blocks.md").read_text("utf-8")))
    own = [path for path in CODE if not {"stand_ins", "testing"} & set(path.parts)]  # what tests ask
    alone = [f"{path.relative_to(ROOT)}: {name}" for path in own for name in _defined(path) if not named[name]]
    assert alone == []


def test_each_query_is_asked() -> None:
    unasked = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted((ROOT / "layers").rglob("*.sql"))
        if (module := path.with_suffix(".py")).exists()
        for name in load_queries(str(module))
        if name not in NAMED_BY_TABLE | set(_named(module))
    ]
    assert unasked == []


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def _defined(path: Path) -> Iterator[str]:
    for node in ast.walk(_tree(path)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        decorated = {word for one in node.decorator_list for word in _WORD.findall(ast.unparse(one))}
        if not CALLED_FROM_OUTSIDE.fullmatch(node.name) and not decorated & CHECKS:
            yield node.name


def _named(path: Path) -> Iterator[str]:
    """Yield each name outside its definition, and each word of strings but docstrings."""
    nodes = list(ast.walk(_tree(path)))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.Constant(value=str(text)) if id(node) not in docstrings:
                yield from _WORD.findall(text)
