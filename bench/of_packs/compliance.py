"""Work out the deadlines of 10,000 companies with 100 obligations each: the hourly task, and its jobs by two workers.

The floor is one statement for each step: an INSERT that stores the jobs, and the jobs' own statement over all
companies at once. Both are measured as each hour meets them, with nothing new, and for a tenth of the companies as the
first hour does, when all deadlines are missing. SQS is left out.

`python -m bench.of_packs.compliance 10` takes a tenth of all.
"""

from __future__ import annotations

import io
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, redirect_stdout
from functools import cache
from itertools import repeat
from multiprocessing import get_context

import psycopg

from bench.of_packs import compliance_files
from bench.of_packs.compliance_files import open_stage
from bench.ratio import Ratio, timed
from bench.stage.database import bench_database
from bench.stage.job_plant import own_database
from bench.stage.watch import watched
from compliance.pack import PACK
from signalbox.engine_pack import ENGINE
from signalbox.migrate import migrations
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries
from signalbox.testing.stage import NOON, Stage

SQL = load_queries(__file__)
COMPANIES, OBLIGATIONS, FIRST_SHARE = 10_000, 100, 10
WORKERS, BATCH = 2, 100
LOOK_EACH_SECONDS, MOST_MS = 0.05, 500
# Only what is filled: the planner takes a table for empty that was empty when it was vacuumed.
VACUUM = "VACUUM (ANALYZE) compliance.companies, compliance.sites, compliance.obligations"
FIRST = "in the first hour"
TASK = "trigger_monitoring_schedule"
OF_A_COMPANY = "o.id = ANY (calculate_deadlines.ids) AND o.company_id = calculate_deadlines.company"
# Else the planner reads all deadlines of a company for each of its obligations.
BY_HAND = (b"SET LOCAL work_mem = '512MB'", b"SET LOCAL jit = off", b"SET LOCAL enable_bitmapscan = off")
OF_ALL = "o.deleted_at IS NULL AND o.status NOT IN ('COMPLETED', 'NOT_APPLICABLE')"


def measure(dsn: str, part: int = 1) -> list[Ratio]:
    companies = COMPANIES // part
    return [
        *_race(dsn, companies // FIRST_SHARE, FIRST),
        *_race(dsn, companies, "in a later hour"),
        *compliance_files.measure(dsn, part),
    ]


def _race(dsn: str, companies: int, when: str) -> list[Ratio]:
    with own_database(dsn) as own, psycopg.connect(own, autocommit=True) as db:
        _fill(db, companies, is_first=when == FIRST)
        stored, done = _by_hand(db)
        ours, held = _by_jobs(own, db, companies)
    what = f"deadlines of {companies:,} companies {when}"
    print(f"{what}: {companies / ours[1]:,.0f} jobs/s by {WORKERS} workers")
    return [
        Ratio(f"{what}, the task", "one INSERT of as many jobs", 1000 * ours[0], 1000 * stored),
        Ratio(f"{what}, the jobs", "the jobs' statements over all companies", 1000 * ours[1], 1000 * done),
        Ratio(f"{what}, both", "both statements", 1000 * sum(ours), 1000 * (stored + done), 2.0),
        Ratio(f"{what}, the longest time that a row was locked", f"{MOST_MS} ms", held, MOST_MS, 1.0),
    ]


def _fill(db: Connection, companies: int, *, is_first: bool) -> None:
    migrations.apply(db, [ENGINE, PACK], "bench")
    db.execute("SET session_replication_role = replica")  # foreign keys hold without their checks
    db.execute(SQL["fill"], {"companies": companies, "obligations": OBLIGATIONS, "slot": NOON})
    db.execute(VACUUM)
    if not is_first:
        _do_by_hand(db)
        db.execute("VACUUM (ANALYZE) compliance.deadlines, compliance.schedules, compliance.obligations")
    db.execute("RESET session_replication_role")


def _by_hand(db: Connection) -> tuple[float, float]:
    """Return the seconds of each step by hand, and leave everything as it was."""
    with db.transaction(force_rollback=True):
        stored = timed(lambda: db.execute(SQL["fan_out"], {"slot": NOON.isoformat()}))()
    with db.transaction(force_rollback=True):
        done = timed(lambda: _do_by_hand(db))()
    db.execute("TRUNCATE signalbox.jobs CASCADE")
    if not db.execute("SELECT 1 FROM compliance.deadlines LIMIT 1").fetchone():
        db.execute("TRUNCATE compliance.schedules CASCADE")
        db.execute("VACUUM (FULL, ANALYZE) compliance.obligations")
    db.execute("CHECKPOINT")
    return stored, done


def _do_by_hand(db: Connection) -> None:
    with db.transaction():
        for setting in BY_HAND:
            db.execute(setting)
        db.execute(_over_all(db), {"slot": NOON})


def _over_all(db: Connection) -> bytes:
    """Return the jobs' statement without what restricts it to a company."""
    [(source,)] = db.execute(SQL["source"]).fetchall()
    if OF_A_COMPANY not in source:
        raise RuntimeError(f"calculate_deadlines chooses its obligations in another way than by {OF_A_COMPANY}")
    statement = source.partition("BEGIN\n")[2].partition("INTO recurring")[0].replace(OF_A_COMPANY, OF_ALL)
    values = (("calculate_deadlines.force", "false"), ("calculate_deadlines.slot", "%(slot)s::timestamptz"))
    for name, value in values:
        statement = statement.replace(name, value)
    return str(statement).encode()


def _by_jobs(dsn: str, db: Connection, companies: int) -> tuple[tuple[float, float], float]:
    """Return the seconds of the task and of its jobs, and for how many ms a row was locked at the longest."""
    with ExitStack() as stack:
        workers = stack.enter_context(ProcessPoolExecutor(WORKERS, get_context("spawn")))
        list(workers.map(_work, [dsn] * WORKERS, [[]] * WORKERS))  # so that they have started
        stage = stack.enter_context(open_stage(dsn))
        held = stack.enter_context(watched(dsn, SQL["held"], LOOK_EACH_SECONDS))
        fanned_out = timed(lambda: _submit(stage))()
        ids = [id_ for (id_,) in db.execute(SQL["submitted"], {"task": TASK}).fetchall()]
        size = min(BATCH, -(-len(ids) // WORKERS))
        batches = [ids[place : place + size] for place in range(0, len(ids), size)]
        worked = timed(lambda: list(workers.map(_work, repeat(dsn), batches)))()
    ended = db.execute(SQL["ended"], {"task": TASK}).fetchone()
    if ended != (companies, companies * OBLIGATIONS):
        raise RuntimeError(f"of {companies} jobs and {companies * OBLIGATIONS} obligations {ended} are done")
    return (fanned_out, worked), 1000 * max(held)


def _submit(stage: Stage) -> None:
    with redirect_stdout(io.StringIO()):
        stage.run(TASK, NOON, seconds=300, force=True)


def _work(dsn: str, ids: list[str]) -> None:
    """Work off one event, in a worker's process."""
    with redirect_stdout(io.StringIO()):
        _stage_of(dsn).work(*ids, seconds=360)


_stage_of = cache(open_stage)  # for the life of a worker


if __name__ == "__main__":
    with bench_database() as dsn:
        print(*measure(dsn, int(sys.argv[1])), sep="\n")
