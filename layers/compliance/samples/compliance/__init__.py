"""Load a story of two companies and their consultant, told around one instant.

Each task finds something to do: a scanned permit with an obligation that the model doubts, a schedule of month ends, a
deadline that has passed, a generator at 93 % of its hours, an import with bad rows, and a pack whose evidence was
altered.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg

from samples.compliance.files import ALTERED, IMPORT, PERMIT, PERMIT_LINES, evidence, permit_pdf, spreadsheet
from samples.compliance.jobs import submit_jobs
from signalbox_laptop.aws import client
from signalbox_laptop.home import StackState
from signalbox_laptop.packs import outputs_of
from signalbox_laptop.stand_ins.tell import tell

_ROWS = Path(__file__).with_name("companies.sql")


def load_story(stack: StackState, at: datetime) -> bool:
    """Load all of it; do nothing and return False for a stack without the pack."""
    bucket = outputs_of(stack).get("ComplianceBucket")
    if bucket is None:
        return False
    with psycopg.connect(stack.database) as connection:
        connection.execute("SELECT set_config('story.at', %s, true)", [at.isoformat()])
        connection.execute(_ROWS.read_bytes())
    s3: Any = client("s3", stack.endpoint)
    for key, data, content_type in (
        (PERMIT, permit_pdf(), "application/pdf"),
        (ALTERED, evidence(), "text/plain"),
        (IMPORT, spreadsheet(), "text/csv"),
    ):
        s3.put_object(Bucket=bucket, Key=key, Body=data, ContentType=content_type)
    tell("POST", f"{stack.stand_ins['textract']}/_stand_in/texts", {PERMIT: {"pages": [PERMIT_LINES], "seconds": 1}})
    tell(
        "POST", f"{stack.stand_ins['bedrock']}/_stand_in/answers", [{"schema": "record_obligations", "output": _FOUND}]
    )
    submit_jobs(stack)
    return True


# What the model reads in the permit: it is sure of one obligation, and doubts the other.
_FOUND = {
    "obligations": [
        {
            "text": "2.1 The operator shall inspect the bund each month and keep a record.",
            "summary": "Inspect the bund",
            "category": "OPERATIONAL",
            "condition_type": "INSPECTION",
            "condition_reference": "2.1",
            "frequency": "MONTHLY",
            "confidence_score": 0.97,
            "is_subjective": False,
            "subjective_phrases": [],
        },
        {
            "text": "2.2 Dust shall be kept to a reasonable level at all times.",
            "summary": "Keep dust down",
            "category": "OPERATIONAL",
            "condition_type": "LIMIT",
            "condition_reference": "2.2",
            "frequency": None,
            "confidence_score": 0.61,
            "is_subjective": True,
            "subjective_phrases": ["reasonable level"],
        },
    ]
}
