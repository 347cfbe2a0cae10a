"""Show statistics and the health of the job plane."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pydantic import Field

from signalbox.errors import Forbidden, PayloadRefused
from signalbox.invocation import Invocation, Resources
from signalbox.packs.payload import Payload
from signalbox.postgres.connection import Connection
from signalbox.stats import statistics
from signalbox.stats.open_metrics import open_metrics
from signalbox.stats.statistics import PlaneReport, Statistics

_LONGEST_HOURS = 24 * 400
_LONGEST_OF_TENANT = 24


class ShowStatistics(Payload):
    """Select all jobs, one type or one tenant, over the hours up to now.

    `tenants` adds a row for each tenant, and `health` what show_health answers.
    """

    job_type: str | None = None
    tenant: str | None = None
    tenants: bool = False
    health: bool = False
    hours: float = Field(24, gt=0, le=_LONGEST_HOURS)


class ShowMetrics(Payload):
    """Take no params."""


class ShowHealth(Payload):
    """Take no params."""


def show_statistics(resources: Resources, params: ShowStatistics, invocation: Invocation) -> dict[str, Any]:
    if invocation.tenant is not None:
        _refuse_beyond(invocation.tenant, params)
    db, window = resources.database.connection(), timedelta(hours=params.hours)
    now = invocation.clock
    found = statistics.show_statistics(db, window, params.job_type, now=now, tenant=params.tenant)
    if params.job_type is not None and not found.by_type:
        resources.job_types.find(params.job_type)
    by_tenant = {"by_tenant": statistics.list_tenants(db, now=now)} if params.tenants else {}
    if not params.health:
        return found.as_json() | by_tenant
    report = _health(db, found, params)
    return found.as_json() | by_tenant | {"health": report.as_json()}


def _refuse_beyond(tenant: str, params: ShowStatistics) -> None:
    """Refuse what concerns others. A tenant's figures are counted from its attempts, not from roll-ups: not of long."""
    if params.tenants or params.health:
        raise Forbidden(f"this token is bound to the tenant '{tenant}': tenants and health concern the whole stack")
    if params.hours > _LONGEST_OF_TENANT:
        why = f"field 'hours' is at most {_LONGEST_OF_TENANT} for a token that is bound to a tenant"
        raise PayloadRefused(why, [("hours", why)])


def _health(db: Connection, found: Statistics, params: ShowStatistics) -> PlaneReport:
    if params.job_type is not None or params.tenant is not None:
        return statistics.show_health(db, now=found.until)
    return statistics.judge(db, found) if params.hours == 24 else statistics.health_beside(db, found)


def show_metrics(resources: Resources, _: ShowMetrics, invocation: Invocation) -> dict[str, Any]:
    """Return the figures as OpenMetrics text."""
    hour = statistics.show_statistics(resources.database.connection(), timedelta(hours=1), now=invocation.clock)
    return {"text": open_metrics(hour)}


def show_health(resources: Resources, _: ShowHealth, invocation: Invocation) -> dict[str, Any]:
    return statistics.show_health(resources.database.connection(), now=invocation.clock).as_json()
