"""Issue passports, append and verify events, and run rule tests.

The floor of passports is their five steps in one process, one after the other: the jobs' own functions without the
engine around them. That of a verification is hashing the same bytes. `python -m bench.of_packs.passports 10` takes a
tenth of all.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import psycopg

from bench.ratio import Ratio, timed
from bench.stage.database import bench_database
from bench.stage.job_plant import own_database
from bench.stage.lane import Lane
from passports.chain.events import Event, append_event
from passports.encoding.canonical import canonical
from passports.facts.build_snapshot import build_snapshot
from passports.facts.parse_facts import parse_facts
from passports.issuing import sign_passport as signing
from passports.issuing import signing_key
from passports.issuing.compile_passport import compile_passport
from passports.issuing.generate_qr import generate_qr
from passports.issuing.sign_passport import sign_passport
from passports.pack import PACK
from signalbox.engine_pack import ENGINE
from signalbox.migrate import migrations
from signalbox.testing.stage import NOON, Stage
from tests.support.passport_rows import Tenant

PASSPORTS, CELLS, EVENTS, CHAINS, CASES = 500, 20, 1_000_000, 1000, 20_000
KEY = signing_key.key_of("A" * 43 + "=")


def measure(dsn: str, part: int = 1) -> list[Ratio]:
    with own_database(dsn) as own, psycopg.connect(own, autocommit=True) as db:
        migrations.apply(db, [ENGINE, PACK], "bench")
        vars(signing)["read_signing_key"] = lambda *_: KEY  # no call of AWS on either side
        return [
            *_issue(own, db, PASSPORTS // part),
            *_append(own, db, EVENTS // 100 // part),
            *_verify(own, db, EVENTS // part),
            *_test_rules(own, db, CASES // part),
        ]


@contextmanager
def _stage(dsn: str) -> Iterator[Stage]:
    with Stage(dsn, packs="passports") as stage, redirect_stdout(io.StringIO()):
        vars(stage.app.resources.clients)["sqs"] = Lane()
        yield stage


# ---- From a document to a signed passport


def _issue(dsn: str, db: psycopg.Connection[Any], number: int) -> list[Ratio]:
    tenant = Tenant.make(db)
    rules = tenant.rules()
    with _stage(dsn) as stage:
        documents = [_document(tenant) for _ in range(2 * number)]
        ours = timed(lambda: _by_jobs(stage, tenant, rules, documents[:number]))()
        by_hand = timed(lambda: _all_by_hand(stage, tenant, rules, documents[number:]))()
    what = f"{number:,} passports of {CELLS} cells, from document to QR code"
    print(f"{what}: {5 * number / ours:,.0f} jobs/s")
    return [Ratio(what, "their steps in one process", 1000 * ours, 1000 * by_hand, 2.0)]


def _document(tenant: Tenant) -> str:
    cells = [{"sku": f"CELL-{place}", "mass_kg": 1.5 * place} for place in range(1, CELLS + 1)]
    return tenant.document(json.dumps({"components": cells}).encode())


def _sealed(tenant: Tenant, documents: Sequence[str]) -> list[tuple[str, str]]:
    """Make a snapshot and a passport for each document's facts, as the product does; return their ids."""
    made = []
    for document in documents:
        query = "SELECT id::text FROM passports.facts WHERE source_doc_version_id = %s"
        facts = [id_ for (id_,) in tenant.db.execute(query, (document,)).fetchall()]
        made.append((tenant.snapshot(*facts, status="BUILDING"), tenant.passport()))
    return made


def _seal(tenant: Tenant, snapshots: Sequence[str]) -> None:
    query = "UPDATE passports.data_snapshots SET status = 'SEALED' WHERE id = ANY (%s::uuid[])"
    tenant.db.execute(query, (list(snapshots),))


def _by_jobs(stage: Stage, tenant: Tenant, rules: str, documents: Sequence[str]) -> None:
    _run(stage, tenant, "parse_facts", [{"document_version_id": one} for one in documents])
    made = _sealed(tenant, documents)
    _run(stage, tenant, "build_snapshot", [{"snapshot_id": snapshot} for snapshot, _ in made])
    _seal(tenant, [snapshot for snapshot, _ in made])
    asked = [{"passport_id": one, "snapshot_id": two, "rule_package_version_id": rules} for two, one in made]
    _run(stage, tenant, "compile_passport", asked)


def _run(stage: Stage, tenant: Tenant, job_type: str, payloads: Sequence[dict[str, Any]]) -> None:
    for payload in payloads:
        stage.submit(job_type, payload=payload, tenant=tenant.id)
    while ids := [id_ for (id_,) in stage.db.execute("SELECT id::text FROM signalbox.jobs WHERE status = 'queued'")]:
        stage.work(*ids[:100])


@dataclass
class _Bare:
    """Stand for what the engine gives a job, without the engine."""

    db: psycopg.Connection[Any]
    payload: Any
    resources: Any
    tenant: str
    submitted: list[Any] = field(default_factory=list)

    @property
    def job(self) -> Any:
        return SimpleNamespace(tenant=self.tenant, created_at=NOON, id=str(uuid4()))

    @property
    def clients(self) -> Any:
        return self.resources.clients

    def submit(self, jobs: Sequence[Any]) -> list[Any]:
        return [SimpleNamespace(id="")]


def _all_by_hand(stage: Stage, tenant: Tenant, rules: str, documents: Sequence[str]) -> None:
    for document in documents:
        _by_hand(stage, tenant, rules, document)


def _by_hand(stage: Stage, tenant: Tenant, rules: str, document: str) -> None:
    def do(function: Any, **payload: str) -> Any:
        types = stage.app.resources.job_types
        model = types.find(function.__name__).model.model_validate(payload)
        with stage.db.transaction():
            return function(_Bare(stage.db, model, stage.app.resources, tenant.id)).result

    do(parse_facts, document_version_id=document)
    [(snapshot, passport)] = _sealed(tenant, [document])
    do(build_snapshot, snapshot_id=snapshot)
    _seal(tenant, [snapshot])
    made = do(compile_passport, passport_id=passport, snapshot_id=snapshot, rule_package_version_id=rules)
    do(sign_passport, passport_version_id=made["passport_version_id"])
    do(generate_qr, passport_version_id=made["passport_version_id"])


# ---- Events


def _append(dsn: str, db: psycopg.Connection[Any], number: int) -> list[Ratio]:
    tenant = Tenant.make(db)
    one, many = [str(uuid4())], [str(uuid4()) for _ in range(CHAINS)]

    def append(chains: Sequence[str], first: int) -> None:
        with psycopg.connect(dsn, autocommit=True) as own:
            for place in range(first, number, 2):
                with own.transaction():
                    append_event(own, tenant.id, "Bench", chains[place % len(chains)], "HAPPENED", {"place": place})

    def race(chains: Sequence[str]) -> float:
        def run() -> None:
            with ThreadPoolExecutor(2) as pool:
                list(pool.map(append, [chains] * 2, range(2)))

        return timed(run)()

    alone, spread = race(one), race(many)
    print(f"{number / alone:,.0f} events/s to one chain, {number / spread:,.0f} to {CHAINS:,} chains, two at once")
    return [Ratio(f"{number:,} events to one chain", f"to {CHAINS:,} chains", 1000 * alone, 1000 * spread)]


def _verify(dsn: str, db: psycopg.Connection[Any], number: int) -> list[Ratio]:
    db.execute("TRUNCATE passports.event_heads")
    db.execute("SET session_replication_role = replica")
    db.execute("TRUNCATE passports.events")
    hashed = _store_chain(db, number)
    floor = timed(lambda: [sha256(data).digest() for data in hashed])()
    with _stage(dsn) as stage:
        found: dict[str, Any] = {}
        ours = timed(lambda: found.update(stage.run("verify_events", seconds=900, force=True)))()
    if found["detail"] != {"chains": 1, "events": number, "first_broken": None}:
        raise RuntimeError(f"the chain is not whole: {found}")
    return [Ratio(f"verifying {number:,} events", "hashing the same bytes", 1000 * ours, 1000 * floor)]


def _store_chain(db: psycopg.Connection[Any], number: int) -> list[bytes]:
    """Store one long chain; return the bytes that are hashed."""
    hashed, now = [], datetime(2026, 3, 1, tzinfo=UTC)
    event = Event(uuid4(), uuid4(), "Bench", uuid4(), 0, "HAPPENED", None, now, {"place": 1}, None)
    columns = "id, tenant_id, aggregate_type, aggregate_id, seq, event_type, occurred_at, payload, prev_hash, hash"
    with db.cursor() as cursor, cursor.copy(f"COPY passports.events ({columns}) FROM STDIN".encode()) as copy:
        for seq in range(1, number + 1):
            event = replace(event, id=uuid4(), seq=seq, prev_hash=event.hash if seq > 1 else None)
            hashed.append(canonical(event.as_json()))
            payload = json.dumps(event.payload)
            copy.write_row(
                (event.id, event.tenant_id, "Bench", event.aggregate_id, seq, "HAPPENED", now, payload, event.prev_hash,
                 event.hash)
            )  # fmt: skip
    db.execute("RESET session_replication_role")
    head = (event.tenant_id, event.aggregate_id, number, event.hash)
    db.execute("INSERT INTO passports.event_heads VALUES (%s, 'Bench', %s, %s, %s)", head)
    db.execute("VACUUM (ANALYZE) passports.events")
    return hashed


# ---- Rule tests


def _test_rules(dsn: str, db: psycopg.Connection[Any], cases: int) -> list[Ratio]:
    payload = {"sku": "a", "mass_kg": {"$var": "m"}}
    test = {
        "name": "one",
        "repeat": cases,
        "vars": {"m": ["integer", 1, 100]},
        "facts": [{"type": "Battery", "key": "battery:a", "payload": payload}],
        "expect": {"values": {"mass_kg": {"$var": "m"}}},
    }
    tenant = Tenant.make(db)
    rules = tenant.rules(status="DRAFT", tests=json.dumps({"language": "BPC-RULE-TESTS-1", "tests": [test]}))
    with _stage(dsn) as stage:
        job_id = stage.submit("run_rule_tests", payload={"rule_package_version_id": rules})
        took = timed(lambda: stage.finish(job_id))()
        if stage.job(job_id)["result"]["passed_count"] != cases:
            raise RuntimeError(f"the tests did not pass: {stage.job(job_id)}")
    print(f"{cases:,} rule tests: {took:.1f} s")
    return []


if __name__ == "__main__":
    with bench_database() as shared:
        for ratio in measure(shared, int(sys.argv[1]) if sys.argv[1:] else 1):
            print(ratio)
