"""The job type of docs/moving.md works, submitted and grouped as written there."""

from __future__ import annotations

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

GUIDE = (ROOT / "docs" / "moving.md").read_text("utf-8")
REGISTRY = "layers/engine/signalbox/job_types/__init__.py"
PROGRAM = """
import json, os
from datetime import UTC, datetime
from signalbox.app import App
from signalbox.invocation import Invocation
from signalbox.submit.groups import seal_group
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob
engine, now = App.start(os.environ), datetime.now(UTC)
db, job_types = engine.resources.database.connection(), engine.resources.job_types

def work():
    query = "SELECT id::text, job_type FROM signalbox.jobs WHERE status IN ('queued', 'pending')"
    waiting = db.execute(query).fetchall()
    bodies = [json.dumps({"job_id": id_, "job_type": job_type}) for id_, job_type in waiting]
    records = [{"messageId": str(place), "body": body} for place, body in enumerate(bodies)]
    engine.work({"Records": records}, Invocation.of("request", now, 300))

"""


def blocks(mark: str) -> dict[str, str]:
    """Return the page's code by the name after the mark."""
    return dict(re.findall(rf"<!-- {mark}: (\S+) -->\n```\w+\n(.*?)```", GUIDE, re.DOTALL))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Copy the engine and add the page's job type."""
    shutil.copytree(ROOT / "layers", tmp_path / "layers", ignore=shutil.ignore_patterns("__pycache__"))
    for file, text in blocks("file").items():
        (tmp_path / file).write_text(text, "utf-8")
    line = re.search(r"<!-- registry -->\n```\w+\n(.*?)\n```", GUIDE, re.DOTALL)
    assert line is not None
    listed = (tmp_path / REGISTRY).read_text("utf-8")
    place = listed.rindex(")")
    (tmp_path / REGISTRY).write_text(f"{listed[:place]}{line[1]},\n{listed[place:]}", "utf-8")
    return tmp_path


def test_what_moves_from_celery_works_as_the_page_has_it(copy: Path, dsn: str, db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE customers (id bigint PRIMARY KEY, name text)")
    db.execute("CREATE TABLE greetings (customer_id bigint, text text)")
    db.execute("INSERT INTO customers VALUES (8, 'Bo'), (9, 'Cy')")
    environ = os.environ | {
        "SIGNALBOX_STACK": "s",
        "SIGNALBOX_DATABASE_URL": as_url(dsn),
        "PYTHONPATH": "layers/engine",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",  # no lane: what follows from a commit stays queued
        "AWS_MAX_ATTEMPTS": "1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
    }
    parts = blocks("run")
    again = parts["submit"].splitlines()[2].strip()  # as an old task would that is called as well
    program = f"{PROGRAM}{parts['submit']}{again}\nwork()\n{parts['group']}work()\nwork()\n"
    command = [sys.executable, "-W", "ignore", "-c", program]
    subprocess.run(command, cwd=copy, env=environ, capture_output=True, text=True, check=True)
    rows = db.execute("SELECT customer_id, text FROM greetings ORDER BY customer_id, text").fetchall()
    assert rows == [(7, "Hello Ada"), (7, "Hello Ada"), (8, "Hello Bo"), (9, "Hello Cy")]
    assert db.execute("SELECT DISTINCT status FROM signalbox.jobs").fetchall() == [("completed",)]
