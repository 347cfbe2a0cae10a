"""The project's own Python, as it is written: modules, what they define, and what each name in them means.

Nothing is imported. A name is followed through imports, also those that a function makes for itself or that only a type
checker sees, to a definition of ours or out of the project.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.support.template import ROOT

Function = ast.FunctionDef | ast.AsyncFunctionDef
ROOMS = {"signalbox": ROOT / "layers/engine", "forecasts": ROOT / "layers/forecasts", "functions": ROOT}


@dataclass(frozen=True, slots=True)
class Defined:
    """A function, a class or a value, by its dotted name: signalbox.jobs.lanes.Lanes.send."""

    name: str
    module: str
    node: ast.AST
    owner: str | None = None  # the class whose member it is

    @property
    def is_property(self) -> bool:
        return isinstance(self.node, Function) and bool(self.decorators & {"property", "cached_property"})

    @property
    def decorators(self) -> set[str]:
        return {_last(one) for one in getattr(self.node, "decorator_list", [])}


@dataclass(frozen=True, slots=True)
class Module:
    """One file."""

    name: str
    tree: ast.Module
    imported: Mapping[str, str] = field(default_factory=dict)  # a name in it: what that is called where it comes from


@dataclass(frozen=True)
class Code:
    """All of it."""

    modules: Mapping[str, Module]
    kept: dict[str, dict[str, Any]] = field(default_factory=dict)  # by class, what its __init__ keeps, once looked up

    @staticmethod
    def read(sources: Mapping[str, str] | None = None) -> Code:
        """As it is on disk; `sources` are further modules, or others in their place."""
        found = {name: path.read_text("utf-8") for name, path in _files()} | dict(sources or {})
        return Code({name: _module(name, text) for name, text in found.items()})

    @cached_property
    def defined(self) -> Mapping[str, Defined]:
        return {one.name: one for module in self.modules.values() for one in _definitions(module)}

    @cached_property
    def by_last_name(self) -> Mapping[str, list[Defined]]:
        """Members of classes by their own name, for calls whose receiver nobody knows."""
        found: dict[str, list[Defined]] = {}
        for one in self.defined.values():
            if one.owner is not None and isinstance(one.node, Function):
                found.setdefault(one.name.rpartition(".")[2], []).append(one)
        return found

    def follow(self, name: str) -> str:
        """The name of the definition, wherever it was imported by way of."""
        for _ in range(10):
            module, _, last = name.rpartition(".")
            if name in self.defined or module not in self.modules or last not in self.modules[module].imported:
                return name
            name = self.modules[module].imported[last]
        return name

    def meaning(self, word: str, module: str) -> str | None:
        """What a name means at the top of a module: a dotted name, or None for a builtin one."""
        if f"{module}.{word}" in self.defined:
            return f"{module}.{word}"
        imported = self.modules[module].imported.get(word)
        return None if imported is None else self.follow(imported)


def imports_of(tree: ast.AST) -> dict[str, str]:
    """The names that the imports in it bind, with what they stand for."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                found[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return found


def path_of(module: str) -> Path:
    """Where a module is written."""
    return dict(_files())[module]


def _files() -> Iterator[tuple[str, Path]]:
    for room, folder in ROOMS.items():
        for path in sorted((folder / room).rglob("*.py")):
            steps = path.relative_to(folder).with_suffix("").parts
            yield ".".join(steps[:-1] if steps[-1] == "__init__" else steps), path


def _module(name: str, text: str) -> Module:
    tree = ast.parse(text)
    return Module(name, tree, imported=imports_of(tree))


def _definitions(module: Module) -> Iterator[Defined]:
    for node in _statements(module.tree.body):
        yield from _defined_by(node, module.name, module.name, None)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try):
            yield from _statements(node.body)


def _defined_by(node: ast.stmt, module: str, within: str, owner: str | None) -> Iterator[Defined]:
    for name in _bound_by(node):
        yield Defined(f"{within}.{name}", module, node, owner)
    if isinstance(node, ast.ClassDef):
        name = f"{within}.{node.name}"
        for inner in node.body:
            yield from _defined_by(inner, module, name, name)


def _bound_by(node: ast.stmt) -> list[str]:
    if isinstance(node, Function | ast.ClassDef):
        return [node.name]
    targets = {ast.Assign: "targets", ast.AnnAssign: "target"}.get(type(node))
    found = getattr(node, targets) if targets else []
    inner = [one for target in (found if isinstance(found, list) else [found]) for one in ast.walk(target)]
    return [one.id for one in inner if isinstance(one, ast.Name)]


def _last(node: ast.expr) -> str:
    called = node.func if isinstance(node, ast.Call) else node
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
