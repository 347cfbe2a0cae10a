"""Play faults while jobs run: a short form of the cells of hardbyte's postgresql-job-queue-benchmarking.

Our worker and pgqueuer take turns, each on its own PostgreSQL. Jobs of 20 ms note their start and their end in a ledger
that no fault reaches; SQL over it and the queue's own tables makes the account. Ours have one attempt each. Recovery is
faster than in production: leases expire after 5 s, our sweeps, which run each minute, come every 5 s, and so does
pgqueuer's look for stale jobs. A stand-in for SQS gives a killed worker's messages to the next at once, and a host that
ends is started again at once. Our lane is checked every 10 ms, which counts in our jobs' waits.
"""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, redirect_stdout, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any, NamedTuple

import psycopg

from bench.job_types import BENCH_JOB_TYPES, OF_A_HOST
from bench.peers.peer import HERE, INTERPRETER
from bench.ratio import Ratio
from bench.stage.job_plant import as_url, own_database, start_worker
from signalbox.engine_pack import ENGINE
from signalbox.errors import Unavailable
from signalbox.invocation import Invocation
from signalbox.migrate import migrations
from signalbox.postgres.connection import Connection
from signalbox.submit.insert import submit
from signalbox.submit.new_job import NewJob
from signalbox.testing.aws import AwsStandIn
from signalbox_laptop.aws import client
from signalbox_laptop.postgres.embedded import EmbeddedPostgres
from tests.support.answer_cutter import AnswerCutter
from tests.support.job_crowd import JobCrowd

JOB_SECONDS, BATCH, READERS = 0.02, 10, 4
SWEEP_SECONDS, PATIENCE_SECONDS = 5.0, 40.0
CUTS = cycle((b"claim_jobs", b"end_attempts"))  # a claim is the start, too
LEDGER = """
    CREATE TABLE IF NOT EXISTS notes (job text, host int, what text, at timestamptz DEFAULT clock_timestamp());
    CREATE TABLE IF NOT EXISTS queued (job text, submitted_at timestamptz, state text, charged int);
    TRUNCATE notes, queued;
"""
BOOKS = """
    SELECT greatest(count(*), %(jobs)s), count(*) FILTER (WHERE state = 'completed'),
        count(*) FILTER (WHERE state = 'failed'),
        greatest(count(*), %(jobs)s) - count(*) FILTER (WHERE state <> 'open'),
        count(*) FILTER (WHERE ends > 1), coalesce(sum(greatest(charged - coalesce(starts, 0), 0)), 0)::int,
        count(*) FILTER (WHERE state = 'completed' AND coalesce(ends, 0) = 0),
        coalesce(percentile_cont(0.95) WITHIN GROUP (ORDER BY extract(epoch FROM began - submitted_at) * 1000), 0)
    FROM queued LEFT JOIN (
        SELECT job, min(at) AS began, count(*) FILTER (WHERE what = 'start') AS starts,
            count(*) FILTER (WHERE what = 'end') AS ends
        FROM notes GROUP BY job
    ) AS noted USING (job)
"""
# Expire leases that no live worker holds, and end waits for a delay, or for a message that got lost.
RUN_OUT = """
    UPDATE signalbox.jobs SET lease_expires_at = now()
    WHERE status = 'running' AND split_part(worker_id, '/', 1) <> ALL (%s)
        AND coalesce(heartbeat_at, started_at) < now() - interval '5 s'
"""
FALL_DUE = """
    UPDATE signalbox.jobs SET scheduled_for = now(), send_at = now()
    WHERE send_at > now() AND (status = 'pending' OR status = 'queued' AND updated_at < now() - interval '5 s')
"""
END_BACKENDS = """
    SELECT pg_terminate_backend(pid) FROM (
        SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND application_name <> 'cell' LIMIT %s
    ) AS theirs
"""


class Ours:
    """Run our workers, a lane between them, and the sweeps in this process."""

    name, table = "signalbox", b"signalbox.jobs"
    left = "SELECT EXISTS (SELECT FROM signalbox.jobs WHERE completed_at IS NULL)"
    jobs = """
        SELECT j.id::text, j.created_at,
            CASE WHEN j.status = 'completed' THEN 'completed' WHEN d IS NULL THEN 'open' ELSE 'failed' END,
            (SELECT count(*) FROM signalbox.job_executions AS x WHERE x.job_id = j.id AND x.status <> 'released')
        FROM signalbox.jobs AS j LEFT JOIN signalbox.dead_letter_jobs AS d ON d.original_job_id = j.id
    """

    def __init__(self, dsn: str, workers_dsn: str, ledger: str, hosts: int, stack: ExitStack) -> None:
        self._dsn, self._db = dsn, psycopg.connect(dsn, autocommit=True)
        migrations.apply(self._db, [ENGINE], "bench")
        with redirect_stdout(io.StringIO()):  # its log is not shown
            self._engine = start_worker(as_url(dsn))
        stack.callback(self._engine.close)
        payload = {"ledger": ledger, "seconds": JOB_SECONDS}
        self._new = NewJob(job_type="wait_and_note", max_attempts=1, payload=payload)
        self._lanes = stack.enter_context(AwsStandIn())
        vars(self._engine.resources.clients)["sqs"] = client("sqs", self._lanes.url)
        starts = Path(os.devnull)
        self._crowd = JobCrowd(workers_dsn, self._lanes.url, starts, hosts, 1, BENCH_JOB_TYPES, most_copies=1)
        stack.callback(self._crowd.stop)
        self._sweep()

    def submit(self, number: int) -> int:
        """Submit jobs, and return how many were submitted."""
        try:
            if self._db.closed:
                self._db = psycopg.connect(self._dsn, autocommit=True)
            new = submit(self._db, self._engine.resources.job_types, [self._new] * number, datetime.now(UTC))
        except psycopg.Error:
            return 0
        self._crowd.types |= {job.id: job.job_type for job in new}
        self._crowd.put([job.id for job in new])
        return number

    def turn(self) -> None:
        self._crowd.turn(BATCH)
        if monotonic() > self._swept + SWEEP_SECONDS:
            self._sweep()
        self._crowd.put([message["job_id"] for message in self._lanes.take()])

    def _sweep(self) -> None:
        """Sweep once; the next sweep finds what this one has not."""
        self._swept = monotonic()
        with suppress(psycopg.Error, Unavailable), redirect_stdout(io.StringIO()):
            with psycopg.connect(self._dsn, autocommit=True) as db:
                db.execute(RUN_OUT, (self._crowd.at_work,))
                db.execute(FALL_DUE)
            for task in ("rescue_jobs", "dispatch_jobs"):
                invocation = Invocation.of(f"sweep-{self._swept}", datetime.now(UTC), 300)
                self._engine.run_task({"task": task, "force": True}, invocation)

    def kill(self) -> bool:
        """Kill a worker, and say whether one was at work."""
        before = len(self._crowd.killed)
        self._crowd.kill_one()
        return len(self._crowd.killed) > before


class Theirs:
    """Run pgqueuer's hosts, and a process that submits."""

    name, table = "pgqueuer", b"pgqueuer"
    left = "SELECT EXISTS (SELECT FROM pgqueuer)"
    jobs = """
        SELECT job_id::text, min(l.created), CASE WHEN bool_or(l.status = 'successful') THEN 'completed'
                WHEN bool_or(q.id IS NOT NULL) THEN 'open' ELSE 'failed' END, 0
        FROM pgqueuer_log AS l LEFT JOIN pgqueuer AS q ON q.id = l.job_id GROUP BY job_id
    """

    def __init__(self, dsn: str, _: str, ledger: str, hosts: int, stack: ExitStack) -> None:
        command, pipe = [str(INTERPRETER), str(HERE / "cell_peer.py")], subprocess.PIPE
        self._work = [*command, "work", as_url(dsn), ledger, str(JOB_SECONDS), str(OF_A_HOST)]
        self._submitter = subprocess.Popen([*command, "submit", as_url(dsn)], stdin=pipe, stdout=pipe, text=True)
        self._number, self._hosts = hosts, list[subprocess.Popen[bytes]]()
        stack.callback(self._stop)

    def submit(self, number: int) -> int:
        assert self._submitter.stdin
        assert self._submitter.stdout
        print(number, file=self._submitter.stdin, flush=True)
        return int(self._submitter.stdout.readline())

    def turn(self) -> None:
        self._hosts = [host for host in self._hosts if host.poll() is None]
        while len(self._hosts) < self._number:
            self._hosts.append(subprocess.Popen(self._work, stderr=subprocess.DEVNULL))

    def kill(self) -> bool:
        self._hosts[0].kill()
        return True

    def _stop(self) -> None:
        processes: list[subprocess.Popen[Any]] = [*self._hosts, self._submitter]
        for process in processes:
            process.kill()
            process.communicate()


@dataclass(frozen=True, slots=True)
class Trial:
    """Describe a system in its cell."""

    postgres: EmbeddedPostgres
    system: Ours | Theirs
    cutter: AnswerCutter
    held: ExitStack  # resources of the fault

    def connect(self) -> Connection:
        return psycopg.connect(self.postgres.dsn, autocommit=True, application_name="cell")

    def is_left(self) -> bool:
        with suppress(psycopg.Error), self.connect() as db:
            return bool(db.execute(self.system.left).fetchall()[0][0])
        return True


def end_backends(trial: Trial) -> None:
    with trial.connect() as db:
        db.execute(END_BACKENDS, (1000,))


def take_connections(trial: Trial) -> None:
    """Take all of max_connections: first the free ones, then those of others, as each is ended."""
    own, until = trial.held.enter_context(closing(trial.connect())), monotonic() + 2
    while monotonic() < until:
        try:
            trial.held.enter_context(closing(trial.connect()))
        except psycopg.OperationalError:
            if own.execute(END_BACKENDS, (1,)).rowcount == 0:
                return


def kill(trial: Trial) -> bool:
    return trial.system.kill()


def hold_snapshot(trial: Trial) -> Connection:
    """Open a transaction that keeps its snapshot."""
    db = trial.held.enter_context(closing(trial.connect()))
    db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    db.execute(b"SELECT count(*) FROM " + trial.system.table)
    return db


def read(trial: Trial) -> None:
    """Scan the table from now on, each reader in one transaction."""
    over = Event()

    def scan(db: Connection) -> None:
        while not over.wait(0.05):
            db.execute(b"SELECT count(*) FROM " + trial.system.table)

    for _ in range(READERS):
        reader = Thread(target=scan, args=(hold_snapshot(trial),))
        reader.start()
        trial.held.callback(reader.join)
        trial.held.callback(over.set)


def cut(trial: Trial) -> None:
    """Cut the next answer of the kind whose turn it is, after its commit."""
    trial.cutter.cut_next(next(CUTS))


@dataclass(frozen=True, slots=True)
class Cell:
    """Describe a load, and which fault comes at which second of it."""

    name: str
    trouble: Mapping[float, Callable[[Trial], object]] = field(default_factory=dict)
    jobs: int = 1200
    seconds: float = 12
    hosts: int = 2
    peer: bool = True
    compared: bool = False


CELLS = (
    Cell("Postgres restarted", {4: lambda trial: trial.postgres.restart()}),
    Cell("all backends ended twice", {4: end_backends, 8: end_backends}),
    Cell("all connections taken for 5 s", {4: take_connections, 9: lambda trial: trial.held.close()}),
    Cell("a host killed", {4: kill}),
    Cell("a host killed every 4 s", {2: kill, 6: kill, 10: kill}),
    Cell("1.5 times the load of one host", jobs=round(1.5 * 8 * OF_A_HOST / JOB_SECONDS), seconds=8, hosts=1),
    Cell("a burst", jobs=3000, seconds=0),
    Cell("a transaction held open", {0: hold_snapshot}, compared=True),
    Cell(f"{READERS} readers in long transactions", {0: read}, compared=True),
    Cell("answers cut after their commit", dict.fromkeys((n / 4 for n in range(4, 44)), cut), peer=False),
)


class Books(NamedTuple):
    """Count what became of a cell's jobs."""

    submitted: int
    completed: int
    failed: int
    lost: int
    twice: int
    unstarted: int  # charged attempts
    unproved: int  # completed, though their code did not end
    p95: float
    seconds: float  # from the load's end until all is done


def measure(dsn: str) -> list[Ratio]:
    ratios = []
    print("cells: recovery is with leases of 5 s and sweeps every 5 s, in place of a minute each")
    with own_database(dsn) as ledger, psycopg.connect(ledger, autocommit=True) as notes:
        for cell in CELLS:
            print(f"\n{cell.name}\n{'':10} submitted completed failed  lost twice unstarted seconds p95 ms", flush=True)
            ours = _play(cell, Ours, ledger, notes)
            theirs = _play(cell, Theirs, ledger, notes) if cell.peer else ours
            # Only a killed host may cost jobs: its batch at most, and unstarted attempts of those that it runs at once.
            killed = list(cell.trouble.values()).count(kill)
            wrong = ours.lost or ours.twice or ours.unproved
            if wrong or ours.failed > BATCH * killed or ours.unstarted > OF_A_HOST * killed:
                raise RuntimeError(f"the books of '{cell.name}' do not close: {ours}")
            if cell.compared:
                ratios.append(Ratio(f"p95 of submit to start, {cell.name}", "pgqueuer", ours.p95, theirs.p95))
    return ratios


def _play(cell: Cell, make: type[Ours | Theirs], ledger: str, notes: Connection) -> Books:
    notes.execute(LEDGER)
    with TemporaryDirectory(prefix="sb-cell-") as home, ExitStack() as stack:
        postgres = EmbeddedPostgres(Path(home))
        stack.callback(postgres.stop)
        cutter = stack.enter_context(AnswerCutter(postgres.start()))
        system = make(postgres.dsn, postgres.dsn if cell.peer else cutter.dsn, ledger, cell.hosts, stack)
        trial = Trial(postgres, system, cutter, stack.enter_context(ExitStack()))
        system.submit(10 * BATCH)  # so that the hosts have started; these are not counted
        until = monotonic() + PATIENCE_SECONDS
        while trial.is_left() and monotonic() < until:
            system.turn()
        began, seconds = datetime.now(UTC), _run(cell, trial)
        trial.held.close()
        if cut in cell.trouble.values() and len(set(cutter.cut)) < 2:
            raise RuntimeError(f"answers to {set(cutter.cut)} alone were cut")
        with trial.connect() as db:
            rows = [row for row in db.execute(system.jobs).fetchall() if row[1] > began]
    notes.cursor().executemany("INSERT INTO queued VALUES (%s, %s, %s, %s)", rows)
    books = Books._make((*notes.execute(BOOKS, {"jobs": cell.jobs}).fetchall()[0], seconds))
    print(
        f"{make.name:10} {books.submitted:9,} {books.completed:9,} {books.failed:6} {books.lost:5} {books.twice:5}"
        f" {books.unstarted if make is Ours else '-':>9} {seconds:7.1f} {books.p95:6.0f}",
        flush=True,
    )
    return books


def _run(cell: Cell, trial: Trial) -> float:
    """Submit evenly; return the seconds from the last submit until all is done, or the patience is over."""
    planned, submitted, looked, began, loaded, left = dict(cell.trouble), 0, 0.0, monotonic(), 0.0, True
    while left and (now := monotonic()) < (loaded or began + cell.seconds) + PATIENCE_SECONDS:
        due_now = [at for at in planned if at <= now - began]
        for at in [at for at in due_now if planned[at](trial) is not False]:
            del planned[at]
        due = cell.jobs if now - began >= cell.seconds else int(cell.jobs * (now - began) / cell.seconds)
        if submitted < due:
            submitted += trial.system.submit(due - submitted)
        elif submitted == cell.jobs and not planned and now > looked + 0.1:
            loaded, looked = loaded or now, now
            left = trial.is_left()
        trial.system.turn()
        sleep(0.01)
    return monotonic() - loaded
