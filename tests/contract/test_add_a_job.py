"""docs/add-a-job.md works when followed to the letter in a copy of the engine."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from signalbox.testing.stage import as_url
from tests.support.template import ROOT

GUIDE = (ROOT / "docs" / "add-a-job.md").read_text("utf-8")
REGISTRY = "layers/engine/signalbox/job_types/__init__.py"
PROGRAM = """
import json, os, sys
from datetime import UTC, datetime
from signalbox.app import App
from signalbox.invocation import Invocation
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob
engine, now = App.start(os.environ), datetime.now(UTC)
db = engine.resources.database.connection()
new = [NewJob(job_type="write_invoice", payload=payload) for payload in json.loads(sys.argv[1])]
jobs = submit(db, engine.resources.job_types, new, now)
bodies = [json.dumps({"job_id": job.id, "job_type": job.job_type}) for job in jobs]
records = [{"messageId": str(place), "body": body} for place, body in enumerate(bodies * 2)]
engine.work({"Records": records}, Invocation.of("request", now, 300))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy the engine and follow the guide."""
    shutil.copytree(ROOT / "layers", tmp_path / "layers", ignore=shutil.ignore_patterns("__pycache__"))
    for file, text in re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", GUIDE, re.DOTALL):
        (tmp_path / file).write_text(text, "utf-8")
    line = re.search(r"<!-- registry -->\n```\w+\n(.*?)\n```", GUIDE, re.DOTALL)
    assert line is not None
    listed = (tmp_path / REGISTRY).read_text("utf-8")
    place = listed.rindex(")")
    (tmp_path / REGISTRY).write_text(f"{listed[:place]}{line[1]},\n{listed[place:]}", "utf-8")
    return tmp_path


def test_the_guides_job_does_what_it_says_and_once(copy: Path, dsn: str, db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE invoices (number bigint GENERATED ALWAYS AS IDENTITY, customer_id text, cents int)")
    payloads = [{"customer_id": "c-1", "cents": 990}, {"customer_id": "c-2", "cents": 0}]
    environ = os.environ | {
        "SIGNALBOX_STACK": "s",
        "SIGNALBOX_DATABASE_URL": as_url(dsn),
        "PYTHONPATH": "layers/engine",
    }
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, json.dumps(payloads)]
    subprocess.run(command, cwd=copy, env=environ, capture_output=True, text=True, check=True)
    assert db.execute("SELECT customer_id, cents FROM invoices").fetchall() == [("c-1", 990)]
    rows = db.execute("SELECT subject_id, status, result FROM signalbox.jobs ORDER BY subject_id").fetchall()
    assert rows == [("c-1", "completed", {"number": 1}), ("c-2", "failed", None)]
