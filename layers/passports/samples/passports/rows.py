"""Make the rows of the story, as the product would."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from passports.chain.events import append_event
from passports.encoding.canonical import canonical, sha256
from signalbox_laptop.home import StackState

_TENANT = "00000000-0000-4000-8000-0000000000b1"
_CELLS = ({"sku": "CELL-1", "mass_kg": 12.5}, {"sku": "CELL-2", "mass_kg": 7.25})
_RULES = {
    "language": "BPC-RULES-1",
    "values": [{"name": "mass_kg", "expr": ["sum", ["map", ["facts", "Battery"], ["get", ["item"], "mass_kg"]]]}],
    "checks": [{"name": "mass_known", "expr": ["gt", ["value", "mass_kg"], 0]}],
}
_TESTS = {
    "language": "BPC-RULE-TESTS-1",
    "tests": [
        {
            "name": "one cell",
            "repeat": 600,
            "vars": {"m": ["integer", 1, 100]},
            "facts": [{"type": "Battery", "key": "battery:a", "payload": {"sku": "a", "mass_kg": {"$var": "m"}}}],
            "expect": {"values": {"mass_kg": {"$var": "m"}}},
        }
    ],
}
# What is submitted beside the passport itself, each payload's members by the names of rows.
JOBS = (
    ("build_snapshot", {"snapshot_id": "building"}),
    ("run_rule_tests", {"rule_package_version_id": "draft"}),
    ("deliver_passport_webhook", {"webhook_delivery_id": "delivery"}),
)


def add_rows(db: psycopg.Connection[Any], stack: StackState) -> dict[str, Any]:
    """Return the ids of the rows by their names."""
    document = _add(db, "documents", kind="BOM")
    facts = [_fact(db, document, cell) for cell in _CELLS]
    sealed, building = _snapshot(db, facts), _snapshot(db, facts[:1])
    for status in ("READY", "SEALED"):
        db.execute("UPDATE passports.data_snapshots SET status = %s WHERE id = %s", (status, sealed))
    package = _add(db, "rule_packages", name="mass")
    product = _add(db, "battery_products", sku="BP-1", attributes=Jsonb({"chemistry": "LFP"}))
    published = _rules(db, package, 1, "PUBLISHED")
    passport = _add(db, "passports", battery_product_id=product)
    event = append_event(db, _TENANT, "DataSnapshot", sealed, "SNAPSHOT_READY", {})
    url = f"{stack.stand_ins['passport_receiver']}/well"
    endpoint = _add(db, "webhook_endpoints", url=url, secret=f"{stack.stack}/webhooks/passports")
    return {
        "tenant": _TENANT,
        "document": _add(db, "documents", kind="BOM"),
        "building": building,
        "draft": _rules(db, package, 2, "DRAFT"),
        "delivery": _add(db, "webhook_deliveries", endpoint_id=endpoint, event_id=event.id),
        "compile": {"passport_id": passport, "snapshot_id": sealed, "rule_package_version_id": published},
    }


def _snapshot(db: psycopg.Connection[Any], facts: list[str]) -> str:
    snapshot = _add(db, "data_snapshots")
    for fact in facts:
        db.execute("INSERT INTO passports.data_snapshot_items VALUES (%s, %s, %s)", (snapshot, fact, _TENANT))
    return snapshot


def _fact(db: psycopg.Connection[Any], document: str, cell: dict[str, Any]) -> str:
    data = canonical(cell)
    return _add(
        db,
        "facts",
        fact_type="Battery",
        fact_key=f"battery:{cell['sku']}",
        schema_version=1,
        source_doc_version_id=document,
        payload=Jsonb(cell),
        payload_canonical=data,
        payload_hash=sha256(data),
    )


def _rules(db: psycopg.Connection[Any], package: str, version: int, status: str) -> str:
    sources = {"rules_source": json.dumps(_RULES), "tests_source": json.dumps(_TESTS)}
    return _add(db, "rule_package_versions", rule_package_id=package, version=version, status=status, **sources)


def _add(db: psycopg.Connection[Any], table: str, **fields: Any) -> str:
    values = {"id": str(uuid4()), "tenant_id": _TENANT, **fields}
    statement = sql.SQL("INSERT INTO passports.{} ({}) VALUES ({})").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, values)),
        sql.SQL(", ").join(sql.Placeholder() * len(values)),
    )
    db.execute(statement, list(values.values()))
    return str(values["id"])
