"""Find the facts in a document: pure, from bytes to facts or the first fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from passports.encoding.canonical import JsonRefused, canonical, read_json, sha256

MOST_BYTES = 4 * 1024 * 1024
MOST_ELEMENTS, MOST_DEPTH, LONGEST_NAME = 10_000, 64, 200


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """Say where a kind of document has its elements, and what a fact is called by."""

    array: str
    name: str  # the member that names an element
    fact_type: str
    prefix: str


KINDS: Mapping[str, DocumentKind] = {
    "BOM": DocumentKind("components", "sku", "Battery", "battery:"),
    "PCF": DocumentKind("footprints", "sku", "CarbonFootprint", "pcf:"),
    "DUE_DILIGENCE": DocumentKind("reports", "supplier", "DueDiligence", "dd:"),
}


@dataclass(frozen=True, slots=True)
class ParsedFact:
    """Hold one fact, with the bytes that are hashed."""

    fact_type: str
    key: str
    payload: dict[str, Any]
    canonical: bytes

    @property
    def hash(self) -> bytes:
        return sha256(self.canonical)


class DocumentRejected(Exception):
    """The document has no facts that could be kept."""

    def __init__(self, code: str, path: str, message: str) -> None:
        super().__init__(message)
        self.code, self.path, self.message = code, path, message

    def as_json(self) -> dict[str, str]:
        return {"code": self.code, "path": self.path, "message": self.message}


def find_facts(kind: str, content: bytes) -> list[ParsedFact]:
    """Return the facts, or raise the first fault, by the order in which faults are looked for."""
    if kind not in KINDS:
        raise DocumentRejected("UNSUPPORTED_DOCUMENT_KIND", "", f"documents of kind {kind} have no facts")
    found = KINDS[kind]
    elements = _elements(_read(content), found)
    _check_names(elements, found)
    facts = [
        ParsedFact(found.fact_type, found.prefix + element[found.name], element, canonical(element))
        for element in elements
    ]
    _check_keys(facts, found)
    return facts


def _read(content: bytes) -> Any:
    if len(content) > MOST_BYTES:
        raise DocumentRejected("INVALID_JSON", "", f"the document has more than {MOST_BYTES} bytes")
    try:
        value = read_json(content)
    except JsonRefused as refusal:
        raise DocumentRejected("INVALID_JSON", "", f"the document is no JSON: {refusal}") from None
    if depth_of(value) > MOST_DEPTH:
        raise DocumentRejected("INVALID_JSON", "", f"the document is nested more than {MOST_DEPTH} deep")
    return value


def depth_of(value: Any) -> int:
    """Return how many containers are within each other at most; not recursive, since it may be many."""
    deepest, left = 0, [(value, 1)]
    while left:
        one, depth = left.pop()
        if isinstance(one, dict | list):
            deepest = max(deepest, depth)
            left += [(inner, depth + 1) for inner in (one.values() if isinstance(one, dict) else one)]
    return deepest


def _elements(document: Any, kind: DocumentKind) -> list[dict[str, Any]]:
    if not isinstance(document, dict):
        raise _off_schema("", "the document is no object")
    elements, path = document.get(kind.array), f"/{kind.array}"
    if not isinstance(elements, list):
        raise _off_schema(path, f"the document has no array {kind.array}")
    if len(elements) > MOST_ELEMENTS:
        raise _off_schema(path, f"{kind.array} has more than {MOST_ELEMENTS} elements")
    for place, element in enumerate(elements):
        if not isinstance(element, dict):
            raise _off_schema(f"{path}/{place}", "the element is no object")
    return elements


def _check_names(elements: list[dict[str, Any]], kind: DocumentKind) -> None:
    for place, element in enumerate(elements):
        name = element.get(kind.name)
        if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME:
            what = f"{kind.name} is no text of 1 to {LONGEST_NAME} characters"
            raise _off_schema(f"/{kind.array}/{place}/{kind.name}", what)


def _check_keys(facts: list[ParsedFact], kind: DocumentKind) -> None:
    seen: set[str] = set()
    for place, fact in enumerate(facts):
        if fact.key in seen:
            path = f"/{kind.array}/{place}/{kind.name}"
            raise DocumentRejected("DUPLICATE_FACT", path, f"an earlier element has this {kind.name}, too")
        seen.add(fact.key)


def _off_schema(path: str, message: str) -> DocumentRejected:
    return DocumentRejected("INVALID_SCHEMA", path, message)


# ---- Lines of a text


def elements_of_lines(kind: str, lines: Iterator[str]) -> list[dict[str, Any]]:
    """Return the elements that lines such as `SKU: CELL-1` describe; each begins with the member that names it."""
    if kind not in KINDS:
        return []
    elements: list[dict[str, Any]] = []
    for label, value in filter(None, map(_labelled, lines)):
        if label == KINDS[kind].name:
            elements.append({label: value})
        elif elements:
            elements[-1].setdefault(label, value)
    return elements


def _labelled(line: str) -> tuple[str, Any] | None:
    label, colon, value = line.partition(":")
    name = "_".join(label.strip().lower().split())
    return (name, _value(value.strip())) if colon and name else None


def _value(text: str) -> Any:
    """Return a number where JSON's grammar has one that can be read again, else the text."""
    try:
        value = read_json(text)
        read_json(canonical(value))
    except JsonRefused:
        return text
    return value if isinstance(value, int | float) and not isinstance(value, bool) else text
