"""A kind of failure is ignored for a while, counts exactly, and is a regression where it returns in a later version."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from signalbox.dead_letters.kinds import IgnoreRule, list_kinds
from signalbox.dead_letters.letters import triage
from signalbox.errors import DeadLetterUnknown, PayloadRefused
from signalbox.jobs.dependency import Dependency
from signalbox.operate.filters import DeadLetterFilter
from signalbox.stats.statistics import show_health
from signalbox.testing.rows import select
from signalbox.testing.sqs_events import undelivered
from signalbox.testing.stage import NOON, Stage
from tests.support.at_once import at_once
from tests.support.dead_letters import add_letter, job_of, letter, letters, redrive
from tests.support.http_api import client_of
from tests.support.jobs import obeying
from tests.support.lock_waits import overlapping, wait_for_no_lock, wait_until_blocked

HOUR = timedelta(hours=1)


def ignore(stage: Stage, letter_id: str, until: datetime | None = None, count: int | None = None) -> str:
    """Ignore the kind of this dead letter; return its fingerprint."""
    kind = str(letter(stage, letter_id)["fingerprint"])
    selection, rule = DeadLetterFilter(fingerprint=kind), IgnoreRule(until, count)
    triage(stage.db, selection, "ignored", by="ada", reason="the receiver moves", rule=rule)
    return kind


def decide(stage: Stage, letter_id: str, decision: str, **filters: Any) -> None:
    """Decide about the kind of this dead letter."""
    selection = DeadLetterFilter(fingerprint=letter(stage, letter_id)["fingerprint"], **filters)
    triage(stage.db, selection, decision, by="ada", reason="mended")


def statuses(stage: Stage) -> list[str]:
    return [row["status"] for row in letters(stage.db)]


def left(stage: Stage) -> int | None:
    [rule] = select(stage.db, "SELECT ignored_next_left FROM signalbox.ignored_kinds")
    count: int | None = rule["ignored_next_left"]
    return count


def deploy(stage: Stage, version: str) -> None:
    stage.db.execute("INSERT INTO signalbox.deploys (version) VALUES (%s)", (version,))


def kind_of(stage: Stage, letter_id: str, **filters: Any) -> dict[str, Any]:
    selection = DeadLetterFilter(fingerprint=letter(stage, letter_id)["fingerprint"], **filters)
    found = list_kinds(stage.db, selection, datetime.now(UTC))
    return dict(found["kinds"][0])


# Ignored until a time, or the next few


def test_failures_are_ignored_until_the_time_and_pending_after_it(stage: Stage) -> None:
    kind = ignore(stage, add_letter(stage), until=datetime.now(UTC) + HOUR)
    row = letter(stage, add_letter(stage))
    assert (row["status"], row["resolved_by"], row["resolution_notes"]) == ("ignored", "ada", "the receiver moves")
    assert row["resolved_at"] == row["last_failed_at"]
    assert letter(stage, add_letter(stage, "nonsense"))["status"] == "pending"
    stage.db.execute("UPDATE signalbox.ignored_kinds SET ignored_until = now() WHERE fingerprint = %s", (kind,))
    row = letter(stage, add_letter(stage))
    assert (row["status"], row["resolved_by"], row["resolved_at"]) == ("pending", None, None)


def test_next_failures_are_ignored_and_the_one_after_is_pending(stage: Stage) -> None:
    ignore(stage, add_letter(stage), count=2)
    for _ in range(3):
        add_letter(stage)
    assert (statuses(stage), left(stage)) == (["ignored", "ignored", "ignored", "pending"], 0)


def test_messages_and_invocations_are_ignored_too_and_count_once(stage: Stage) -> None:
    first = undelivered()
    stage.consume(first)
    ignore(stage, str(letters(stage.db)[0]["id"]), count=2)
    second = undelivered()
    stage.consume(second, second, first)
    assert (statuses(stage), left(stage)) == (["ignored", "ignored"], 1)
    stage.consume(undelivered(), undelivered())
    assert statuses(stage) == ["ignored", "ignored", "ignored", "pending"]


def test_many_failures_in_one_statement_count_each(stage: Stage) -> None:
    def fail_with_children(number: int) -> None:
        parent = stage.submit(obeying("fail_for_good"))
        stage.submit_all([obeying("complete", depends_on=[Dependency(parent)]) for _ in range(number)])
        stage.work(parent)

    fail_with_children(1)
    child = next(str(row["id"]) for row in letters(stage.db) if row["failure_reason"] == "dependency")
    kind = ignore(stage, child, count=3)
    fail_with_children(5)
    found = sorted(row["status"] for row in letters(stage.db) if row["fingerprint"] == kind)
    assert (found, left(stage)) == (["ignored"] * 4 + ["pending"] * 2, 0)


def test_ignored_failures_count_nowhere_where_a_person_is_needed(stage: Stage) -> None:
    ignore(stage, add_letter(stage), count=30)
    for _ in range(21):
        add_letter(stage)
    now = datetime.now(UTC)
    signs = show_health(stage.db, now=now).signs
    assert (signs.open_dead_letters, signs.failed_last_hour) == (0, 0)
    assert stage.run("notify_dead_letters", NOON)["items"] == 0


def test_redriven_job_that_fails_again_is_ignored_again(stage: Stage) -> None:
    id_ = add_letter(stage)
    ignore(stage, id_, count=1)
    redrive(stage, id_)
    stage.work(str(job_of(stage, id_)["id"]))
    assert (letter(stage, id_)["status"], left(stage)) == ("ignored", 0)
    redrive(stage, id_)
    stage.work(str(job_of(stage, id_)["id"]))
    assert (letter(stage, id_)["status"], letter(stage, id_)["resolved_at"]) == ("pending", None)


def test_resolved_dead_letter_stays_so_while_its_kind_is_ignored(stage: Stage) -> None:
    id_ = add_letter(stage)
    decide(stage, id_, "resolved")
    ignore(stage, id_, count=1)
    add_letter(stage)
    assert statuses(stage) == ["resolved", "ignored"]


# Races


@pytest.mark.parametrize("commits", [True, False])
def test_of_two_failures_at_once_exactly_one_is_ignored(stage: Stage, commits: bool) -> None:
    stage.consume(undelivered())
    ignore(stage, str(letters(stage.db)[0]["id"]), count=1)
    other, first = stage.another(), stage.app.resources.database.connection()
    with ThreadPoolExecutor(1) as threads:
        with first.transaction(force_rollback=not commits):
            stage.consume(undelivered())
            late = threads.submit(other.consume, undelivered())
            wait_until_blocked(stage.db, late)
            assert not late.done()
        late.result()
    assert statuses(stage) == (["ignored", "ignored", "pending"] if commits else ["ignored", "ignored"])


def test_failing_jobs_at_once_are_ignored_as_often_as_was_said(stage: Stage, dsn: str) -> None:
    job_ids = stage.submit_all([obeying("fail_for_good") for _ in range(12)])
    ignore(stage, add_letter(stage), count=5)
    others = [stage.another() for _ in range(4)]
    at_once(
        *(lambda on=on, mine=job_ids[place::4]: [on.work(job.id) for job in mine] for place, on in enumerate(others))
    )
    assert (statuses(stage).count("ignored"), statuses(stage).count("pending"), left(stage)) == (6, 7, 0)


def test_failures_of_other_kinds_do_not_wait_for_a_counted_one(stage: Stage, dsn: str) -> None:
    until = datetime.now(UTC) + HOUR
    timed, counted = ignore(stage, add_letter(stage, "nonsense"), until), ignore(stage, add_letter(stage), count=9)
    wait_for_no_lock(stage.db)
    take = "SELECT fingerprint, number FROM signalbox.ignore_failures(%s)"
    with stage.db.transaction(), psycopg.connect(dsn) as other:
        stage.db.execute("SELECT FROM signalbox.ignored_kinds FOR UPDATE")
        assert other.execute(take, ([timed, "not ignored"],)).fetchall() == [(timed, 1)]
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute(take, ([counted],))


def test_two_batches_with_the_same_kinds_do_not_deadlock(stage: Stage, dsn: str) -> None:
    low, high = sorted(ignore(stage, add_letter(stage, word), count=9) for word in ("fail_for_good", "nonsense"))

    def take(*order: str) -> None:
        with psycopg.connect(dsn) as db:
            db.execute("SELECT count(*) FROM signalbox.ignore_failures(%s)", ([*order],))

    lock = "SELECT FROM signalbox.ignored_kinds WHERE fingerprint = %s FOR UPDATE"
    overlapping(stage.db, lambda: stage.db.execute(lock, (low,)), lambda: take(low, high), lambda: take(high, low))
    counts = select(stage.db, "SELECT ignored_next_left FROM signalbox.ignored_kinds")
    assert [row["ignored_next_left"] for row in counts] == [7, 7]


# Who decides, and what ends it


def test_rule_and_its_end_are_in_the_audit_log(stage: Stage) -> None:
    id_ = add_letter(stage)
    kind = ignore(stage, id_, count=3)
    decide(stage, id_, "pending")
    assert select(stage.db, "SELECT * FROM signalbox.ignored_kinds") == []
    rows = select(
        stage.db, "SELECT actor, action, detail FROM signalbox.audit_log WHERE entity_id = %s ORDER BY id", kind
    )
    assert rows == [
        {"actor": "ada", "action": "failure_kind.ignored", "detail": {"next": 3, "reason": "the receiver moves"}},
        {"actor": "ada", "action": "failure_kind.ignore_ended", "detail": {"next_left": 3, "reason": "mended"}},
    ]
    assert letter(stage, add_letter(stage))["status"] == "pending"


def test_decision_about_some_of_a_kind_leaves_its_rule(stage: Stage) -> None:
    id_ = add_letter(stage, tenant="acme")
    ignore(stage, id_, count=3)
    decide(stage, id_, "pending", tenant="acme")
    triage(stage.db, DeadLetterFilter(ids=[id_]), "resolved", by="ada")
    assert letter(stage, add_letter(stage))["status"] == "ignored"


def test_later_rule_takes_the_place_of_the_earlier_one(stage: Stage) -> None:
    id_ = add_letter(stage)
    ignore(stage, id_, until=datetime.now(UTC) + HOUR)
    ignore(stage, id_, count=1)
    kind = kind_of(stage, id_)
    assert (kind["ignored_until"], kind["ignored_next_left"]) == (None, 1)


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"ignore_next": 1, "ignore_until": "2200-01-01T00:00:00Z"}, "ignore_until", "between the years"),
        ({"ignore_next": 1, "ignore_until": "2100-01-01T00:00:00Z"}, "ignore_next", "not both"),
        ({"ignore_next": 1, "decision": "resolved"}, "ignore_next", "decision 'ignored'"),
        ({"ignore_next": 1, "fingerprint": None, "job_type": "obey"}, "ignore_next", "its fingerprint"),
        ({"ignore_next": 1, "tenant": "acme"}, "ignore_next", "other filters"),
        ({"ignore_next": 1, "fingerprint": None, "ids": [str(uuid4())]}, "ignore_next", "no ids"),
        ({"ignore_next": 0}, "ignore_next", "greater than or equal to 1"),
        ({"ignore_next": True}, "ignore_next", "integer"),
        ({"ignore_next": 10**12}, "ignore_next", "less than or equal"),
        ({"ignore_until": "2026-01-01T00:00:00"}, "ignore_until", "time zone"),
        ({"ignore_until": "2020-01-01T00:00:00Z"}, "ignore_until", "is past"),
    ],
)
def test_what_does_not_ignore_a_kind_is_refused_by_its_field(
    stage: Stage, given: dict[str, Any], field: str, words: str
) -> None:
    id_ = add_letter(stage)
    order = {"fingerprint": letter(stage, id_)["fingerprint"], "decision": "ignored"} | given
    with pytest.raises(PayloadRefused, match=words) as refused:
        stage.operate("triage_dead_letters", **order)
    assert [name for name, _ in refused.value.faults] == [field]
    assert (letter(stage, id_)["status"], select(stage.db, "SELECT * FROM signalbox.ignored_kinds")) == ("pending", [])


def test_kind_that_there_is_not_cannot_be_ignored(stage: Stage) -> None:
    with pytest.raises(DeadLetterUnknown, match="fingerprint 7"):
        stage.operate("triage_dead_letters", fingerprint="7", decision="ignored", ignore_next=1)


def test_tenant_ignores_no_kind_and_sees_no_count_of_others(stage: Stage) -> None:
    ours, theirs = (client_of(stage, tenant=tenant, name=tenant or "all") for tenant in (None, "acme"))
    for tenant in ("acme", "bolt"):
        id_ = add_letter(stage, tenant=tenant)
    order = {"fingerprint": letter(stage, id_)["fingerprint"], "decision": "ignored", "ignore_next": 4}
    assert theirs("POST", "/v1/dead-letters/triage", order).status == 403
    assert ours("POST", "/v1/dead-letters/triage", order).body == {"changed": 2, "unchanged": 0}
    [seen], [all_] = (ask("GET", "/v1/dead-letters/kinds").body["kinds"] for ask in (theirs, ours))
    assert (seen["tenant_names"], seen["tenants"], seen["ignored_next_left"]) == (["acme"], 1, None)
    assert (all_["tenant_names"], all_["tenants"], all_["ignored_next_left"]) == (["acme", "bolt"], 2, 4)
    theirs("POST", "/v1/dead-letters/triage", order | {"decision": "pending", "ignore_next": None})
    assert left(stage) == 4


# Regressions


def test_kind_that_returns_in_a_later_version_is_a_regression(stage: Stage) -> None:
    deploy(stage, "engine 1")
    id_ = add_letter(stage)
    decide(stage, id_, "resolved")
    deploy(stage, "engine 2")
    again, later = letter(stage, add_letter(stage)), letter(stage, add_letter(stage))
    assert (again["version"], again["regressed_at"]) == ("engine 2", again["last_failed_at"])
    assert (letter(stage, id_)["status"], letter(stage, id_)["version"]) == ("pending", "engine 1")
    assert later["regressed_at"] is None
    kind = kind_of(stage, id_)
    assert (kind["regressed_at"], kind["versions"]) == (again["regressed_at"].isoformat(), ["engine 2", "engine 1"])
    decide(stage, id_, "resolved")
    add_letter(stage)
    assert [row["regressed_at"] for row in letters(stage.db)] == [None] * 4


def test_kind_that_returns_before_a_later_version_is_only_reopened(stage: Stage) -> None:
    deploy(stage, "engine 1")
    id_ = add_letter(stage)
    decide(stage, id_, "resolved")
    deploy(stage, "engine 2")
    deploy(stage, "engine 1")  # the deploy was taken back
    again = letter(stage, add_letter(stage))
    assert (again["status"], again["version"], again["regressed_at"]) == ("pending", "engine 1", None)
    assert letter(stage, id_)["status"] == "pending"


def test_without_a_recorded_deploy_there_is_no_version_and_no_regression(stage: Stage) -> None:
    id_ = add_letter(stage)
    decide(stage, id_, "resolved")
    again = letter(stage, add_letter(stage))
    assert (again["version"], again["regressed_at"], kind_of(stage, id_)["versions"]) == (None, None, [])


def test_lost_event_that_returns_in_a_later_version_is_a_regression(stage: Stage) -> None:
    stage.consume(undelivered())
    decide(stage, str(letters(stage.db)[0]["id"]), "resolved")
    deploy(stage, "engine 2")
    stage.consume(undelivered())
    assert [row["regressed_at"] is not None for row in letters(stage.db)] == [False, True]


def test_regression_stays_one_when_its_job_is_redriven_in_vain(stage: Stage) -> None:
    decide(stage, add_letter(stage), "resolved")
    deploy(stage, "engine 2")
    id_ = add_letter(stage)
    redrive(stage, id_)
    stage.work(str(job_of(stage, id_)["id"]))
    assert letter(stage, id_)["regressed_at"] is not None


def test_ignored_kind_is_no_regression(stage: Stage) -> None:
    id_ = add_letter(stage)
    decide(stage, id_, "resolved")
    ignore(stage, id_, count=1)
    deploy(stage, "engine 2")
    add_letter(stage)
    assert [row["regressed_at"] for row in letters(stage.db)] == [None, None]


# The list


def test_trend_counts_the_failures_of_fourteen_days_in_utc(stage: Stage) -> None:
    now = datetime(2026, 3, 10, 0, 30, tzinfo=UTC)
    made = [add_letter(stage) for _ in range(5)]
    days = [timedelta(0), timedelta(minutes=31), timedelta(hours=24), timedelta(days=13), timedelta(days=14)]
    for id_, ago in zip(made, days, strict=True):
        stage.db.execute("UPDATE signalbox.dead_letter_jobs SET last_failed_at = %s WHERE id = %s", (now - ago, id_))
    stage.db.execute("SET timezone = 'Pacific/Auckland'")
    [kind] = list_kinds(stage.db, DeadLetterFilter(), now)["kinds"]
    assert (kind["trend"], kind["total"]) == ([1] + [0] * 11 + [2, 1], 5)


def test_kind_names_five_versions_and_tenants_at_most(stage: Stage) -> None:
    made = [add_letter(stage, tenant=f"tenant {place % 7}") for place in range(8)]
    for place, id_ in enumerate(made):
        values = (f"engine {place}", id_)
        stage.db.execute("UPDATE signalbox.dead_letter_jobs SET version = %s WHERE id = %s", values)
    kind = kind_of(stage, made[0])
    assert kind["versions"] == [f"engine {place}" for place in (7, 6, 5, 4, 3)]
    assert (kind["tenants"], kind["tenant_names"]) == (7, [f"tenant {place}" for place in range(5)])


def test_rule_that_is_over_is_not_listed(stage: Stage) -> None:
    id_ = add_letter(stage)
    ignore(stage, id_, until=datetime.now(UTC) + HOUR)
    assert kind_of(stage, id_)["ignored_until"] is not None
    stage.db.execute("UPDATE signalbox.ignored_kinds SET ignored_until = now() - interval '1 s'")
    assert kind_of(stage, id_)["ignored_until"] is None
    ignore(stage, id_, count=1)
    add_letter(stage)
    assert kind_of(stage, id_)["ignored_next_left"] is None
