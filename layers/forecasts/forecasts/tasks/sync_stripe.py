"""Compare organisations' plan and status with their Stripe subscriptions once a day, and repair ours (SCHED-003).

The longest neglected come first. An organisation without a customer at Stripe gets one, once. One that fails is
reported and goes to the end of the queue; the run fails if all do, or if Stripe itself does.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from forecasts.api_key import read_api_key
from forecasts.billing.standing import PAID, Standing, standing_of
from forecasts.billing.stripe_api import Stripe
from forecasts.errors import OrganizationRefused, StripeUnavailable
from forecasts.settings import settings_of
from signalbox.ledger.context import Context, Done, Skipped
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
# This many failures of Stripe in a row are Stripe's own, and no organisation's: more calls would only add to them.
OUTAGE = 5


@dataclass(frozen=True, slots=True)
class SyncedOrganization:
    """Describe our organisation, as it was before Stripe was asked."""

    id: UUID
    name: str
    plan: str
    subscription_status: str | None
    stripe_customer_id: str | None
    payment_failed_at: datetime | None


@dataclass(slots=True)
class SyncResult:
    """Count how the run goes."""

    compared: int = 0
    doubtful: int = 0
    failed: int = 0
    failed_in_a_row: int = 0  # Stripe's own failures

    def reason(self) -> str | None:
        """Return the ledger's reason beside the count; the log names the organisations."""
        parts = []
        if self.failed:
            parts.append(f"{self.failed} of {self.failed + self.compared} organisations could not be compared")
        if self.doubtful:
            parts.append(f"{self.doubtful} with a price that stands for no plan")
        return "; ".join(parts) or None


def sync_stripe(context: Context) -> Done | Skipped:
    """Items are the organisations compared."""
    if not settings_of(context).stripe_prices:
        return Skipped("no Stripe account is configured: FORECASTS_STRIPE_PRICES names no plan")
    organizations = _stale(context)
    if not organizations:
        return Done()
    stripe, tally = _connect(context), SyncResult()
    for organization in organizations:
        if not context.budget.allows(stripe.longest_call):
            _require_success(tally)
            return Done(tally.compared, more=True)
        _take(context, stripe, tally, organization)
    _require_success(tally)
    return Done(tally.compared, reason=tally.reason())


def _stale(context: Context) -> list[SyncedOrganization]:
    given = settings_of(context)
    values = {"before": context.now - timedelta(hours=given.stripe_staleness_hours), "limit": given.stripe_limit}
    with context.db.cursor(row_factory=class_row(SyncedOrganization)) as cursor:
        return cursor.execute(SQL["list_stale"], values).fetchall()


def _connect(context: Context) -> Stripe:
    given = settings_of(context)
    key = read_api_key(context.clients, given.stripe_secret)
    return Stripe.at(given.stripe_base_url, key, given.stripe_timeout_seconds)


def _take(context: Context, stripe: Stripe, tally: SyncResult, organization: SyncedOrganization) -> None:
    """Compare one organisation; errors that concern it alone end here."""
    try:
        customer = organization.stripe_customer_id or _ensure_customer(context, stripe, organization)
        standing = _ask(context, stripe, customer)
        compared = _record(context, organization, customer, standing)
    except StripeUnavailable as error:
        tally.failed_in_a_row += 1
        _report(context, tally, organization, error)
        if tally.failed_in_a_row >= OUTAGE:
            raise StripeUnavailable(f"{error}, {OUTAGE} times in a row: the rest is compared once it works") from None
    except (OrganizationRefused, psycopg.IntegrityError) as error:
        _report(context, tally, organization, error)
    else:
        tally.compared += compared
        tally.failed_in_a_row = 0
        tally.doubtful += _doubt(context, organization, standing)


def _ensure_customer(context: Context, stripe: Stripe, organization: SyncedOrganization) -> str:
    """Create a customer once, even over crashes: the key works for a day, Stripe's search from a minute on."""
    id_ = str(organization.id)
    customer = stripe.find_customer(id_) or stripe.create_customer(id_, organization.name)
    context.db.execute(SQL["adopt_customer"], {"id": organization.id, "customer": customer} | _author(context))
    context.log.info("customer.adopted", extra={"organization_id": id_, "customer_id": customer})
    return customer


def _ask(context: Context, stripe: Stripe, customer: str) -> Standing:
    """Return what Stripe has. No transaction is open meanwhile."""
    given = settings_of(context)
    return standing_of(stripe.subscriptions_of(customer), given.stripe_prices, given.stripe_unsubscribed_plan or None)


def _record(context: Context, organization: SyncedOrganization, customer: str, standing: Standing) -> bool:
    """Record the comparison. Return False if the organisation changed meanwhile: the next run compares it again."""
    plan = standing.plan or organization.plan
    differences = _differences(organization, plan, standing.status)
    values = {
        "id": organization.id,
        "customer": customer,
        "plan": plan,
        "status": standing.status,
        "our_plan": organization.plan,
        "paid": standing.status in PAID,
        "our_status": organization.subscription_status,
        "our_payment_failed_at": organization.payment_failed_at,
        "differences": Jsonb(differences),
    }
    compared = context.db.execute(SQL["record"], values | _author(context)).fetchone() is not None
    if compared and differences:
        context.metrics.count("BillingStateDrift")
        extra = {"organization_id": str(organization.id), "differences": differences}
        context.log.warning("billing.repaired", extra=extra)
    return compared


def _differences(organization: SyncedOrganization, plan: str, status: str | None) -> dict[str, Any]:
    """Return ours and Stripe's value by column, where they differ."""
    pairs = {"plan": (organization.plan, plan), "subscription_status": (organization.subscription_status, status)}
    found = {name: {"ours": ours, "stripe": theirs} for name, (ours, theirs) in pairs.items() if ours != theirs}
    if status in PAID and organization.payment_failed_at is not None:
        found["payment_failed_at"] = {
            "ours": organization.payment_failed_at.astimezone(UTC).isoformat(),
            "stripe": None,
        }
    return found


def _doubt(context: Context, organization: SyncedOrganization, standing: Standing) -> int:
    if standing.doubt is None:
        return 0
    context.metrics.count("BillingPriceUnknown")
    context.log.warning("price.unknown", extra={"organization_id": str(organization.id), "reason": standing.doubt})
    return 1


def _report(context: Context, tally: SyncResult, organization: SyncedOrganization, error: Exception) -> None:
    tally.failed += 1
    context.db.execute(SQL["postpone"], {"id": organization.id, "now": context.now})
    context.metrics.count("BillingSyncFailed")
    reason = f"{type(error).__name__}: {error}"
    context.log.warning("organization.not_compared", extra={"organization_id": str(organization.id), "reason": reason})


def _require_success(tally: SyncResult) -> None:
    if tally.failed and not tally.compared:
        raise StripeUnavailable(f"none of {tally.failed} organisations could be compared; the log says why, for each")


def _author(context: Context) -> dict[str, Any]:
    return {"actor": context.task, "now": context.now}
