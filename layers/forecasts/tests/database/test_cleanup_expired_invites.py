"""cleanup_expired_invites deletes expired invites, exact to the second, and nothing else."""

from __future__ import annotations

from datetime import datetime, timedelta

import psycopg
import pytest

from signalbox.testing.stage import NOON, Stage
from tests.support import forecast_rows as rows

TASK = "cleanup_expired_invites"
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)


def invite(db: psycopg.Connection, email: str, expires_at: datetime | str, accepted_at: datetime | None = None) -> None:
    organization = rows.organization(db)
    values = {"organization_id": organization, "email": email, "expires_at": expires_at, "accepted_at": accepted_at}
    rows.insert(db, "invites", values)


def invited(db: psycopg.Connection) -> list[str]:
    return [email for (email,) in db.execute("SELECT email FROM forecasts.invites ORDER BY expires_at").fetchall()]


def test_invites_that_have_expired_go_to_the_second(stage: Stage, db: psycopg.Connection) -> None:
    for email, age in [("expired", SECOND), ("at its end", timedelta(0)), ("open", -SECOND)]:
        invite(db, email, NOON - age)
    assert stage.run(TASK)["items"] == 1
    assert invited(db) == ["at its end", "open"]


def test_an_invite_that_was_accepted_stays_however_old(stage: Stage, db: psycopg.Connection) -> None:
    invite(db, "came", NOON - 400 * DAY, accepted_at=NOON - 401 * DAY)
    assert stage.run(TASK)["items"] == 0
    assert invited(db) == ["came"]


def test_how_long_they_are_kept_after_that_is_a_setting(
    stage: Stage, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORECASTS_RETENTION_INVITES_DAYS", "30")
    for email, age in [("older", 30 * DAY + SECOND), ("a month", 30 * DAY), ("younger", 30 * DAY - SECOND)]:
        invite(db, email, NOON - age)
    assert stage.run(TASK)["items"] == 1
    assert invited(db) == ["a month", "younger"]


def test_invites_that_never_or_always_expired_stop_nothing(stage: Stage, db: psycopg.Connection) -> None:
    for email, expires_at in [("never", "infinity"), ("always", "-infinity"), ("expired", "2020-01-01Z")]:
        invite(db, email, expires_at)
    assert stage.run(TASK)["items"] == 2
    assert invited(db) == ["never"]


def test_an_invite_that_is_being_accepted_is_left(stage: Stage, dsn: str, db: psycopg.Connection) -> None:
    invite(db, "late", NOON - DAY)
    with psycopg.connect(dsn) as accepting:
        accepting.execute("UPDATE forecasts.invites SET accepted_at = %s", (NOON,))
        assert stage.run(TASK)["items"] == 0  # would otherwise wait for ever
    assert stage.run(TASK, force=True)["items"] == 0
    assert invited(db) == ["late"]


def test_many_go_in_batches(stage: Stage, db: psycopg.Connection) -> None:
    organization = rows.organization(db)
    db.execute(
        "INSERT INTO forecasts.invites (organization_id, email, expires_at) "
        "SELECT %s, 'a', CASE WHEN n %% 5 = 0 THEN %s ELSE %s END FROM generate_series(1, 12500) AS n",
        (organization, NOON - DAY, NOON + DAY),
    )
    assert stage.run(TASK)["items"] == 2500
    assert len(invited(db)) == 10_000


def test_a_run_for_a_past_day_deletes_what_that_day_would_have(stage: Stage, db: psycopg.Connection) -> None:
    invite(db, "then", NOON - 3 * DAY)
    invite(db, "since", NOON - DAY)
    stage.run(TASK, reference_time=(NOON - 2 * DAY).isoformat())
    assert invited(db) == ["since"]
