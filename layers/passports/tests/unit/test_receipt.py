"""Facts and rules become the documents of the contract's example, byte for byte, in every process."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from passports.encoding.canonical import canonical, sha256
from passports.issuing.compilation import Fact, Source, compile_documents
from passports.issuing.documents import Documents, Issue
from signalbox import Permanent
from tests.support.passport_rows import RULES

MOST = {"PAYLOAD": 131_072, "PROOF": 262_144, "RECEIPT": 16_384}
PLAIN = '{"language":"BPC-RULES-1","values":[],"checks":[]}'
HASHES = {
    "payload": "10ee9a52ccdb4e068e5e34575f72a79ffc213a913a4aff525f65be33851ecb12",
    "proof": "e586f0535aaa550f2218ef1e8aa48c2fce490dcccb06dd064b685cc24890348f",
    "receipt": "bc624f04dd7b47f1eab5d5678023ee9e0e5057f3a34337fa2a07502fbc80ab04",
}
ROOT = "c469a0ac598410258b47adbbb93c91b9195bd8747de80c825f630fc95761633c"


def u(number: int) -> UUID:
    return UUID(f"00000000-0000-4000-8000-00000000000{number}")


def issue(**changes: Any) -> Issue:
    ids = {"tenant_id": u(1), "passport_id": u(2), "snapshot_id": u(3), "rule_package_version_id": u(4)}
    others: dict[str, Any] = {"issued_at": datetime(2026, 3, 1, 8, tzinfo=UTC), "build_id": "build-1"}
    return Issue(**others | ids | changes)


def fact(payload: dict[str, Any], key: str = "", fact_type: str = "Battery") -> Fact:
    data = canonical(payload)
    return Fact(fact_type, key or f"battery:{payload['sku']}", 1, json.dumps(payload), data, sha256(data))


F1, F2 = fact({"mass_kg": 12.5, "sku": "CELL-1"}), fact({"mass_kg": 7.25, "sku": "CELL-2"})


def example(**changes: Any) -> Source:
    return Source([F1, F2], "BP-1", "{}", RULES)._replace(**changes)


def hashes_of(documents: Documents) -> dict[str, str]:
    return {name: sha256(getattr(documents, name)).hex() for name in HASHES}


def test_example_has_the_hashes_of_the_contract() -> None:
    documents = compile_documents(issue(), example())
    assert hashes_of(documents) == HASHES
    assert [documents.payload_hash.hex(), documents.receipt_hash.hex()] == [HASHES["payload"], HASHES["receipt"]]
    assert documents.proof_root_hash.hex() == ROOT


PRINT = """
found = compile_documents(issue(), example())
print(json.dumps({name: sha256(getattr(found, name)).hex() for name in HASHES}))
"""


@pytest.mark.parametrize("seed", ["0", "7"])
def test_another_process_compiles_the_same_bytes(seed: str) -> None:
    there = {"TZ": "Asia/Kathmandu", "LC_ALL": "tr_TR.UTF-8", "PYTHONHASHSEED": seed, "PYTHONUTF8": "0"}
    path = os.pathsep.join(entry for entry in sys.path if entry)
    script = Path(__file__).read_text("utf-8").partition("def hashes_of")[0] + PRINT
    found = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": path} | there, capture_output=True, text=True, check=True
    )
    assert json.loads(found.stdout) == HASHES


def test_order_of_facts_does_not_matter() -> None:
    others = [fact({"mass_kg": 1, "sku": sku}) for sku in ("é", "\U00010000", "\uffff")]
    facts = [F1, F2, *others, fact({"sku": "a"}, fact_type="A")]
    expected = compile_documents(issue(), example(facts=facts))
    for seed in range(5):
        random.Random(seed).shuffle(facts)
        assert compile_documents(issue(), example(facts=facts)) == expected
    keys = [leaf.get("key", "").encode() for leaf in json.loads(expected.proof)["leaves"]]
    assert keys[1:-1] == sorted(keys[1:-1])


def test_instant_is_written_in_utc() -> None:
    there = issue(issued_at=datetime(2026, 3, 1, 13, 45, tzinfo=timezone(timedelta(hours=5, minutes=45))))
    assert compile_documents(there, example()) == compile_documents(issue(), example())


@pytest.mark.parametrize("changes", [{"build_id": "build-2"}, {"tenant_id": u(9)}, {"snapshot_id": u(9)}])
def test_receipt_alone_names_the_origin(changes: dict[str, Any]) -> None:
    other = compile_documents(issue(**changes), example())
    assert {name for name, found in hashes_of(other).items() if found != HASHES[name]} == {"receipt"}


def enlarged(name: str, more: int) -> tuple[Issue, Source]:
    """Return what one document with this many bytes more than is kept is compiled from."""
    padding = "x" * (MOST[name] + more)
    match name:
        case "PAYLOAD":
            empty = example(attributes='{"text":""}', rules=PLAIN)
            size = len(compile_documents(issue(), empty).payload)
            return issue(), empty._replace(attributes=json.dumps({"text": padding[size:]}))
        case "PROOF":
            size = len(compile_documents(issue(), example(facts=[fact({}, "x")], rules=PLAIN)).proof) - 1
            return issue(), example(facts=[fact({}, padding[size:])], rules=PLAIN)
    size = len(compile_documents(issue(build_id=""), example()).receipt)
    return issue(build_id=padding[size:]), example()


@pytest.mark.parametrize("name", ["PAYLOAD", "PROOF", "RECEIPT"])
def test_each_document_has_a_most_of_bytes(name: str) -> None:
    largest = compile_documents(*enlarged(name, 0))
    assert len(getattr(largest, name.lower())) == MOST[name]
    with pytest.raises(Permanent, match=f"^{name}_TOO_LARGE: ") as refused:
        compile_documents(*enlarged(name, 1))
    assert type(refused.value).__name__ == f"{name.capitalize()}TooLarge"


def test_deep_fact_is_a_mismatch_and_no_crash() -> None:
    deep = "[" * 5000 + "]" * 5000
    changed = Fact("Battery", "x", 1, deep, deep.encode(), sha256(deep.encode()))
    with pytest.raises(Permanent, match=r"^FACT_HASH_MISMATCH"):
        compile_documents(issue(), example(facts=[changed]))


@pytest.mark.parametrize("attributes", ["[" * 2000 + "]" * 2000, '{"a":' * 600 + "1" + "}" * 600, "1" * 5000, "null"])
def test_strange_attributes_are_refused(attributes: str) -> None:
    with pytest.raises(Permanent, match=r"^PRODUCT_INVALID"):
        compile_documents(issue(), example(attributes=attributes))
