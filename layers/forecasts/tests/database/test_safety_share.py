"""A cleanup that would delete too much of its table deletes nothing, until an operator allows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

import psycopg
import pytest

from signalbox.batches.safety_share import SafetyShare
from signalbox.errors import DeletionRefused
from signalbox.testing.rows import count, runs_of
from signalbox.testing.stage import NOON, Stage
from tests.support import forecast_rows as rows

DAY = timedelta(days=1)
OLD, NEW = NOON - 400 * DAY, NOON - DAY


def add_organization(db: psycopg.Connection, _: UUID, old: bool) -> None:
    rows.organization(db, deleted_at=OLD if old else None)


def add_invite(db: psycopg.Connection, organization: UUID, old: bool) -> None:
    values = {"organization_id": organization, "email": "a@example.org", "expires_at": OLD if old else NOON + DAY}
    rows.insert(db, "invites", values)


def add_watchpoint(db: psycopg.Connection, organization: UUID, old: bool) -> None:
    rows.watchpoint(db, organization, status="archived", archived_at=OLD if old else NEW)


def add_notification(db: psycopg.Connection, organization: UUID, old: bool) -> None:
    rows.notification(db, organization, created_at=OLD if old else NEW)


@dataclass(frozen=True, slots=True)
class Cleanup:
    """Name a task and the table it cleans, and how to add a row to it."""

    task: str
    table: str
    add: Callable[[psycopg.Connection, UUID, bool], object]

    def fill(self, db: psycopg.Connection, *, old: int, of: int) -> None:
        """Add `of` rows, `old` of them old; the organisation that they need counts among organisations."""
        organization = rows.organization(db)
        for number in range(of - count(db, self.table)):
            self.add(db, organization, number < old)
        assert count(db, self.table) == of


ORGANIZATIONS = Cleanup("cleanup_soft_deletes", "forecasts.organizations", add_organization)
INVITES = Cleanup("cleanup_expired_invites", "forecasts.invites", add_invite)
WATCHPOINTS = Cleanup("cleanup_archived_watchpoints", "forecasts.watchpoints", add_watchpoint)
NOTIFICATIONS = Cleanup("cleanup_notifications", "forecasts.notifications", add_notification)
each_cleanup = pytest.mark.parametrize(
    "of", [ORGANIZATIONS, INVITES, WATCHPOINTS, NOTIFICATIONS], ids=lambda one: one.task
)


@each_cleanup
def test_as_much_as_the_share_is_deleted(stage: Stage, db: psycopg.Connection, of: Cleanup) -> None:
    of.fill(db, old=12, of=60)
    assert stage.run(of.task)["items"] == 12
    assert count(db, of.table) == 48


@each_cleanup
def test_more_than_the_share_is_refused_whole_until_it_is_asked_for(
    stage: Stage,
    db: psycopg.Connection,
    of: Cleanup,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    of.fill(db, old=12, of=59)
    with pytest.raises(DeletionRefused) as refused:
        stage.run(of.task)
    assert f"12 of the 59 rows in {of.table}" in str(refused.value)
    assert "share of 0.2 " in str(refused.value)
    assert "{'beyond_safety_share': true}" in str(refused.value)
    assert count(db, of.table) == 59
    assert [row["status"] for row in runs_of(db, of.task)] == ["failed"]
    assert '"DeletionsRefused":[1.0]' in capsys.readouterr().out

    assert stage.run(of.task, params={"beyond_safety_share": True})["items"] == 12
    assert count(db, of.table) == 47
    assert [record.table for record in caplog.records if record.message == "safety_share.waived"] == [of.table]  # type: ignore[attr-defined]


@each_cleanup
def test_few_rows_may_go_even_if_they_fill_the_table(stage: Stage, db: psycopg.Connection, of: Cleanup) -> None:
    of.fill(db, old=10, of=10 + (of.table == "forecasts.organizations"))
    assert stage.run(of.task)["items"] == 10


@each_cleanup
def test_one_more_than_a_few_may_not(stage: Stage, db: psycopg.Connection, of: Cleanup) -> None:
    of.fill(db, old=11, of=11 + (of.table == "forecasts.organizations"))
    with pytest.raises(DeletionRefused, match="11 of the 1"):
        stage.run(of.task)


def test_the_share_and_the_few_are_settings(
    stage: Stage, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORECASTS_SAFETY_SHARE", "0.5")
    monkeypatch.setenv("FORECASTS_SAFETY_FLOOR", "0")
    INVITES.fill(db, old=3, of=5)
    with pytest.raises(DeletionRefused, match="3 of the 5 rows"):
        stage.run("cleanup_expired_invites")
    add_invite(db, rows.organization(db), old=False)
    assert stage.run("cleanup_expired_invites")["items"] == 3


def test_what_counts_is_what_a_run_would_delete_not_what_is_due(
    stage: Stage, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backlog is worked off at a fixed number a run."""
    monkeypatch.setenv("FORECASTS_CLEANUP_BATCH", "12")
    ORGANIZATIONS.fill(db, old=30, of=60)
    assert stage.run("cleanup_soft_deletes")["items"] == 12


def test_a_continuation_of_a_run_that_was_within_its_share_goes_on(stage: Stage, db: psycopg.Connection) -> None:
    NOTIFICATIONS.fill(db, old=12, of=60)
    assert stage.run("cleanup_notifications", seconds=10)["more"] is True
    assert [answer["items"] for answer in stage.deliver()] == [12]


@pytest.mark.parametrize("share", ["0.1", "0.2", "0.3", "0.7", "1"])
def test_the_share_is_counted_exactly(share: str) -> None:
    for rows_ in range(0, 1000, 10):
        due = int(Decimal(share) * rows_)
        assert SafetyShare(float(share), 0).allows(due, rows_)
        assert share == "1" or not SafetyShare(float(share), 0).allows(due + 1, rows_)
