"""Make rows of the pack's tables, as the product would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import psycopg

from passports.encoding.canonical import canonical, sha256
from tests.support.product_rows import insert

# The rules of the contract's example, and no tests.
RULES = (
    '{"language":"BPC-RULES-1",'
    '"values":[{"name":"mass_kg","expr":["sum",["map",["facts","Battery"],["get",["item"],"mass_kg"]]]}],'
    '"checks":[{"name":"mass_known","expr":["gt",["value","mass_kg"],0]}]}'
)
NO_TESTS = '{"language":"BPC-RULE-TESTS-1","tests":[]}'


@dataclass(frozen=True, slots=True)
class Tenant:
    """Make the rows of one tenant."""

    db: psycopg.Connection[Any]
    id: str

    @staticmethod
    def make(db: psycopg.Connection[Any]) -> Tenant:
        return Tenant(db, str(uuid4()))

    def add(self, table: str, **fields: Any) -> str:
        return insert(self.db, "passports", table, tenant_id=self.id, **fields)

    def document(self, content: bytes, kind: str = "BOM", **fields: Any) -> str:
        """Add a document with one version; return the version's id."""
        document_id = self.add("documents", kind=kind)
        given = {"version": 1, "mime_type": "application/json", "content": content}
        return self.add("document_versions", document_id=document_id, **given | fields)

    def fact(self, payload: dict[str, Any], fact_type: str = "Battery", key: str = "", **fields: Any) -> str:
        given = {
            "fact_key": key or f"battery:{payload.get('sku')}",
            "schema_version": 1,
            "source_doc_version_id": str(uuid4()),
            "payload": payload,
            "payload_canonical": canonical(payload),
            "payload_hash": sha256(canonical(payload)),
        }
        return self.add("facts", fact_type=fact_type, **given | fields)

    def snapshot(self, *facts: str, status: str = "SEALED") -> str:
        snapshot_id = self.add("data_snapshots")
        for fact_id in facts:
            self.add("data_snapshot_items", snapshot_id=snapshot_id, fact_id=fact_id)
        for step in ("READY", "SEALED")[: ("BUILDING", "READY", "SEALED").index(status)]:
            self.db.execute("UPDATE passports.data_snapshots SET status = %s WHERE id = %s", (step, snapshot_id))
        return snapshot_id

    def rules(self, source: str = RULES, status: str = "PUBLISHED", tests: str = NO_TESTS) -> str:
        package_id = self.add("rule_packages", name="rules")
        given = {"version": 1, "status": status, "rules_source": source, "tests_source": tests}
        return self.add("rule_package_versions", rule_package_id=package_id, **given)

    def passport(self, sku: str = "BP-1", attributes: dict[str, Any] | None = None) -> str:
        product_id = self.add("battery_products", sku=sku, attributes=attributes or {})
        return self.add("passports", battery_product_id=product_id)


def events_of(db: psycopg.Connection[Any], aggregate_id: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the types and payloads of what happened to something, in their order."""
    query = "SELECT event_type, payload FROM passports.events WHERE aggregate_id = %s ORDER BY seq"
    return db.execute(query, (aggregate_id,)).fetchall()
