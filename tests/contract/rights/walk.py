"""One definition read through: which others it may use, what it asks of AWS's clients, and what nobody can follow.

A client may be kept in a variable, handed to a parameter or given back that is annotated as that client, and asked by
the name of one of its methods. All else that is done with one is a fault, since rights could not be told from it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.contract.rights.code import Code, Defined, Function, imports_of
from tests.contract.rights.kinds import (
    FOREIGN,
    UNKNOWN,
    Client,
    Foreign,
    Instance,
    Kind,
    Kinds,
    Many,
    Method,
    Named,
    Package,
    Row,
    annotated,
    answered,
    elements,
    is_ours_alone,
    members,
    one,
)

# By which code is reached that is named nowhere.
DYNAMIC = {"getattr", "import_module", "__import__", "eval", "exec", "attrgetter", "methodcaller", "vars", "globals"}
KEEPING = {"list", "tuple", "sorted", "reversed", "set", "frozenset", "iter"}
PICKING = {"next", "max", "min"}


@dataclass(slots=True)
class Found:
    """What a definition comes to."""

    uses: set[str] = field(default_factory=set)  # definitions
    calls: set[Method] = field(default_factory=set)  # of clients
    dynamic: set[str] = field(default_factory=set)  # the names of DYNAMIC in it
    faults: set[str] = field(default_factory=set)


def read(code: Code, defined: Defined) -> Found:
    """All that is in one definition; of a class, only what is not in its functions."""
    walk = _Walk(code, defined)
    node = defined.node
    if isinstance(node, Function):
        walk.function(node, defined.owner)
    elif isinstance(node, ast.ClassDef):
        walk.class_(node)
    elif isinstance(node, ast.stmt):
        walk.statement(node)
    return walk.found


class _Walk:
    """Reads statements in their order, so that a variable is known where it is used."""

    def __init__(self, code: Code, defined: Defined) -> None:
        self.code, self.defined, self.found = code, defined, Found()
        self.known: dict[str, Kinds] = {}
        self.imported: dict[str, str] = {}

    # ---- what holds others

    def function(self, node: Function, owner: str | None) -> None:
        self.imported |= imports_of(node)
        named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        for place, argument in enumerate(named):
            self.known[argument.arg] = annotated(self.code, argument.annotation, self.defined.module, owner)
            if owner is not None and place == 0 and argument.annotation is None:
                self.known[argument.arg] = _self(node, owner)
        if node.args.vararg:
            inner = annotated(self.code, node.args.vararg.annotation, self.defined.module, owner)
            self.known[node.args.vararg.arg] = one(Many(inner))
        if node.args.kwarg:
            self.known[node.args.kwarg.arg] = FOREIGN
        for default in [*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)]:
            self.expression(default)
        for decorator in node.decorator_list:
            self.expression(decorator)
        for statement in node.body:
            self.statement(statement)

    def class_(self, node: ast.ClassDef) -> None:
        """A thing of the class is born, entered, called and left unseen."""
        for base in [*node.bases, *node.decorator_list]:
            self.expression(base)
        for statement in node.body:
            if isinstance(statement, Function):
                if statement.name.startswith("__") or {"field_validator", "model_validator"} & _decorators(statement):
                    self.found.uses.add(f"{self.defined.name}.{statement.name}")
            elif not isinstance(statement, ast.ClassDef):
                self.statement(statement)

    # ---- statements

    def statement(self, node: ast.stmt) -> None:
        read: Callable[[Any], None] = getattr(self, f"on_{type(node).__name__.lower()}", self.children)
        read(node)

    def on_functiondef(self, node: Function) -> None:
        before = dict(self.known)
        self.function(node, None)
        self.known = before | {node.name: FOREIGN}

    on_asyncfunctiondef = on_functiondef

    def on_classdef(self, node: ast.ClassDef) -> None:
        self.class_(node)

    def on_assign(self, node: ast.Assign) -> None:
        kinds = self.value_of(node.value)
        for target in node.targets:
            self.bind(target, kinds)

    def on_annassign(self, node: ast.AnnAssign) -> None:
        kinds = self.expression(node.value, may_be_client=True) if node.value is not None else UNKNOWN
        said = annotated(self.code, node.annotation, self.defined.module, self.defined.owner)
        self.bind(node.target, said or kinds)

    def on_return(self, node: ast.Return) -> None:
        if node.value is None:
            return
        kinds = self.expression(node.value, may_be_client=True)
        returns = getattr(self.defined.node, "returns", None)
        declared = annotated(self.code, returns, self.defined.module, self.defined.owner)
        if _clients(kinds) - _clients(declared):
            self.fault(node, "gives back a client that its annotation does not name")

    def on_for(self, node: ast.For) -> None:
        self.bind(node.target, elements(self.expression(node.iter)))
        self.all(node.body + node.orelse)

    def on_with(self, node: ast.With) -> None:
        for item in node.items:
            kinds = self.expression(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, self.entered(kinds))
        self.all(node.body)

    def on_import(self, node: ast.Import | ast.ImportFrom) -> None:
        """A function's own are known from its beginning."""

    on_importfrom = on_import

    def all(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.statement(statement)

    def children(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                self.statement(child)
            elif isinstance(child, ast.expr):
                self.expression(child)
            elif not isinstance(child, ast.expr_context | ast.operator):
                self.children(child)

    def value_of(self, value: ast.expr) -> Kinds:
        if isinstance(value, ast.Tuple):
            return one(Row(tuple(self.expression(place, may_be_client=True) for place in value.elts)))
        return self.expression(value, may_be_client=True)

    def bind(self, target: ast.expr, kinds: Kinds) -> None:
        if isinstance(target, ast.Name):
            self.known[target.id] = self.known.get(target.id, UNKNOWN) | kinds
        elif isinstance(target, ast.Tuple | ast.List):
            rows = [kind for kind in kinds if isinstance(kind, Row) and len(kind.places) == len(target.elts)]
            for place, given in enumerate(target.elts):
                inner = given.value if isinstance(given, ast.Starred) else given
                self.bind(inner, rows[0].places[place] if rows else elements(kinds))
        elif isinstance(target, ast.Attribute):
            self.expression(target.value)
        elif isinstance(target, ast.Subscript):
            self.expression(target)
            if _clients(kinds):
                self.fault(target, "keeps a client where no annotation names it")

    def entered(self, kinds: Kinds) -> Kinds:
        """What `with … as` binds."""
        found: set[Kind] = set()
        for kind in kinds:
            entering = members(self.code, kind.of, "__enter__") if isinstance(kind, Instance) else []
            found |= {inner for way in entering for inner in answered(self.code, way)} if entering else {kind}
        return frozenset(found)

    # ---- expressions

    def expression(self, node: ast.expr, *, may_be_client: bool = False) -> Kinds:
        kinds = self.kinds(node)
        if not may_be_client and _clients(kinds):
            self.fault(node, "does something with a client that is neither a call nor handing it on")
        return kinds

    def kinds(self, node: ast.expr) -> Kinds:
        read: Callable[[Any], Kinds] = getattr(self, f"of_{type(node).__name__.lower()}", self.of_anything)
        return read(node)

    def of_anything(self, node: ast.expr) -> Kinds:
        self.children(node)
        return FOREIGN

    def of_name(self, node: ast.Name) -> Kinds:
        return self.named(node.id)

    def of_subscript(self, node: ast.Subscript) -> Kinds:
        self.expression(node.slice)
        return self.picked(self.expression(node.value), node.slice)

    def of_ifexp(self, node: ast.IfExp) -> Kinds:
        self.expression(node.test)
        return self.kinds(node.body) | self.kinds(node.orelse)

    def of_boolop(self, node: ast.BoolOp) -> Kinds:
        return self.together(node.values)

    def of_namedexpr(self, node: ast.NamedExpr) -> Kinds:
        kinds = self.expression(node.value)
        self.bind(node.target, kinds)
        return kinds

    def of_tuple(self, node: ast.Tuple) -> Kinds:
        return one(Row(tuple(self.expression(place) for place in node.elts)))

    def of_list(self, node: ast.List | ast.Set) -> Kinds:
        return one(Many(self.together(node.elts)))

    of_set = of_list

    def of_dict(self, node: ast.Dict) -> Kinds:
        self.together([key for key in node.keys if key is not None])
        return one(Many(self.together(node.values)))

    def of_lambda(self, node: ast.Lambda) -> Kinds:
        self.known |= {argument.arg: UNKNOWN for argument in node.args.args}
        self.expression(node.body)
        return FOREIGN

    def of_starred(self, node: ast.Starred) -> Kinds:
        return elements(self.expression(node.value))

    def together(self, nodes: Iterable[ast.expr]) -> Kinds:
        return frozenset(kind for node in nodes for kind in self.expression(node))

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Kinds:
        for part in node.generators:
            self.bind(part.target, elements(self.expression(part.iter)))
            for condition in part.ifs:
                self.expression(condition)
        if isinstance(node, ast.DictComp):
            self.expression(node.key)
            return one(Many(self.expression(node.value)))
        return one(Many(self.expression(node.elt)))

    of_listcomp = of_setcomp = of_generatorexp = of_dictcomp = comprehension

    def named(self, name: str) -> Kinds:
        if name in self.known:
            return self.known[name]
        meaning = self.imported.get(name)
        meaning = self.code.follow(meaning) if meaning else self.code.meaning(name, self.defined.module)
        if meaning is None:
            if name in DYNAMIC:
                self.found.dynamic.add(name)
            return FOREIGN
        return self.meant(meaning)

    def meant(self, name: str) -> Kinds:
        """What a dotted name is, which is used by that."""
        if name in self.code.defined:
            self.found.uses.add(name)
            return self.of_definition(self.code.defined[name])
        if name in self.code.modules:
            return one(Package(name))
        if name.rpartition(".")[2] in DYNAMIC:
            self.found.dynamic.add(name.rpartition(".")[2])
        return one(Package(name)) if name.partition(".")[0] in ("boto3", "botocore") else FOREIGN

    def of_definition(self, defined: Defined) -> Kinds:
        if isinstance(defined.node, Function | ast.ClassDef):
            return one(Named(defined.name))
        if isinstance(defined.node, ast.AnnAssign):
            return annotated(self.code, defined.node.annotation, defined.module, defined.owner)
        value = defined.node.value if isinstance(defined.node, ast.Assign) else None
        return _Walk(self.code, defined).kinds(value) if isinstance(value, ast.Call) else UNKNOWN

    def of_attribute(self, node: ast.Attribute) -> Kinds:
        found: set[Kind] = set()
        kinds = self.expression(node.value, may_be_client=True)
        if not kinds:
            self.anyones(node.attr)
        for kind in kinds:
            found |= self.member(kind, node)
        return frozenset(found)

    def anyones(self, attribute: str) -> None:
        """Nobody knows whose: so it may be that of each class that has one."""
        self.found.uses |= {member.name for member in self.code.by_last_name.get(attribute, [])}

    def member(self, kind: Kind, node: ast.Attribute) -> Kinds:
        match kind:
            case Client(service):
                self.found.calls.add(Method(service, node.attr))
                return one(Method(service, node.attr))
            case Package(name):
                return self.meant(self.code.follow(f"{name}.{node.attr}"))
            case Instance(name):
                return self.of_instance(name, node.attr)
            case Named(name):
                return self.of_class(name, node.attr)
            case Many() if node.attr in ("values", "get", "pop", "items", "setdefault"):
                return one(kind)
            case _:
                return FOREIGN

    def of_instance(self, name: str, attribute: str) -> Kinds:
        found: set[Kind] = set()
        for member in members(self.code, name, attribute):
            self.found.uses.add(member.name)
            if member.is_property:
                found |= answered(self.code, member)
            else:
                found |= self.of_definition(member)
        if found or members(self.code, name, attribute):
            return frozenset(found)
        if (kept := self.kept(name, attribute)) is not None:
            return kept
        return UNKNOWN if is_ours_alone(self.code, name) else FOREIGN

    def kept(self, name: str, attribute: str) -> Kinds | None:
        """What a class keeps under a name in its __init__."""
        if name not in self.code.kept:
            self.code.kept[name] = {}  # while it is read: what it keeps may be made from what it keeps
            self.code.kept[name] = dict(self.keeps(name))
        return self.code.kept[name].get(attribute)

    def keeps(self, name: str) -> Iterator[tuple[str, Kinds]]:
        for way in members(self.code, name, "__init__"):
            inner = _Walk(self.code, way)
            assert isinstance(way.node, Function)
            inner.function(way.node, way.owner)
            for node in ast.walk(way.node):
                if isinstance(node, ast.AnnAssign) and (kept := _own(node.target)):
                    yield kept, annotated(self.code, node.annotation, way.module, way.owner)
                for target, value in _assigned(node):
                    if kept := _own(target):
                        yield kept, inner.kinds(value)

    def of_class(self, name: str, attribute: str) -> Kinds:
        for member in members(self.code, name, attribute):
            self.found.uses.add(member.name)
            if isinstance(member.node, Function):
                return one(Named(member.name))
            return one(Instance(name))  # of an enumeration
        return FOREIGN

    def picked(self, kinds: Kinds, index: ast.expr) -> Kinds:
        found: set[Kind] = set()
        for kind in kinds:
            if isinstance(kind, Row) and isinstance(index, ast.Constant) and isinstance(index.value, int):
                found |= kind.places[index.value] if -len(kind.places) <= index.value < len(kind.places) else set()
            elif isinstance(kind, Many | Row):
                found |= {kind} if isinstance(index, ast.Slice) else elements(one(kind))
            elif isinstance(kind, Named):
                found.add(kind)
            else:
                found.add(Foreign())
        return frozenset(found)

    # ---- calls

    def of_call(self, node: ast.Call) -> Kinds:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        called = self.expression(node.func, may_be_client=True)
        if name == "getattr" and "getattr" not in self.known and self.harmless(node):
            return UNKNOWN
        given = [self.argument(called, place, argument) for place, argument in enumerate(node.args)]
        for keyword in node.keywords:
            self.argument(called, keyword.arg, keyword.value)
        found: set[Kind] = set()
        for kind in called:
            found |= self.result(kind, name, node, given)
        return frozenset(found)

    def harmless(self, node: ast.Call) -> bool:
        """A member whose name comes late, of what is no client and holds none; or whose name is written there."""
        kinds = self.expression(node.args[0])
        if any(isinstance(kind, Instance) and kind.of.endswith(".Clients") for kind in kinds):
            self.fault(node, "takes a client by a name that is not written there")
        for argument in node.args[1:]:
            self.expression(argument)
        if kinds and not any(isinstance(kind, Package | Named) for kind in kinds):
            self.found.dynamic.discard("getattr")
        return True

    def argument(self, called: Kinds, place: int | str | None, node: ast.expr) -> Kinds:
        kinds = self.expression(node, may_be_client=True)
        for service in _clients(kinds):
            if not any(service in _clients(self.parameter(kind, place)) for kind in called):
                self.fault(node, f"hands a client of {service} to what is not annotated to take one")
        return kinds

    def parameter(self, kind: Kind, place: int | str | None) -> Kinds:
        """What a parameter of ours is annotated with."""
        if not isinstance(kind, Named):
            return UNKNOWN
        defined = self.code.defined[kind.name]
        if isinstance(defined.node, ast.ClassDef):
            made = members(self.code, kind.name, "__init__")
            if not made:
                return self.field(kind.name, place)
            defined = made[0]
        assert isinstance(defined.node, Function)
        arguments = [*defined.node.args.posonlyargs, *defined.node.args.args]
        if defined.owner is not None and "staticmethod" not in defined.decorators:
            arguments = arguments[1:]
        if isinstance(place, int):
            chosen = arguments[place : place + 1]
        else:
            chosen = [one for one in [*arguments, *defined.node.args.kwonlyargs] if one.arg == place]
        return annotated(self.code, chosen[0].annotation, defined.module, defined.owner) if chosen else UNKNOWN

    def field(self, name: str, place: int | str | None) -> Kinds:
        """Of a dataclass."""
        node = self.code.defined[name].node
        fields = [one for one in getattr(node, "body", []) if isinstance(one, ast.AnnAssign)]
        chosen = fields[place : place + 1] if isinstance(place, int) else [
            one for one in fields if getattr(one.target, "id", None) == place
        ]  # fmt: skip
        return annotated(self.code, chosen[0].annotation, self.code.defined[name].module) if chosen else UNKNOWN

    def result(self, kind: Kind, name: str, node: ast.Call, given: list[Kinds]) -> Kinds:
        match kind:
            case Named(called):
                defined = self.code.defined[called]
                return one(Instance(called)) if isinstance(defined.node, ast.ClassDef) else answered(self.code, defined)
            case Instance(of):
                return self.called(of)
            case Foreign() if given and name in KEEPING | PICKING | {"replace", "enumerate", "zip", "closing"}:
                return _kept_by(name, given)
            case Many(inner) if isinstance(node.func, ast.Attribute):
                return _of_mapping(node.func.attr, inner)
            case _:
                return FOREIGN

    def called(self, name: str) -> Kinds:
        ways = members(self.code, name, "__call__")
        self.found.uses |= {way.name for way in ways}
        return frozenset(kind for way in ways for kind in answered(self.code, way)) if ways else FOREIGN

    def fault(self, node: ast.AST, what: str) -> None:
        line = getattr(node, "lineno", "?")
        self.found.faults.add(f"{self.defined.name}, line {line}: {what}")


def _clients(kinds: Kinds) -> set[str]:
    """The services of which there may be a client among them, or in them."""
    found = {kind.service for kind in kinds if isinstance(kind, Client)}
    inner = [one for kind in kinds if isinstance(kind, Many) for one in kind.of]
    return found | {kind.service for kind in inner if isinstance(kind, Client)}


def _self(node: Function, owner: str) -> Kinds:
    if "staticmethod" in _decorators(node):
        return UNKNOWN
    return one(Named(owner) if "classmethod" in _decorators(node) else Instance(owner))


def _decorators(node: Function) -> set[str]:
    plain = [one.func if isinstance(one, ast.Call) else one for one in node.decorator_list]
    return {one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in plain}


def _kept_by(name: str, given: list[Kinds]) -> Kinds:
    match name:
        case "enumerate":
            return one(Many(one(Row((FOREIGN, elements(given[0]))))))
        case "zip":
            return one(Many(one(Row(tuple(map(elements, given))))))
        case "replace" | "closing":
            return given[0]
        case _ if name in PICKING and len(given) == 1:
            return elements(given[0])
        case _ if name in PICKING:
            return frozenset(kind for kinds in given for kind in kinds)
        case _:
            return one(Many(elements(given[0])))


def _of_mapping(method: str, inner: Kinds) -> Kinds:
    match method:
        case "values":
            return one(Many(inner))
        case "items":
            return one(Many(one(Row((FOREIGN, inner)))))
        case _:
            return inner


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Targets with their values, also where a tuple is taken apart."""
    if not isinstance(node, ast.Assign):
        return
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            yield from zip(target.elts, node.value.elts, strict=True)
        else:
            yield target, node.value


def _own(target: ast.expr) -> str | None:
    """The name under which self keeps it."""
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
        return target.attr
    return None
