"""archive_dead_letters moves old closed letters to the audit log and keeps open ones."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest

from signalbox.tasks import archive_dead_letters as archiving
from signalbox.testing.stage import NOON, Stage
from tests.support.lock_waits import wait_for_no_lock

DAY = timedelta(days=1)
INSERT = """
INSERT INTO signalbox.dead_letter_jobs (
    job_type, payload, failure_reason, total_attempts, fingerprint, status, resolved_at, redriven_at, resolved_by,
    resolution_notes, final_error_message, created_at, first_failed_at, last_failed_at
)
VALUES (
    'sign_passport', '{"passport": 7}', 'permanent', 1, 'kind', %(status)s::text,
    CASE WHEN %(status)s IN ('resolved', 'ignored') THEN %(at)s::timestamptz END,
    CASE WHEN %(status)s = 'redriven' THEN %(at)s::timestamptz END, 'ada', 'mended', 'no', %(at)s, %(at)s, %(at)s
)
RETURNING id::text
"""


def add(db: psycopg.Connection, status: str, age: timedelta) -> str:
    [id_] = db.execute(INSERT, {"status": status, "at": NOON - age}).fetchone() or ("",)
    return str(id_)


def archive(stage: Stage, at: datetime = NOON) -> dict[str, Any]:
    return stage.run("archive_dead_letters", at, force=True)


def left(db: psycopg.Connection) -> set[str]:
    return {id_ for (id_,) in db.execute("SELECT id::text FROM signalbox.dead_letter_jobs").fetchall()}


def archived(db: psycopg.Connection) -> list[Any]:
    return db.execute("SELECT entity_id, actor, action, detail FROM signalbox.audit_log ORDER BY id").fetchall()


@pytest.mark.parametrize("status", ["resolved", "ignored", "redriven"])
def test_what_was_closed_long_ago_moves_to_the_audit_log(stage: Stage, db: psycopg.Connection, status: str) -> None:
    old, young = add(db, status, 30 * DAY + timedelta(seconds=1)), add(db, status, 30 * DAY)
    assert archive(stage)["items"] == 1
    assert left(db) == {young}
    [(entity, actor, action, detail)] = archived(db)
    assert (entity, actor, action) == (old, "signalbox", "dead_letter.archived")
    assert (detail["status"], detail["resolved_by"], detail["resolution_notes"]) == (status, "ada", "mended")
    assert (detail["payload"], detail["final_error_message"]) == ({"passport": 7}, "no")


@pytest.mark.parametrize("status", ["pending", "investigating"])
def test_what_is_open_stays_however_old(stage: Stage, db: psycopg.Connection, status: str) -> None:
    id_ = add(db, status, 1000 * DAY)
    assert archive(stage)["items"] == 0
    assert left(db) == {id_}


def test_the_retention_is_a_setting(stage: Stage, db: psycopg.Connection) -> None:
    kept = add(db, "resolved", 6 * DAY)
    add(db, "resolved", 8 * DAY)
    stage = stage.another(dead_letter_retention_days="7")
    archive(stage)
    assert left(db) == {kept}


def test_one_that_was_opened_again_stays(stage: Stage, db: psycopg.Connection) -> None:
    id_ = add(db, "redriven", 40 * DAY)
    db.execute("UPDATE signalbox.dead_letter_jobs SET status = 'pending'")
    archive(stage)
    assert left(db) == {id_}


def test_it_goes_on_batch_by_batch(stage: Stage, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archiving, "BATCH", 2)
    for _ in range(5):
        add(db, "ignored", 40 * DAY)
    assert archive(stage)["items"] == 5
    assert (left(db), len(archived(db))) == (set(), 5)


def test_a_second_run_finds_nothing(stage: Stage, db: psycopg.Connection) -> None:
    add(db, "ignored", 40 * DAY)
    archive(stage)
    assert archive(stage)["items"] == 0
    assert len(archived(db)) == 1


def test_none_is_deleted_that_can_t_be_kept_in_the_audit_log(stage: Stage, db: psycopg.Connection) -> None:
    id_ = add(db, "ignored", 40 * DAY)
    db.execute("ALTER TABLE signalbox.audit_log ADD CONSTRAINT full_up CHECK (false) NOT VALID")
    with pytest.raises(psycopg.errors.CheckViolation):
        archive(stage)
    assert left(db) == {id_}


def test_one_that_an_operator_holds_is_passed_by(stage: Stage, db: psycopg.Connection, dsn: str) -> None:
    held, free = add(db, "resolved", 40 * DAY), add(db, "resolved", 40 * DAY)
    wait_for_no_lock(db)
    with psycopg.connect(dsn) as operator:
        operator.execute("SELECT FROM signalbox.dead_letter_jobs WHERE id = %s FOR UPDATE", (held,))
        assert archive(stage)["items"] == 1
    assert (left(db), archived(db)[0][0]) == ({held}, free)


def test_two_runs_at_once_move_each_once(stage: Stage, db: psycopg.Connection) -> None:
    for _ in range(40):
        add(db, "resolved", 40 * DAY)

    def work(day: int) -> int:
        return int(archive(stage.another(), NOON + day * DAY)["items"])

    with ThreadPoolExecutor(2) as threads:
        assert sum(threads.map(work, (0, 1))) == 40
    assert (left(db), len(archived(db))) == (set(), 40)
