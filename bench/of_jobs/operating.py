"""Measure what operators ask, among 1,000,000 jobs and 10,000,000 runs: each answer may take 150 ms at p95.

The jobs are of thirty days: 20 types, 50 tenants, groups, tags, 50,000 waiting, 20,000 failed in 200 kinds. Each
operation runs as the function api runs it, in turn with the others, beside a `SELECT 1` on the same connection.
`python -m bench.of_jobs.operating 10` takes a tenth of the rows.
"""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from bench.ratio import Ratio
from bench.stage.database import bench_database
from bench.stage.job_plant import JobPlant, job_plant
from signalbox.access.caller import Role
from signalbox.access.sessions import begin_session
from signalbox.access.tokens import create_token
from signalbox.app import App
from signalbox.engine_pack import ENGINE
from signalbox.invocation import Invocation
from signalbox.packs.schedule import Schedule
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
JOBS, RUNS, DAYS, ROUNDS, MOST_MS = 1_000_000, 10_000_000, 30, 20, 150
PARTITION = "SELECT signalbox.add_partition(%s, %s, %s)"
# No index has these with the id: the planner takes them for frequent, and walks past all newer jobs.
OLD = {"list_jobs job_type type_old", "list_jobs lane high", "list_jobs tag tag_old"}
Asked = dict[str, Any]


def measure(dsn: str, part: int = 1) -> list[Ratio]:
    with job_plant(dsn) as plant:
        began = perf_counter()
        fill(plant, JOBS // part, RUNS // part)
        print(f"filled with {JOBS // part:,} jobs and {RUNS // part:,} runs in {perf_counter() - began:.0f} s")
        times = ask_all(plant, dict(questions(plant)), ROUNDS)
    floor = p95(times.pop("SELECT 1"))
    old = [p95(times[what]) for what in times if what in OLD]
    print(f"{'question':<58} {'median':>8} {'p95':>8}   times SELECT 1, {floor:.2f} ms")
    for what, taken in times.items():
        print(f"{what:<58} {median(taken):>5.1f} ms {p95(taken):>5.1f} ms   {p95(taken) / floor:,.0f}")
    slowest = max(times.keys() - OLD, key=lambda what: p95(times[what]))
    what = f"p95 of the slowest of {len(times) - len(old)} questions, {slowest}"
    return [
        Ratio(what, "150 ms", p95(times[slowest]), MOST_MS, 1.0),
        Ratio("p95 of the slowest for values that are frequent in old jobs alone", "150 ms", max(old), MOST_MS),
    ]


def fill(plant: JobPlant, jobs: int, runs: int) -> None:
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    for week in range(6):
        ends = now.replace(hour=0, minute=0) - week * timedelta(days=7)
        for table in ("job_executions", "job_history"):
            plant.db.execute(PARTITION, (table, ends - timedelta(days=7), ends))
    indexes = plant.db.execute(SQL["list_indexes"]).fetchall()
    for name, _ in indexes:  # made again from all rows, in half the time
        plant.db.execute(f"DROP INDEX signalbox.{name}".encode())
    for name, statement in SQL.items():
        if name.startswith("fill_"):
            plant.db.execute(statement, {"jobs": jobs, "runs": runs, "now": now, "days": DAYS})
    _add_runs_of_engine(plant, now)
    for _, definition in indexes:
        plant.db.execute(definition.replace(" ON ONLY ", " ON ").encode())
    plant.db.execute("VACUUM (ANALYZE)")
    plant.db.execute("CHECKPOINT")


def _add_runs_of_engine(plant: JobPlant, now: datetime) -> None:
    for task in ENGINE.tasks:
        if task.schedule:
            slots = list(Schedule.parse(task.schedule).between(now - timedelta(days=35), now - timedelta(minutes=1)))
            plant.db.execute(SQL["add_runs"], {"task": task.name, "slots": slots, "schedule": task.schedule})


def questions(plant: JobPlant) -> Iterator[tuple[str, tuple[str, Asked]]]:
    """Return what is asked, by name: the operation and its params."""
    for what, params in _job_filters(plant):
        yield f"list_jobs {what}", ("list_jobs", params)
    for status in ("completed", "failed", "pending", "queued", "running", "paused"):
        [(id_,)] = plant.db.execute(SQL["find_one"], {"status": status}).fetchall()
        yield f"show_job {status}", ("show_job", {"id": id_})
        yield f"explain_job {status}", ("explain_job", {"id": id_})
    for what, params in _rest(plant):
        yield what, (what.split()[0], params)
    yield from _pages(plant)


def _job_filters(plant: JobPlant) -> Iterator[tuple[str, Asked]]:
    """Return each filter with common and rare values, with values of old jobs alone, and with one that no job has."""
    now, missing = datetime.now(UTC), "01900000-0000-7000-8000-000000000000"
    [(parent, rare_parent, schedule, deep)] = plant.db.execute(SQL["find_samples"], {"days": DAYS}).fetchall()
    yield "", {}
    yield "(a page deep in)", {"before_id": deep}
    for name, values in {
        "job_type": ("type_0", "type_rare", "type_old", "do_nothing"),
        "lane": ("normal", "high", "low", "heavy"),
        "status": ("completed", "failed", "cancelled", "pending", "queued", "running", "paused"),
        "tenant": ("tenant_1", "tenant_rare", "nobody"),
        "group": ("group_old", "group_7", "none"),
        "tag": ("night", "batch_7", "tag_old", "none"),
        "subject": ("subject_7", "none"),
        "correlation": ("correlation_7", "none"),
        "schedule": (schedule, "none"),
        "parent": (parent, rare_parent, missing),
        "cap_key": ("key_common", "key_7", "key_old", "none"),
        "since": ((now - timedelta(hours=1)).isoformat(), (now - timedelta(days=29)).isoformat(), now.isoformat()),
        "until": ((now - timedelta(days=29)).isoformat(), (now - timedelta(days=100)).isoformat()),
    }.items():
        for value in values:
            label = f"{name} {value}" if len(value) < 20 else f"{name} {value[:10]}"
            yield label, {name: value}
            if value in ("type_0", "normal", "completed", "tenant_1", "night", "key_common"):
                yield f"{label} (a page deep in)", {name: value, "before_id": deep}
    payload = {"payload": {"number": 7}, "job_type": "type_0"}
    yield "payload", {**payload, "since": (now - timedelta(days=1)).isoformat()}
    yield "payload, old", {**payload, "since": (now - timedelta(days=29)).isoformat()}


def _rest(plant: JobPlant) -> Iterator[tuple[str, Asked]]:
    open_ones = {"status": ["pending", "investigating"]}
    yield "list_dead_letters", {}
    yield "list_dead_letters open", open_ones
    yield "list_dead_letters of a type", {"job_type": "type_3"}
    yield "list_dead_letters of no tenant", {"tenant": "nobody"}
    yield "list_dead_letters by kind", {"by_kind": True}
    yield "list_dead_letters by kind, open", {"by_kind": True, "limit": 1000, **open_ones}
    for hours in (1, 24, 24 * 30):
        yield f"show_statistics {hours} h", {"hours": hours}
    yield "show_statistics 24 h, of a type", {"hours": 24, "job_type": "type_0"}
    yield "show_statistics 24 h, with tenants", {"hours": 24, "tenants": True}
    yield "show_health", {}
    yield "show_metrics", {}
    yield "show_slots 24 h", {}
    month = {"since": (datetime.now(UTC) - timedelta(days=35)).isoformat()}
    yield "show_slots 35 d of a task each five minutes", {"task": "roll_up_metrics", **month}
    yield "show_slots 35 d of a task each day", {"task": "prune_jobs", **month}
    [(deep,)] = plant.db.execute("SELECT (max(id) + min(id)) / 2 FROM signalbox.job_history").fetchall()
    old = (datetime.now(UTC) - timedelta(days=34)).isoformat()
    for what, params in {
        "": {},
        "(a page deep in)": {"before_id": deep},
        "of a task": {"task": "prune_jobs"},
        "of a common task": {"task": "dispatch_jobs"},
        "status failed": {"status": "failed"},
        "status missed": {"status": "missed"},
        "status running": {"status": "running"},
        "status skipped (none)": {"status": "skipped"},
        "trigger backfill": {"trigger": "backfill"},
        "trigger manual (none)": {"trigger": "manual"},
        "since an hour": {"since": (datetime.now(UTC) - timedelta(hours=1)).isoformat()},
        "until long ago": {"until": old},
        "of a task, failed (none)": {"task": "dispatch_jobs", "status": "failed"},
    }.items():
        yield f"list_runs {what}", params
    for action in ("cancel_jobs", "retry_jobs", "pause", "resume"):
        for given in ({"job_type": "type_0"}, {"tenant": "tenant_1"}, {"status": "pending"}, {"tag": "night"}):
            yield f"{action} (preview) {given}", {"dry_run": True, **given}
    yield "redrive (preview) of a type", {"dry_run": True, "job_type": "type_3"}
    yield "redrive (preview) of 10,000", {"dry_run": True, "since": old}
    yield "triage_dead_letters (preview)", {"dry_run": True, "since": old, "decision": "resolved"}
    yield "list_backfills", {}
    yield "list_backfills running", {"status": "running"}
    yield "list_controls", {}
    yield "list_schedules", {}
    yield "list_schedules of no type", {"job_type": "none"}


def _pages(plant: JobPlant) -> Iterator[tuple[str, tuple[str, Asked]]]:
    token = create_token(plant.db, "bench", Role.OPERATOR, tenant=None, by="bench", expires_at=None)["token"]
    cookies = [f"signalbox-session={begin_session(plant.db, token)}"]
    [(job,)] = plant.db.execute(SQL["find_one"], {"status": "failed"}).fetchall()
    letter, kind = plant.db.execute("SELECT id, fingerprint FROM signalbox.dead_letter_jobs LIMIT 1").fetchall()[0]
    for path, query in (
        *(("/", f"hours={hours}") for hours in (1, 24, 720)),
        *(("/timetable", query) for query in ("span=24h", "task=dispatch_jobs&span=7d", "task=prune_jobs&span=35d")),
        *(("/jobs", query) for query in ("", "status=failed", "tenant=tenant_rare")),
        *((f"/{path}", "") for path in ("dead-letters", f"jobs/{job}", f"dead-letters/{letter}")),
        *((f"/{path}", "") for path in (f"dead-letters/kinds/{kind}", "backfills", "schedules", "caps")),
    ):
        request = {"rawPath": path, "rawQueryString": query, "cookies": cookies, "headers": {}}
        shown = path.partition(str(job))[0].partition(str(letter))[0].partition(kind)[0]
        yield f"page {shown} {query}", ("page", request | {"requestContext": {"http": {"method": "GET", "path": path}}})


def ask_all(plant: JobPlant, asked: dict[str, tuple[str, Asked]], rounds: int) -> dict[str, list[float]]:
    """Return the milliseconds of each, over rounds that ask everything in turn, after one to warm up."""
    logging.getLogger(plant.engine.resources.settings.stack).setLevel("WARNING")
    times: dict[str, list[float]] = {what: [] for what in ("SELECT 1", *asked)}
    for number in range(rounds + 1):
        for what, (operation, params) in [("SELECT 1", ("", {})), *asked.items()]:
            began = perf_counter()
            ask(plant.engine, operation, params)
            if number:
                times[what].append((perf_counter() - began) * 1000)
    return times


def ask(engine: App, operation: str, params: Asked) -> Asked:
    if not operation:
        engine.resources.database.connection().execute("SELECT 1").fetchall()
        return {}
    event = params if operation == "page" else {"operation": operation, "params": params}
    with redirect_stdout(io.StringIO()):
        answer = engine.operate(event, Invocation.of("bench", datetime.now(UTC), 60))
    if answer.get("statusCode", 200) != 200 or "errorType" in answer.get("refused", ()):
        raise RuntimeError(f"{operation} {params}: {answer}")
    return answer


def p95(times: list[float]) -> float:
    return quantiles(times, n=20)[-1]


if __name__ == "__main__":
    with bench_database() as dsn:
        print(*measure(dsn, int(sys.argv[1])), sep="\n")
