"""sync_stripe makes our state Stripe's; one organisation's failure is its own, and none gets two customers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Thread
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import boto3
import psycopg
import pytest

from forecasts.errors import StripeRefused, StripeUnavailable
from forecasts.settings import ForecastSettings
from signalbox.errors import SettingsRefused, Unavailable
from signalbox.packs.registries import TaskRegistry
from signalbox.packs.task import Overlap
from signalbox.testing.rows import select
from signalbox.testing.stage import Stage
from signalbox_laptop.stand_ins.faults import Fault
from stand_ins.stripe import KEY, StripeStandIn
from tests.support import forecast_rows as rows
from tests.support.aws import Aws

MIDNIGHT = datetime(2026, 3, 10, tzinfo=UTC)
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)


@pytest.fixture
def stripe(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Iterator[StripeStandIn]:
    stand_in = StripeStandIn()
    stand_in.start()
    secret = boto3.client("secretsmanager", endpoint_url=aws.endpoint).create_secret(
        Name=f"stripe-{aws.forecast_bucket}", SecretString=json.dumps({"api_key": KEY})
    )
    for name, value in {
        "SECRET": secret["Name"],
        "BASE_URL": stand_in.url,
        "PRICES": '{"price_pro": "pro", "starter_monthly": "starter"}',
        "TIMEOUT_SECONDS": "1",
    }.items():
        monkeypatch.setenv(f"FORECASTS_STRIPE_{name}", value)
    yield stand_in
    stand_in.stop()


@pytest.fixture(autouse=True)
def plans(db: psycopg.Connection) -> None:
    rows.plan(db, "starter")
    rows.plan(db, "pro")


def keep_key(stage: Stage, aws: Aws, **secret: Any) -> None:
    """Make this the current version of the secret with Stripe's key."""
    name = stage.app.resources.settings_of(ForecastSettings).stripe_secret
    boto3.client("secretsmanager", endpoint_url=aws.endpoint).put_secret_value(SecretId=name, **secret)


def subscriber(
    db: psycopg.Connection, stripe: StripeStandIn, status: str = "active", price: Any = "price_pro", **columns: Any
) -> UUID:
    """Add an organisation that matches its subscription, but for the columns that a test names."""
    customer = stripe.account.add_customer()
    stripe.account.add_subscription(customer, status, price)
    ours = {"plan": "pro", "subscription_status": status, "stripe_customer_id": customer}
    return rows.organization(db, **{**ours, **columns})


def sync(stage: Stage, at: datetime = MIDNIGHT, **fields: Any) -> dict[str, Any]:
    return stage.run("sync_stripe", at, **fields)


def organization(db: psycopg.Connection, id_: UUID) -> dict[str, Any]:
    [row] = select(db, "SELECT * FROM forecasts.organizations WHERE id = %s", id_)
    return row


def synced(db: psycopg.Connection, id_: UUID) -> Any:
    return organization(db, id_)["last_billing_sync_at"]


def audited(db: psycopg.Connection) -> list[tuple[str, str, Any]]:
    statement = "SELECT action, entity_id, detail FROM forecasts.audit_logs WHERE actor = 'sync_stripe' ORDER BY id"
    return db.execute(statement).fetchall()


def metric(capsys: pytest.CaptureFixture[str], name: str) -> Any:
    lines = (json.loads(line) for line in capsys.readouterr().out.splitlines() if line.startswith("{"))
    counted = [line[name] for line in lines if name in line]
    return sum(sum(values) for values in counted)


def asked(stripe: StripeStandIn, path: str = "/v1/subscriptions") -> list[str]:
    """Return the customers asked for, in order."""
    return [params.get("customer", "") for _, asked, params in stripe.requests if asked == path]


def test_a_plan_and_a_status_that_differ_are_repaired_counted_and_audited(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    drifted = subscriber(db, stripe, plan="starter", subscription_status="trialing")
    answer = sync(stage)
    assert (answer["status"], answer["items"]) == ("succeeded", 1)
    assert "reason" not in answer
    ours = organization(db, drifted)
    assert (ours["plan"], ours["subscription_status"], ours["last_billing_sync_at"]) == ("pro", "active", MIDNIGHT)
    [(action, entity, detail)] = audited(db)
    assert (action, entity) == ("billing.repaired", str(drifted))
    assert detail == {
        "plan": {"ours": "starter", "stripe": "pro"},
        "subscription_status": {"ours": "trialing", "stripe": "active"},
    }
    assert metric(capsys, "BillingStateDrift") == 1


def test_who_is_as_stripe_says_is_noted_and_nothing_else(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    same = subscriber(db, stripe)
    before = organization(db, same)
    assert sync(stage)["items"] == 1
    assert organization(db, same) == before | {"last_billing_sync_at": MIDNIGHT}
    assert audited(db) == []
    assert metric(capsys, "BillingStateDrift") == 0


def test_with_nobody_to_compare_stripe_is_not_even_asked(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection
) -> None:
    subscriber(db, stripe, last_billing_sync_at=MIDNIGHT)
    subscriber(db, stripe, deleted_at=MIDNIGHT - DAY)
    rows.organization(db, status="suspended")
    answer = sync(stage)
    assert (answer["status"], answer["items"]) == ("succeeded", 0)
    assert not stripe.requests


def test_a_stack_without_a_stripe_account_skips(stage: Stage, db: psycopg.Connection) -> None:
    rows.organization(db)
    answer = sync(stage)
    assert (answer["status"], "FORECASTS_STRIPE_PRICES" in answer["reason"]) == ("skipped", True)


@pytest.mark.parametrize(("age", "stale"), [(DAY - SECOND, False), (DAY, True), (DAY + SECOND, True)])
def test_organisation_synced_exactly_24_hours_ago_is_due(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection, age: timedelta, stale: bool
) -> None:
    one = subscriber(db, stripe, last_billing_sync_at=MIDNIGHT - age)
    assert sync(stage)["items"] == stale
    assert synced(db, one) == (MIDNIGHT if stale else MIDNIGHT - age)


def test_the_longest_neglected_come_first_and_no_more_than_the_limit(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORECASTS_STRIPE_LIMIT", "2")
    recent = subscriber(db, stripe, last_billing_sync_at=MIDNIGHT - 2 * DAY)
    never = subscriber(db, stripe)
    old = subscriber(db, stripe, last_billing_sync_at=MIDNIGHT - 9 * DAY)
    answer = sync(stage)
    assert (answer["items"], answer.get("more")) == (2, None)
    assert asked(stripe) == [organization(db, one)["stripe_customer_id"] for one in (never, old)]
    assert synced(db, recent) == MIDNIGHT - 2 * DAY


def test_failure_stops_no_other_is_reported_and_stays_unsynced(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    gone = subscriber(db, stripe, stripe_customer_id="cus_gone")
    broken = subscriber(db, stripe, last_billing_sync_at=MIDNIGHT - 3 * DAY)
    unplanned = subscriber(db, stripe, "past_due", plan="starter", last_billing_sync_at=MIDNIGHT - 2 * DAY)
    fine = subscriber(db, stripe, plan="starter", last_billing_sync_at=MIDNIGHT - DAY)
    db.execute("UPDATE forecasts.organizations SET plan = 'starter' WHERE plan = 'pro'")
    stripe.faults.add(Fault(matching=organization(db, broken)["stripe_customer_id"], status=500))
    stripe.account.add_subscription(
        organization(db, unplanned)["stripe_customer_id"], "active", "price_lost", created=2**31
    )
    answer = sync(stage)
    assert (answer["status"], answer["items"]) == ("succeeded", 2)
    assert answer["reason"] == "2 of 4 organisations could not be compared; 1 with a price that stands for no plan"
    assert [synced(db, one) for one in (gone, broken)] == [None, MIDNIGHT - 3 * DAY]
    assert organization(db, fine)["plan"] == "pro"
    assert (organization(db, unplanned)["plan"], synced(db, unplanned)) == ("starter", MIDNIGHT)
    told = str([record.__dict__ for record in caplog.records])
    assert "resource_missing" in told
    assert KEY not in told


def test_a_plan_that_we_do_not_have_concerns_its_organisation_only(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection
) -> None:
    db.execute("DELETE FROM forecasts.plan_limits WHERE plan = 'pro'")
    unknown = subscriber(db, stripe, plan="starter")
    known = subscriber(db, stripe, plan="starter", price={"id": "p", "lookup_key": "starter_monthly"})
    assert sync(stage)["items"] == 1
    assert [synced(db, one) for one in (unknown, known)] == [None, MIDNIGHT]


def test_who_failed_waits_behind_those_who_wait_as_long(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORECASTS_STRIPE_LIMIT", "2")
    bad = [subscriber(db, stripe, stripe_customer_id=f"cus_gone{number}") for number in range(2)]
    good = [subscriber(db, stripe, last_billing_sync_at=MIDNIGHT - 5 * DAY) for _ in range(2)]
    with pytest.raises(Unavailable, match="none of 2 organisations"):
        sync(stage)
    assert sync(stage)["items"] == 2  # the retry of the same slot
    assert [synced(db, one) for one in good] == [MIDNIGHT] * 2
    assert [organization(db, one)["billing_sync_failed_at"] for one in bad] == [MIDNIGHT] * 2


def test_where_all_fail_the_run_fails_and_its_retry_tries_them_again(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection
) -> None:
    one = subscriber(db, stripe)
    stripe.faults.add(Fault(status=503))
    with pytest.raises(StripeUnavailable, match="none of 1 organisations could be compared"):
        sync(stage)
    assert synced(db, one) is None
    stripe.faults.replace([])
    assert sync(stage)["items"] == 1
    ours = organization(db, one)
    assert (ours["last_billing_sync_at"], ours["billing_sync_failed_at"]) == (MIDNIGHT, None)


def test_stripe_itself_failing_ends_the_run_before_it_asks_for_all(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection
) -> None:
    for _ in range(10):
        subscriber(db, stripe)
    stripe.faults.add(Fault(status=429, retry_after="0"))
    with pytest.raises(StripeUnavailable, match="5 times in a row"):
        sync(stage)
    assert len(set(asked(stripe))) == 5


def test_refused_stripe_key_fails_the_run_at_once_and_stays_secret(
    stage: Stage, stripe: StripeStandIn, aws: Aws, db: psycopg.Connection
) -> None:
    for _ in range(3):
        subscriber(db, stripe)
    keep_key(stage, aws, SecretString="sk_test_of_yesterday")
    with pytest.raises(StripeRefused) as refused:
        sync(stage)
    assert len(stripe.requests) == 1
    assert "yesterday" not in str(refused.value)


@pytest.mark.parametrize(
    ("secret", "said"),
    [
        ({"SecretString": '{"key": "k"}'}, "holds no key"),
        ({"SecretString": "{"}, "starts like JSON"),
        ({"SecretBinary": b"k"}, "holds bytes"),
    ],
)
def test_secret_without_a_key_is_refused_before_stripe_is_asked(
    stage: Stage, stripe: StripeStandIn, aws: Aws, db: psycopg.Connection, secret: dict[str, Any], said: str
) -> None:
    subscriber(db, stripe)
    keep_key(stage, aws, **secret)
    with pytest.raises(SettingsRefused, match=said):
        sync(stage)
    assert len(stripe.requests) == 0


def test_line_end_after_the_key_is_no_part_of_it(
    stage: Stage, stripe: StripeStandIn, aws: Aws, db: psycopg.Connection
) -> None:
    subscriber(db, stripe)
    keep_key(stage, aws, SecretString=f"{KEY}\n")
    assert sync(stage)["items"] == 1


def test_rate_limited_run_waits_as_long_as_stripe_says(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("forecasts.billing.stripe_api.time", SimpleNamespace(sleep=waits.append))
    subscriber(db, stripe)
    stripe.faults.add(Fault(status=429, times=2, retry_after="0"))
    stripe.faults.add(Fault(status=429, times=1))
    assert sync(stage)["items"] == 1
    assert len(stripe.requests) == 4
    assert waits[:2] == [0, 0]
    assert 1 <= waits[2] <= 2, "half a second, doubled each time"


def test_a_hanging_answer_is_given_up_and_asked_for_again(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection
) -> None:
    subscriber(db, stripe)
    stripe.faults.add(Fault(times=1, hang_seconds=5))
    assert sync(stage)["items"] == 1


def test_an_active_organisation_without_a_customer_gets_one_that_knows_it(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection
) -> None:
    new = rows.organization(db, name="Weather & Sons", plan="starter", last_billing_sync_at=MIDNIGHT - SECOND)
    assert sync(stage)["items"] == 1
    [customer] = stripe.account.customers.values()
    assert (customer["name"], customer["metadata"]) == ("Weather & Sons", {"organization_id": str(new)})
    ours = organization(db, new)
    assert (ours["stripe_customer_id"], ours["last_billing_sync_at"]) == (customer["id"], MIDNIGHT)
    assert audited(db) == [("customer.created", str(new), {"customer": customer["id"]})]


@pytest.mark.parametrize("searchable", [True, False], ids=["much later", "before the search knows it"])
def test_a_crash_between_stripe_and_our_commit_makes_no_second_customer(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection, searchable: bool
) -> None:
    new = rows.organization(db)
    stripe.account.searchable = searchable
    db.execute("ALTER TABLE forecasts.audit_logs ADD CONSTRAINT crash CHECK (false) NOT VALID")
    with pytest.raises(Unavailable, match="none of 1"):
        sync(stage)
    assert organization(db, new)["stripe_customer_id"] is None
    db.execute("ALTER TABLE forecasts.audit_logs DROP CONSTRAINT crash")
    if searchable:
        stripe.forget_replies()
    assert sync(stage)["items"] == 1
    assert list(stripe.account.customers) == [organization(db, new)["stripe_customer_id"]]


def test_an_answer_that_was_lost_on_its_way_makes_no_second_customer(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection
) -> None:
    new = rows.organization(db)
    stripe.account.searchable = False
    stripe.faults.add(Fault(matching="POST /v1/customers", times=1, lost=True))
    assert sync(stage)["items"] == 1
    assert list(stripe.account.customers) == [organization(db, new)["stripe_customer_id"]]


def test_a_customer_renamed_between_two_tries_is_found_the_next_time(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection
) -> None:
    new = rows.organization(db)
    stripe.account.searchable = False
    stripe.faults.add(Fault(matching="POST /v1/customers", lost=True))
    with pytest.raises(Unavailable):
        sync(stage)
    stripe.faults.replace([])
    db.execute("UPDATE forecasts.organizations SET name = 'another'")
    with pytest.raises(Unavailable):
        sync(stage)
    stripe.account.searchable = True
    assert sync(stage)["items"] == 1
    assert list(stripe.account.customers) == [organization(db, new)["stripe_customer_id"]]


def test_two_runs_at_once_make_one_customer_and_one_audit_row(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection
) -> None:
    drifted = subscriber(db, stripe, plan="starter")
    for _ in range(5):
        rows.organization(db, plan="starter")
    stripe.account.searchable = False
    other = stage.another()
    runs = [
        Thread(target=sync, args=(overlapping(one), MIDNIGHT + number * DAY))
        for number, one in enumerate((stage, other))
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert len(stripe.account.customers) == 6
    actions = [action for action, *_ in audited(db)]
    assert sorted(actions) == ["billing.repaired"] + ["customer.created"] * 5
    assert organization(db, drifted)["plan"] == "pro"


def overlapping(stage: Stage) -> Stage:
    """Remove the guard that lets one slot at a time work: the effects must hold by themselves."""
    tasks = [replace(task, overlap=Overlap.ALLOW) for task in stage.app.resources.tasks]
    stage.app = replace(stage.app, resources=replace(stage.app.resources, tasks=TaskRegistry(tasks)))
    return stage


def test_what_a_webhook_writes_while_stripe_is_asked_stays(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection
) -> None:
    one = subscriber(db, stripe, plan="starter", subscription_status="past_due")
    stripe.during = lambda: db.execute("UPDATE forecasts.organizations SET subscription_status = 'unpaid'")
    assert sync(stage)["items"] == 0
    ours = organization(db, one)
    assert (ours["plan"], ours["subscription_status"], ours["last_billing_sync_at"]) == ("starter", "unpaid", None)


@pytest.mark.parametrize(
    ("repair", "clock"),
    [
        (("past_due", "active"), (MIDNIGHT - 3 * DAY, None)),
        (("active", "past_due"), (None, MIDNIGHT)),
        (("past_due", "unpaid"), (MIDNIGHT - 3 * DAY, MIDNIGHT - 3 * DAY)),
        (("active", "canceled"), (MIDNIGHT - 3 * DAY, MIDNIGHT - 3 * DAY)),
        (("past_due", "past_due"), (MIDNIGHT - 3 * DAY, MIDNIGHT - 3 * DAY)),
        (("active", "active"), (MIDNIGHT - 3 * DAY, None)),
        (("trialing", "trialing"), (MIDNIGHT - 3 * DAY, None)),
    ],
)
def test_the_clock_of_a_failed_payment_follows_what_stripe_says(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection, repair: tuple[str, str], clock: tuple[Any, Any]
) -> None:
    (ours, theirs), (before, after) = repair, clock
    one = subscriber(db, stripe, theirs, subscription_status=ours, payment_failed_at=before)
    sync(stage)
    assert organization(db, one)["payment_failed_at"] == after


def test_clock_ending_without_status_change_is_counted_and_audited(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    failed_at = MIDNIGHT - 3 * DAY
    one = subscriber(db, stripe, payment_failed_at=failed_at)
    sync(stage)
    [(action, entity, detail)] = audited(db)
    assert (action, entity) == ("billing.repaired", str(one))
    assert detail == {"payment_failed_at": {"ours": failed_at.isoformat(), "stripe": None}}
    assert metric(capsys, "BillingStateDrift") == 1


def test_a_payment_that_fails_while_stripe_is_asked_keeps_its_clock(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection
) -> None:
    one = subscriber(db, stripe)
    stripe.during = lambda: db.execute("UPDATE forecasts.organizations SET payment_failed_at = %s", (MIDNIGHT,))
    assert sync(stage)["items"] == 0
    assert organization(db, one)["payment_failed_at"] == MIDNIGHT


@pytest.mark.parametrize("unsubscribed", ["", "starter"])
def test_ended_subscription_keeps_plan_unless_there_is_one_for_the_unsubscribed(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch, unsubscribed: str
) -> None:
    monkeypatch.setenv("FORECASTS_STRIPE_UNSUBSCRIBED_PLAN", unsubscribed)
    one = subscriber(db, stripe, "canceled", subscription_status="active")
    sync(stage)
    ours = organization(db, one)
    assert (ours["plan"], ours["subscription_status"]) == (unsubscribed or "pro", "canceled")


def test_all_pages_of_a_customers_subscriptions_are_read(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection
) -> None:
    one = subscriber(db, stripe, plan="starter", subscription_status="canceled")
    customer = organization(db, one)["stripe_customer_id"]
    for number in range(120):
        stripe.account.add_subscription(customer, "canceled", "price_old", created=2**31 + number)
    sync(stage)
    ours = organization(db, one)
    assert (ours["plan"], ours["subscription_status"]) == ("pro", "active")
    assert len(asked(stripe)) == 2


def test_a_run_without_time_for_another_call_goes_on_in_the_next(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection
) -> None:
    one = subscriber(db, stripe)
    answer = sync(stage, seconds=12)
    assert (answer["items"], answer["more"]) == (0, True)
    [answer] = stage.deliver(MIDNIGHT)
    assert answer["items"] == 1
    assert synced(db, one) == MIDNIGHT


def test_a_past_reference_time_compares_who_was_stale_then(
    stage: Stage, stripe: StripeStandIn, db: psycopg.Connection
) -> None:
    then = MIDNIGHT - 30 * DAY
    since = subscriber(db, stripe, plan="starter", last_billing_sync_at=then + DAY)
    stale = subscriber(db, stripe, plan="starter", last_billing_sync_at=then - DAY)
    answer = sync(stage, reference_time=then.isoformat())
    assert (answer["slot"], answer["items"]) == (then.isoformat(), 1)
    assert [synced(db, one) for one in (since, stale)] == [then + DAY, then]
    assert [organization(db, one)["plan"] for one in (since, stale)] == ["starter", "pro"]
