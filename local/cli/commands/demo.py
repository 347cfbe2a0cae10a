"""`signalbox demo`: a laptop stack of its own in a temporary folder, sample data, every rule fired once at a fixed
instant, and a table of what happened. Nothing stays behind; any failed run makes it fail.
"""

from __future__ import annotations

import time
from argparse import Namespace
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from local.cli import demo_outcome
from local.cli.checks_deployed import failed_invocations
from local.cli.command import Example
from local.cli.command_parser import CommandParser
from local.cli.commands.up import add_deployment
from local.cli.demo_outcome import Outcome, Planted
from local.cli.instant import show_instant
from local.cli.laptop_control import LaptopControl
from local.cli.log_groups import LogReader, find_groups
from local.cli.log_line import LogRecord
from local.cli.options import add_output
from local.cli.runs import fetch_runs
from local.cli.steps import Steps
from local.cli.table import table
from local.cli.target import Target
from local.cli.terminal import console, print_json, print_lines, say, width_of
from local.home import State
from local.stack import ROOT, Options, up_attached

EXAMPLES = (
    Example("demo", "see a stack at work; a `signalbox up` beside it is not disturbed"),
    Example("demo --json", "what happened, for programs"),
    Example("demo --parameter DisabledTasks=sweep_runs", "see how a failure looks"),
)
# When most rules are due at once. The sample data are made for it.
AT = datetime(2026, 1, 5, 2, 30, tzinfo=UTC)
SAMPLES = ROOT / "local" / "samples"
_PATIENCE_SECONDS = 60.0
_INTERRUPTED = 130


def configure(parser: CommandParser) -> None:
    add_deployment(parser)
    add_output(parser)


@dataclass(slots=True)
class _Demo:
    """Owns what is known of the demo so far."""

    steps: Steps
    began: datetime
    outcome: Outcome | None = None

    def perform(self, state: State) -> None:
        """All that is done with the stack while it is up."""
        target, control = Target(state.stack, state.endpoint), LaptopControl(state.endpoint)
        self.steps.begin("loading sample data")
        planted = _load_samples(state.database)
        self.steps.begin(f"firing every rule for {show_instant(AT)}")
        fired = control.tick(AT, None, due=False)
        self.steps.begin("waiting for all that follows")
        idle = bool(control.idle(_PATIENCE_SECONDS)["idle"])
        self.steps.begin("reading the ledger")
        self.outcome = Outcome(
            fired=fired,
            runs=demo_outcome.caused(fetch_runs(target, None)[0], planted),
            planted=planted,
            idle=idle,
            failed_invocations=_failed_invocations(target),
            errors=_errors(target, self.began),
        )
        self.steps.begin("stopping")
        control.stop()


def run(args: Namespace) -> int:
    began = time.monotonic()
    with Steps() as steps, TemporaryDirectory(prefix="signalbox-demo-") as home:
        demo = _Demo(steps, datetime.now(UTC))
        options = Options(
            home=Path(home),
            template=args.template,
            port=0,
            clock=False,
            durable=False,
            parameters=dict(args.parameter),
        )
        up_attached(options, steps.begin, demo.perform)
    if demo.outcome is None:
        return _INTERRUPTED
    return _report(demo.outcome, time.monotonic() - began, as_json=args.json)


def _load_samples(database: str) -> Planted:
    import psycopg

    with psycopg.connect(database, autocommit=True) as connection:
        for sample in sorted(SAMPLES.glob("*.sql")):
            connection.execute(sample.read_bytes())
        ids = connection.execute("SELECT id, status = 'running' FROM signalbox.job_history").fetchall()
    return Planted(last_id=max((row[0] for row in ids), default=0), running={id_ for id_, runs in ids if runs})


def _failed_invocations(target: Target) -> int:
    sqs = target.client("sqs")
    return failed_invocations(sqs, sqs.get_queue_url(QueueName=f"{target.stack}-failed-invocations")["QueueUrl"])


def _errors(target: Target, since: datetime) -> list[LogRecord]:
    """Reports of invocations that went wrong: an error that no run tells of, such as a crash at the start."""
    records = LogReader(target.client("logs"), find_groups(target, None)).read(since)
    return [record for record in records if record.is_of_interest and record.is_report]


def _report(outcome: Outcome, seconds: float, *, as_json: bool) -> int:
    failures = outcome.failures()
    if as_json:
        print_json({**_as_json(outcome), "failures": failures, "seconds": round(seconds, 1)})
    else:
        out = console()
        print_lines(out, table(demo_outcome.COLUMNS, demo_outcome.rows(outcome), width_of(out)))
        print(_conclusion(outcome, len(failures), seconds))
    for failure in failures:
        say(f"signalbox: demo: {failure}")
    return 1 if failures else 0


def _as_json(outcome: Outcome) -> dict[str, Any]:
    return {"at": AT.isoformat(), "fired": list(outcome.fired), "runs": list(outcome.runs)}


def _conclusion(outcome: Outcome, failures: int, seconds: float) -> str:
    ran = sum(run["status"] != "missed" for run in outcome.runs)
    verdict = "see below for what failed" if failures else "nothing failed"
    fired = f"{len(outcome.fired)} rules fired for {show_instant(AT)}"
    return f"{fired}: {ran} runs, {outcome.missed()} missed slots found, {verdict}; {seconds:.1f} s in all"
