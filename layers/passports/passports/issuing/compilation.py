"""Compile a passport from facts, a product and rules. Nothing here reads a clock, a setting or a database.

check the facts → read the product → read the rules → evaluate → write the documents → check their sizes
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from passports.encoding.canonical import JsonRefused, canonical, read_json, read_own, sha256
from passports.issuing.documents import (
    Documents,
    Hashes,
    Issue,
    fact_leaf,
    payload_of,
    proof_of,
    receipt_of,
    value_leaf,
)
from passports.rules.evaluate import RuleFact, evaluate
from passports.rules.language import read_rules
from signalbox.packs.refusals import refuse

MOST_PAYLOAD, MOST_PROOF, MOST_RECEIPT = 131_072, 262_144, 16_384  # bytes


class Fact(NamedTuple):
    """Hold one fact of a snapshot."""

    type: str
    key: str
    version: int
    payload: str  # JSON, as the database writes it
    payload_canonical: bytes
    payload_hash: bytes


class Source(NamedTuple):
    """Hold what a passport is compiled from; the attributes are JSON, as the database writes it."""

    facts: Sequence[Fact]
    sku: str
    attributes: str
    rules: str


def compile_documents(issue: Issue, source: Source) -> Documents:
    """Return the documents, or raise the code that says why there are none."""
    facts = sorted(source.facts, key=lambda fact: (fact.type, fact.key))  # by code points, which is UTF-8's order, too
    _check_hashes(facts)
    _check_ambiguity(facts)
    product = _product(source)
    rules = read_rules(source.rules)
    rule_facts = [RuleFact(fact.type, fact.key, read_own(fact.payload_canonical)) for fact in facts]
    evaluation = evaluate(rules, rule_facts, product)
    if evaluation.failed:
        raise refuse("CHECK_FAILED", f"these checks do not hold: {', '.join(evaluation.failed)}")
    values = evaluation.values
    payload = _within("PAYLOAD", MOST_PAYLOAD, payload_of(issue, product, values))
    proof, root = proof_of(
        [fact_leaf(fact.type, fact.key, fact.version, fact.payload_hash) for fact in facts]
        + [value_leaf(name, values[name]) for name in sorted(values)]
    )
    _within("PROOF", MOST_PROOF, proof)
    hashes = Hashes(sha256(payload), root, sha256(canonical(rules.document)))
    receipt = _within("RECEIPT", MOST_RECEIPT, receipt_of(issue, hashes))
    return Documents(payload, hashes.payload, proof, root, receipt, sha256(receipt))


def _check_hashes(facts: Sequence[Fact]) -> None:
    for fact in facts:
        is_hashed = sha256(fact.payload_canonical) == fact.payload_hash
        if not is_hashed or _canonical_of(fact.payload) != fact.payload_canonical:
            raise refuse("FACT_HASH_MISMATCH", f"the payload of fact {fact.type} '{fact.key}' is not what was hashed")


def _canonical_of(payload: str) -> bytes | None:
    """Return the canonical bytes of a payload, or None where there are none, as for numbers beyond doubles."""
    try:
        return canonical(json.loads(payload))
    except (ValueError, OverflowError, RecursionError):
        return None


def _check_ambiguity(facts: Sequence[Fact]) -> None:
    for (fact_type, key), count in Counter((fact.type, fact.key) for fact in facts).items():
        if count > 1:
            raise refuse("AMBIGUOUS_FACT", f"the snapshot has {count} facts {fact_type} '{key}'")


def _product(source: Source) -> dict[str, Any]:
    """Return the product: its attributes, and its own sku over an attribute of that name."""
    try:
        attributes = read_json(source.attributes)
        canonical(attributes)
    except (JsonRefused, RecursionError) as error:
        raise refuse("PRODUCT_INVALID", f"the product's attributes can't be read: {error}") from None
    if not isinstance(attributes, dict):
        raise refuse("PRODUCT_INVALID", "the product's attributes are no object")
    return {**attributes, "sku": source.sku}


def _within(name: str, most: int, document: bytes) -> bytes:
    if len(document) > most:
        raise refuse(
            f"{name}_TOO_LARGE", f"the {name.lower()} has {len(document):,} bytes, and at most {most:,} are kept"
        )
    return document
