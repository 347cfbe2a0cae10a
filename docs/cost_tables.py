"""The tables of docs/cost.md and docs/scale.md, from the model and the simulation: `make docs` writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from bench import ramp
from bench.ramp_simulation import MARGIN_SECONDS, simulate
from local.cli.cost_page import dollars, price, quantity, rate
from local.cost.estimate import Estimate, estimate
from local.cost.figures import assumed, figures, measured, price_list
from local.cost.load import Load, core_share
from local.cost.stack import Stack, parameters_of, read_stack
from signalbox.tasks.dispatch_jobs import BATCH

TEMPLATE = Path(__file__).parents[1] / "template.yaml"
AMOUNTS = (1_000, 100_000, 10_000_000)
_AURORA = {"Database": "aurora", "DatabaseProxy": "off"}
_WITH_PROXY = {"Database": "aurora", "DatabaseProxy": "on"}


def costs() -> str:
    """A row a load: what it costs here, and in containers."""
    head = (
        "| jobs a day | each | this stack | per 1,000 jobs | its queue and workers alone | queue in Postgres | Celery |"
    )
    rows = [_cost_row(jobs, job_ms) for job_ms in (None, 250.0) for jobs in AMOUNTS]
    return "\n".join([head, "| --- " * 7 + "|", *rows])


def _cost_row(jobs: int, job_ms: float | None) -> str:
    found = estimate(_stack(), Load(jobs, job_ms))
    bare = found.bill.alone().usd
    beside = " | ".join(dollars(one.usd) for one in found.beside)
    each = "one statement" if job_ms is None else f"{job_ms:.0f} ms"
    return f"| {jobs:,} | {each} | {dollars(found.bill.usd)} | {_per_thousand(found)} | {dollars(bare)} | {beside} |"


def cost_services() -> str:
    """A row a service: what of it is there without jobs, and with."""
    loads = [0, *AMOUNTS]
    found = [estimate(_stack(), Load(jobs)).bill.groups() for jobs in loads]
    head = "| service | " + " | ".join(f"{jobs:,} jobs a day" for jobs in loads) + " |"
    names = sorted(found[-1], key=lambda name: -found[-1][name])
    rows = [f"| {name} | " + " | ".join(dollars(one.get(name, 0.0)) for one in found) + " |" for name in names]
    sums = "| all | " + " | ".join(dollars(sum(one.values())) for one in found) + " |"
    return "\n".join([head, "| --- " * (len(loads) + 1) + "|", *rows, sums])


def cost_settings() -> str:
    """A row a setting: what a month costs with it, at the largest load."""
    large = Load(AMOUNTS[-1])
    usual = estimate(_stack(), large)
    rows = [
        ("as it is deployed", usual),
        ("`JobEvents=ends`", _with({"JobEvents": "ends"}, large)),
        ("`JobEvents=none`", _with({"JobEvents": "none"}, large)),
        ("and submits of twenty at once", _with({"JobEvents": "none"}, Load(large.jobs_a_day, submitted_at_once=20))),
        ("`LaneBatchSize=10`", _with({"LaneBatchSize": "10"}, large)),
        ("all of it in eight hours of the day", estimate(_stack(), Load(large.jobs_a_day, busy_hours=8))),
    ]
    head = "| 10,000,000 jobs a day | a month | per 1,000 jobs |\n" + "| --- " * 3 + "|"
    return "\n".join([head, *(f"| {what} | {dollars(one.bill.usd)} | {_per_thousand(one)} |" for what, one in rows)])


def cost_standing() -> str:
    """A row a way to deploy it: what it costs without any job."""
    ways: dict[str, Mapping[str, str]] = {
        "your own database": {},
        "the same with the pack forecasts": {"ForecastsPack": "on"},
        "the same with no rule enabled": {"RuleState": "DISABLED"},
    }
    if "Database" in parameters_of(TEMPLATE):
        ways |= {"an Aurora of the stack's own": _AURORA, "the same with RDS Proxy": _WITH_PROXY}
    head = "| deployed with | a month | of which database and network | less the free tier |\n" + "| --- " * 4 + "|"
    return "\n".join([head, *(_standing_row(what, _stack(**given)) for what, given in ways.items())])


def _standing_row(what: str, stack: Stack) -> str:
    full, free = (estimate(stack, Load(0), free_tier=free).bill for free in (False, True))
    groups = full.groups()
    database = sum(groups.get(name, 0.0) for name in ("Aurora", "RDS Proxy", "VPC"))
    return f"| {what} | {dollars(full.usd)} | {dollars(database)} | {dollars(free.usd)} |"


def cost_prices() -> str:
    """Each price as it is used."""
    prices = price_list()
    rows = [f"| {price(one)} | {one.unit} | {one.source} |" for one in prices.prices.values()]
    head = f"| {prices.region}, {prices.as_of} | | |\n" + "| --- " * 3 + "|"
    return "\n".join([head, *rows])


def cost_assumed() -> str:
    """Each assumption with its reason."""
    rows = [f"| `{name}` | {quantity(one['value'])} {one['unit']} | {one['why']} |" for name, one in assumed().items()]
    return "\n".join(["| assumed | | |", "| --- " * 3 + "|", *rows])


def cost_measured() -> str:
    """Each figure that `footprint` printed."""
    rows = [f"| `{name}` | {one['value']:,} {one['unit']} | {one['of']} |" for name, one in measured().items()]
    return "\n".join(["| measured | | of |", "| --- " * 3 + "|", *rows])


def ramp_deployed() -> str:
    return ramp.as_deployed(_stack())


def ramp_needs() -> str:
    return ramp.keeping_up(_stack())


def scale_burst() -> str:
    """A hundred thousand at once, with the workers that there are and with ten times as many."""
    scene = next(scene for kind, scene in ramp.scenes(_stack()) if kind == "one statement")
    burst = replace(scene, rate=0.0, burst=100_000, seconds=1.0)
    rows = []
    for times in (1, 10):
        found = simulate(replace(burst, lane=replace(burst.lane, concurrency=times * burst.lane.concurrency)))
        rows.append(
            f"| {times * burst.lane.concurrency} | {found.most_workers} | {found.drained_seconds or 0:,.0f} s | "
            f"{found.limited_by} |"
        )
    head = "| NormalLaneConcurrency | workers | done after | held back by |\n" + "| --- " * 4 + "|"
    return "\n".join([head, *rows])


def scale_database() -> str:
    """What a job writes, and how often that is flushed."""
    known = figures()
    rows = [
        ("a submit by itself", "submit_wal_bytes", "1"),
        ("one of 4,000 by COPY", "submit_in_bulk_wal_bytes", "1 for all"),
        ("claim and finish, alone in its batch", "lone_job_wal_bytes", "2"),
        ("claim and finish, among 1,000", "job_wal_bytes", "2 for all"),
        ("the same after a checkpoint of RDS, with whole pages", "job_wal_bytes_with_whole_pages", "2 for all"),
        ("claim and finish of a transactional job, with its own INSERT", "transactional_job_wal_bytes", "1"),
    ]
    head = "| | bytes of WAL | flushes |\n" + "| --- " * 3 + "|"
    return "\n".join([head, *(f"| {what} | {known[name]:,.0f} | {flushes} |" for what, name, flushes in rows)])


def scale_dispatch() -> str:
    """How many jobs a run of dispatch_jobs sends."""
    known, function = figures(), _stack().functions["ArchiverFunction"]
    calls = BATCH / known["messages_a_receive"] / known["calls_at_once"]
    batch = BATCH * known["dispatch_job_ms"] / core_share(function) + calls * known["send_ms"]
    jobs = (function.timeout_seconds - MARGIN_SECONDS) * 1000 / batch * BATCH
    return (
        f"A batch of {BATCH:,} takes some {batch:,.0f} ms: {60_000 / batch * BATCH:,.0f} jobs a minute, and "
        f"{jobs:,.0f} before a run goes on in a continuation."
    )


def _with(parameters: Mapping[str, str], load: Load) -> Estimate:
    return estimate(_stack(**parameters), load)


@cache
def _stack(**parameters: str) -> Stack:
    return read_stack(TEMPLATE, parameters)


def _per_thousand(found: Estimate) -> str:
    return rate(found.bill.usd / found.work.jobs_a_month * 1000)


COST_TABLES = {
    one.__name__: one
    for one in (
        costs,
        cost_services,
        cost_settings,
        cost_standing,
        cost_prices,
        cost_assumed,
        cost_measured,
        ramp_deployed,
        ramp_needs,
        scale_burst,
        scale_database,
        scale_dispatch,
    )
}
