"""What an expression is, as far as it matters for rights: a client of AWS, a thing of ours, or neither.

The project is annotated throughout, so annotations are believed and nothing is guessed. What can't be told is UNKNOWN,
and is taken for anything that has the member asked for.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tests.contract.rights.code import Code, Defined, Function

STUBS = "mypy_boto3_"
SEQUENCES = {
    "list", "set", "frozenset", "deque", "Sequence", "Iterable", "Iterator", "Collection", "Generator", "Set",
    "MutableSequence", "AbstractSet",
}  # fmt: skip
MAPPINGS = {"dict", "Mapping", "MutableMapping", "defaultdict", "OrderedDict"}
WRAPPERS = {"Annotated", "Optional", "Final", "ClassVar", "Required", "NotRequired", "ReadOnly"}


@dataclass(frozen=True, slots=True)
class Client:
    """A client of AWS."""

    service: str


@dataclass(frozen=True, slots=True)
class Method:
    """What a client is asked to do, called or handed on."""

    service: str
    name: str


@dataclass(frozen=True, slots=True)
class Instance:
    """Of a class of ours."""

    of: str


@dataclass(frozen=True, slots=True)
class Named:
    """A definition of ours itself: a class or a function."""

    name: str


@dataclass(frozen=True, slots=True)
class Package:
    """A module, ours or not."""

    name: str


@dataclass(frozen=True, slots=True)
class Many:
    """A collection; of a mapping, its values."""

    of: frozenset[Kind]


@dataclass(frozen=True, slots=True)
class Row:
    """A tuple whose places differ."""

    places: tuple[frozenset[Kind], ...]


@dataclass(frozen=True, slots=True)
class Foreign:
    """Something that is neither ours nor a client: text, numbers, a connection of psycopg."""


Kind = Client | Method | Instance | Named | Package | Many | Row | Foreign
Kinds = frozenset[Kind]
UNKNOWN: Kinds = frozenset()
FOREIGN: Kinds = frozenset({Foreign()})


def one(kind: Kind) -> Kinds:
    return frozenset({kind})


def annotated(code: Code, node: ast.expr | None, module: str, owner: str | None = None) -> Kinds:
    """What an annotation in a module says; `owner` is what Self means."""
    if node is None:
        return UNKNOWN
    if isinstance(node, ast.Constant):
        if not isinstance(node.value, str):
            return FOREIGN
        return annotated(code, ast.parse(node.value, mode="eval").body, module, owner)
    if isinstance(node, ast.BinOp):
        return annotated(code, node.left, module, owner) | annotated(code, node.right, module, owner)
    if isinstance(node, ast.Subscript):
        return _parametrised(code, node, module, owner)
    return _plain(code, _dotted(code, node, module), owner)


def _parametrised(code: Code, node: ast.Subscript, module: str, owner: str | None) -> Kinds:
    name = _dotted(code, node.value, module)
    last = name.rpartition(".")[2]
    arguments = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    kinds = [annotated(code, argument, module, owner) for argument in arguments] if last != "Literal" else [FOREIGN]
    if last in SEQUENCES:
        return one(Many(kinds[0]))
    if last in MAPPINGS:
        return one(Many(kinds[-1]))
    if last in WRAPPERS:
        return kinds[0]
    if last == "tuple":
        is_row = not (isinstance(arguments[-1], ast.Constant) and arguments[-1].value is ...)
        return one(Row(tuple(kinds))) if is_row else one(Many(kinds[0]))
    if last == "type":
        return frozenset(Named(kind.of) for kind in kinds[0] if isinstance(kind, Instance)) or FOREIGN
    return _plain(code, name, owner)


def _plain(code: Code, name: str, owner: str | None) -> Kinds:
    last = name.rpartition(".")[2]
    if name.startswith(STUBS) and last.endswith("Client"):
        return one(Client(name.partition(".")[0].removeprefix(STUBS)))
    if last == "Self" and owner is not None:
        return one(Instance(owner))
    if last in ("Any", "object", "TypeVar"):
        return UNKNOWN
    defined = code.defined.get(name)
    if defined is None:
        return FOREIGN
    if isinstance(defined.node, ast.ClassDef):
        return one(Instance(name))
    value = getattr(defined.node, "value", None)  # another name for a type
    return annotated(code, value, defined.module) if _is_type(value) else UNKNOWN


def _is_type(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Name | ast.Attribute | ast.Subscript | ast.BinOp)


def _dotted(code: Code, node: ast.expr, module: str) -> str:
    if isinstance(node, ast.Name):
        return code.meaning(node.id, module) or node.id
    if isinstance(node, ast.Attribute):
        return code.follow(f"{_dotted(code, node.value, module)}.{node.attr}")
    return "?"


def answered(code: Code, function: Defined) -> Kinds:
    """What a function gives, by its annotation."""
    assert isinstance(function.node, Function)
    kinds = annotated(code, function.node.returns, function.module, function.owner)
    if "contextmanager" in function.decorators:
        return frozenset(inner for kind in kinds if isinstance(kind, Many) for inner in kind.of)
    return kinds


def lineage(code: Code, name: str) -> Iterator[Defined]:
    """A class of ours and those of ours that it is made from."""
    defined = code.defined.get(name)
    if defined is None or not isinstance(defined.node, ast.ClassDef):
        return
    yield defined
    for base in defined.node.bases:
        plain = base.value if isinstance(base, ast.Subscript) else base
        yield from lineage(code, _dotted(code, plain, defined.module))


def is_ours_alone(code: Code, name: str) -> bool:
    """Whether all that the class can have is written in the project."""
    return all(
        _dotted(code, base.value if isinstance(base, ast.Subscript) else base, one.module) in code.defined
        for one in lineage(code, name)
        for base in getattr(one.node, "bases", [])
    )


def members(code: Code, name: str, member: str) -> list[Defined]:
    """The member of a class, as it or what it is made from has it; of a protocol, of each class that keeps it."""
    found = [f"{one.name}.{member}" for one in lineage(code, name)]
    own = [code.defined[one] for one in found if one in code.defined][:1]
    protocols = [one for one in lineage(code, name) if _is_protocol(one)]
    keeping = [one for one in code.by_last_name.get(member, []) if any(_keeps(code, one, each) for each in protocols)]
    return own + keeping


def _keeps(code: Code, member: Defined, protocol: Defined) -> bool:
    """Whether the class of a member has all that a protocol asks for."""
    asked = [one.name for one in getattr(protocol.node, "body", []) if isinstance(one, Function)]
    owners = [one.name for one in lineage(code, member.owner or "")]
    return all(any(f"{owner}.{name}" in code.defined for owner in owners) for name in asked)


def _is_protocol(defined: Defined) -> bool:
    return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in getattr(defined.node, "bases", []))


def elements(kinds: Kinds) -> Kinds:
    """What one of them is, of a collection."""
    found: set[Kind] = set()
    for kind in kinds:
        if isinstance(kind, Many):
            found |= kind.of
        elif isinstance(kind, Row):
            found |= {inner for place in kind.places for inner in place}
        elif isinstance(kind, Foreign):
            found.add(kind)
    return frozenset(found)
