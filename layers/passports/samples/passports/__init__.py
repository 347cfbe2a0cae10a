"""Load a story of one battery: from its bill of materials to a signed passport, its QR code and its exports.

A bill of materials was uploaded, another one has become facts; rules are tested, and those that were published compile
the battery's passport. A customer of the maker hears of it by a webhook.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import psycopg

from samples.passports.rows import JOBS, add_rows
from signalbox.client.http_client import HttpClient
from signalbox_laptop.aws import client
from signalbox_laptop.home import StackState
from signalbox_laptop.packs import outputs_of
from signalbox_laptop.samples.finished_job import result_of

_BILL = {"components": [{"sku": "CELL-3", "mass_kg": 3.5}, {"sku": "CELL-4", "mass_kg": 4.0}]}


def load_story(stack: StackState, at: datetime) -> bool:
    """Load all of it; do nothing and return False for a stack without the pack."""
    if stack.api is None or stack.token is None or not _has_pack(stack):
        return False
    bucket = outputs_of(stack)["JobsBucketName"]
    with psycopg.connect(stack.database) as connection:
        rows = add_rows(connection, stack)
    key = f"documents/{rows['tenant']}/bill.json"
    s3: Any = client("s3", stack.endpoint)
    s3.put_object(Bucket=bucket, Key=key, Body=json.dumps(_BILL).encode(), ContentType="application/json")
    api = HttpClient(stack.api, stack.token)
    uploaded = {"document_id": rows["document"], "file_url": f"s3://{bucket}/{key}", "mime_type": "application/json"}
    _submit(api, rows, "ingest_document", uploaded)
    for job_type, payload in JOBS:
        _submit(api, rows, job_type, {name: rows[row] for name, row in payload.items()})
    compiled = result_of(api, _submit(api, rows, "compile_passport", rows["compile"]))
    for kind in ("PDF", "JSON_LD", "XML"):
        asked = {"passport_version_id": compiled["passport_version_id"], "format": kind}
        _submit(api, rows, "export_passport", asked, after=compiled["sign_job_id"])
    return True


def _has_pack(stack: StackState) -> bool:
    with psycopg.connect(stack.database) as connection:
        return connection.execute("SELECT to_regclass('passports.passports') IS NOT NULL").fetchone() == (True,)


def _submit(
    api: HttpClient, rows: dict[str, Any], job_type: str, payload: dict[str, Any], after: str | None = None
) -> str:
    return str(api.submit(job_type, payload, tenant=rows["tenant"], depends_on=[after] if after else [])["id"])
