"""`signalbox demo` starts a laptop stack in a temporary folder and fires every rule once at a fixed instant.

It loads sample data, submits three jobs, and prints a table of runs and one of jobs. It removes the stack afterwards.
It fails if a run failed, or if a job did not complete in the end.
"""

from __future__ import annotations

import time
from argparse import Namespace
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import signalbox_laptop
from signalbox_cli.command import Example
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.commands.up import add_deployment
from signalbox_cli.options.shared import add_output
from signalbox_cli.progress import Steps
from signalbox_cli.stack import demo_jobs, pack_jobs
from signalbox_cli.stack.demo_jobs import DemoJobs, parameters_for
from signalbox_cli.stack.laptop_api import LaptopControl
from signalbox_cli.stack.pack_jobs import PackJobs
from signalbox_cli.stack.tick_results import gather
from signalbox_cli.target.target import Target
from signalbox_cli.terminal import console, print_json, print_lines, say, width_of
from signalbox_cli.views.table import table
from signalbox_cli.views.tick_page import COLUMNS, Before, TickResult, rows
from signalbox_cli.views.times import show_instant
from signalbox_laptop.home import StackState
from signalbox_laptop.packs import load_stories
from signalbox_laptop.up import StackOptions, up_attached

EXAMPLES = (
    Example("demo", "run the demo; it does not disturb a stack of `signalbox up`"),
    Example("demo --json", "print the results as JSON"),
    Example("demo --parameter ForecastsSettings={none}", "see what a failure looks like"),
)
# At this instant most rules are due at once. The sample data are made for it.
AT = datetime(2026, 1, 5, 2, 30, tzinfo=UTC)
_SAMPLES = [Path(signalbox_laptop.__file__).with_name("samples") / f"{name}.sql" for name in ("engine", "jobs")]
_PATIENCE_SECONDS = 60.0
_INTERRUPTED = 130


def configure(parser: CommandParser) -> None:
    add_deployment(parser)
    add_output(parser)


@dataclass(slots=True)
class _Demo:
    """Track what is known of the demo so far."""

    steps: Steps
    began: datetime
    jobs: DemoJobs
    of_packs: PackJobs
    outcome: TickResult | None = None

    def perform(self, state: StackState) -> None:
        """Do all of the demo's work while the stack is up."""
        target, control = Target(state.stack, state.endpoint), LaptopControl(state.endpoint)
        self.steps.begin("submitting jobs, and loading sample data")
        self.jobs.submit(state, target)
        before = _load_samples(state)
        self.steps.begin("redriving the dead letter")
        self.jobs.redrive(target)
        self.steps.begin(f"firing every rule for {show_instant(AT)}")
        fired = control.tick(AT, None, due=False)
        self.steps.begin("waiting for the runs")
        idle = bool(control.idle(_PATIENCE_SECONDS)["idle"])
        self.steps.begin("waiting for the jobs")
        self.jobs.finish(target)
        self.of_packs.finish(state.database)
        self.steps.begin("reading the ledger")
        outcome = gather(target, fired, before, at=AT, began=self.began, idle=idle)
        self.outcome = replace(outcome, failed_invocations=_failed_invocations(state))
        self.steps.begin("stopping")
        control.stop()


def run(args: Namespace) -> int:
    began = time.monotonic()
    with Steps() as steps, TemporaryDirectory(prefix="signalbox-demo-") as home, DemoJobs() as jobs:
        of_packs = PackJobs()
        demo = _Demo(steps, datetime.now(UTC), jobs, of_packs)
        options = StackOptions(
            home=Path(home),
            template=args.template,
            port=0,
            clock=False,
            durable=False,
            parameters={**parameters_for(args.template), **dict(args.parameter)},
        )
        up_attached(options, steps.begin, demo.perform)
    if demo.outcome is None:
        return _INTERRUPTED
    return _report(demo.outcome, jobs, of_packs, time.monotonic() - began, as_json=args.json)


def _load_samples(state: StackState) -> Before:
    import psycopg

    load_stories(state, AT)
    with psycopg.connect(state.database, autocommit=True) as connection:
        for sample in _SAMPLES:
            connection.execute(sample.read_bytes())
        ids = connection.execute("SELECT id, status = 'running' FROM signalbox.job_history").fetchall()
    return Before(last_id=max((row[0] for row in ids), default=0), lost={id_ for id_, runs in ids if runs})


def _failed_invocations(state: StackState) -> int:
    import psycopg

    statement = "SELECT count(*) FROM signalbox.dead_letter_jobs WHERE source = 'invocation'"
    with psycopg.connect(state.database) as connection:
        return sum(count for (count,) in connection.execute(statement))


def _report(outcome: TickResult, jobs: DemoJobs, of_packs: PackJobs, seconds: float, *, as_json: bool) -> int:
    failures = outcome.failures() + jobs.failures() + of_packs.failures()
    if as_json:
        found = {"jobs": jobs.as_json(), "pack_jobs": of_packs.as_json(), "failures": failures}
        print_json({**_as_json(outcome), **found, "seconds": round(seconds, 1)})
    else:
        out = console()
        print_lines(out, table(COLUMNS, rows(outcome), width_of(out)))
        print()
        print_lines(out, table(demo_jobs.COLUMNS, jobs.rows(), width_of(out)))
        print()
        if of_packs.counts:
            print_lines(out, table(pack_jobs.COLUMNS, of_packs.rows(), width_of(out)))
            print()
        print(f"{len(outcome.fired)} rules fired for {show_instant(AT)}, {len(jobs.ids)} jobs submitted:")
        print(f"{outcome.counted()}; {seconds:.1f} s in all")
        print("`make up` keeps a stack up, and prints a link to its pages, which logs in")
    for failure in failures:
        say(f"signalbox: demo: {failure}")
    return 1 if failures else 0


def _as_json(outcome: TickResult) -> dict[str, Any]:
    return {"at": AT.isoformat(), "fired": list(outcome.fired), "runs": list(outcome.runs)}
