"""`signalbox demo` starts a laptop stack in a temporary folder and fires every rule once at a fixed instant.

It loads sample data, submits three jobs, and prints a few lines of what came of it for each pack, or with --all also
each run and job. It removes the stack afterwards. It fails if a run failed, or if a job did not complete in the end.
"""

from __future__ import annotations

import time
from argparse import Namespace
from dataclasses import dataclass, field, replace
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
from signalbox_laptop.packs import load_stories, read_stories
from signalbox_laptop.up import StackOptions, up_attached

EXAMPLES = (
    Example("demo", "run the demo; it does not disturb a stack of `signalbox up`"),
    Example("demo --all", "list every run and job too"),
    Example("demo --json", "print the results as JSON"),
    Example("demo --parameter ForecastsSettings={none}", "see what a failure looks like"),
)
# At this instant most rules are due at once. The sample data are made for it.
AT = datetime(2026, 1, 5, 2, 30, tzinfo=UTC)
_SAMPLES = [Path(signalbox_laptop.__file__).with_name("samples") / f"{name}.sql" for name in ("engine", "jobs")]
_PATIENCE_SECONDS = 60.0
_INTERRUPTED = 130


def configure(parser: CommandParser) -> None:
    parser.add_argument("--all", action="store_true", help="list every run and job too")
    add_deployment(parser)
    add_output(parser)


@dataclass(slots=True)
class _Demo:
    """Track what is known of the demo so far."""

    steps: Steps
    began: datetime
    jobs: DemoJobs
    of_packs: PackJobs
    packs: list[str] = field(default_factory=list)
    stories: dict[str, list[str]] = field(default_factory=dict)
    outcome: TickResult | None = None

    @property
    def submitted(self) -> int:
        """Return how many jobs there were, of the demo and of the packs' stories."""
        return len(self.jobs.ids) + self.of_packs.counts.total()

    def perform(self, state: StackState) -> None:
        """Do all of the demo's work while the stack is up."""
        target, control = Target(state.stack, state.endpoint), LaptopControl(state.endpoint)
        self.steps.begin("submitting jobs, and loading sample data")
        self.jobs.submit(state, target)
        self.packs = load_stories(state, AT)
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
        self.stories = _stories(state, self.packs)
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
    return _report(demo, demo.outcome, time.monotonic() - began, args)


def _load_samples(state: StackState) -> Before:
    import psycopg

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


def _stories(state: StackState, packs: list[str]) -> dict[str, list[str]]:
    import psycopg

    with psycopg.connect(state.database) as connection:
        return read_stories(connection, packs)


def _report(demo: _Demo, outcome: TickResult, seconds: float, args: Namespace) -> int:
    failures = outcome.failures() + demo.jobs.failures() + demo.of_packs.failures()
    if args.json:
        found = {"jobs": demo.jobs.as_json(), "pack_jobs": demo.of_packs.as_json(), "stories": demo.stories}
        print_json({**_as_json(outcome), **found, "failures": failures, "seconds": round(seconds, 1)})
    else:
        _print(demo, outcome, every=args.all)
        print(f"{len(outcome.fired)} rules fired for {show_instant(AT)}, {demo.submitted} jobs submitted:")
        print(f"{outcome.counted()}; {seconds:.1f} s in all")
        print("`make up` keeps a stack up, and prints a link to its pages, which logs in")
    for failure in failures:
        say(f"signalbox: demo: {failure}")
    return 1 if failures else 0


def _print(demo: _Demo, outcome: TickResult, *, every: bool) -> None:
    out = console()
    if every:
        print_lines(out, table(COLUMNS, rows(outcome), width_of(out)))
        print()
    print_lines(out, table(demo_jobs.COLUMNS, demo.jobs.rows(), width_of(out)))
    print()
    if every and demo.of_packs.counts:
        print_lines(out, table(pack_jobs.COLUMNS, demo.of_packs.rows(), width_of(out)))
        print()
    for name, lines in demo.stories.items():
        for place, line in enumerate(lines):
            print(f"{'' if place else name:12}{line}")
    print()


def _as_json(outcome: TickResult) -> dict[str, Any]:
    return {"at": AT.isoformat(), "fired": list(outcome.fired), "runs": list(outcome.runs)}
