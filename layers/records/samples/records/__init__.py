"""Load a story of one patient: a letter of hers, and a scan that might be somebody else's.

The letter becomes conditions, medications and a narrative. The scan names another person, so that the second pass waits
for a decision; a doctor approves it, and the pass goes on at once instead of within a quarter of an hour.
"""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg

from samples.records.answers import ANSWERS, LETTER, SCAN_LINES, SCAN_PNG
from signalbox.client.http_client import HttpClient
from signalbox.documents.report import Paragraph, report
from signalbox_laptop.aws import client
from signalbox_laptop.home import StackState
from signalbox_laptop.packs import outputs_of
from signalbox_laptop.samples.finished_job import result_of
from signalbox_laptop.stand_ins.tell import tell

_PATIENCE_SECONDS, _LOOK_AGAIN_SECONDS = 20.0, 0.1
_ROWS = Path(__file__).with_name("patient.sql")
_PATIENT = "a1000000-0000-4000-8000-000000000001"
_LETTER, _SCAN = "f1000000-0000-4000-8000-000000000001", "f1000000-0000-4000-8000-000000000002"


def load_story(stack: StackState, at: datetime) -> bool:
    """Load all of it; do nothing and return False for a stack without the pack, or without the HTTP API."""
    with psycopg.connect(stack.database) as connection:
        if stack.api is None or stack.token is None or not _has_pack(connection):
            return False
        connection.execute(_ROWS.read_bytes())
    s3: Any = client("s3", stack.endpoint)
    bucket = outputs_of(stack)["JobsBucketName"]
    letter = report("Discharge letter", [Paragraph(line) for line in LETTER])
    for key, data in ((_key(_LETTER), letter), (_key(_SCAN), SCAN_PNG)):
        s3.put_object(Bucket=bucket, Key=key, Body=data)
    tell("POST", f"{stack.stand_ins['textract']}/_stand_in/texts", {_key(_SCAN): [SCAN_LINES]})
    tell("POST", f"{stack.stand_ins['bedrock']}/_stand_in/answers", ANSWERS)
    api = HttpClient(stack.api, stack.token)
    _submit(api, _LETTER, job_lane="fast_queue")
    first_pass = result_of(api, _submit(api, _SCAN))["ai_job_id"]
    second_pass = result_of(api, first_pass)["next_job_id"]
    with psycopg.connect(stack.database) as connection:
        connection.execute(
            "UPDATE records.profile_classification_audit SET review_decision = 'approved', reviewed_by = 'a doctor', "
            "reviewed_at = now() WHERE shell_file_id = %s",
            (_SCAN,),
        )
    _go_on(api, second_pass)
    return True


def _go_on(api: HttpClient, job_id: str) -> None:
    """Have a pass look at once if it has looked before the decision: it would wait for a quarter of an hour."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while (status := api.job(job_id)["job"]["status"]) != "completed":
        if status == "pending":
            api.ask("POST", f"/v1/jobs/{job_id}/retry", {"reason": "approved"})
        if time.monotonic() > until:
            raise RuntimeError(f"pass {job_id} of the story is {status}")
        time.sleep(_LOOK_AGAIN_SECONDS)


def _has_pack(connection: psycopg.Connection) -> bool:
    return connection.execute("SELECT to_regclass('records.shell_files') IS NOT NULL").fetchone() == (True,)


def _key(file_id: str) -> str:
    return f"uploads/{file_id}"


def _submit(api: HttpClient, file_id: str, **fields: str) -> str:
    payload = {"shell_file_id": file_id, "patient_id": _PATIENT, "raw_file": _key(file_id), **fields}
    return str(api.submit("shell_file_processing", payload, key=f"shell-{file_id}")["id"])
