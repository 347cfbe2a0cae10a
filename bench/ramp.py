"""What a lane bears as the template has it, and what would keep up: simulated at three rates, three kinds of job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from bench.ramp_simulation import Ramp, Scene, database_ms, fitting, scene_of, simulate
from bench.ratio import Ratio
from local.cost.figures import figures
from local.cost.load import batch_ms, core_share
from local.cost.stack import Stack, read_stack
from local.stack import ROOT

RATES = (10, 1_000, 10_000)
_MOST_CONCURRENCY = 1_000  # that a mapping's MaximumConcurrency may be
_SPARE = 1.2


@dataclass(frozen=True, slots=True)
class Needs:
    """What keeps up with a stream once it is there, with a fifth to spare."""

    workers: int
    cores: float

    def met(self, scene: Scene) -> Scene | None:
        """The scene with as much of each; None where one lane can't have it."""
        if self.workers > _MOST_CONCURRENCY:
            return None
        lane = replace(scene.lane, concurrency=max(scene.lane.concurrency, self.workers))
        wider = replace(
            scene.limits,
            cores=max(scene.limits.cores, self.cores),
            connections=max(scene.limits.connections, self.workers),
            account=max(scene.limits.account, 2 * self.workers),
        )
        return replace(scene, lane=lane, limits=wider)


def needs(scene: Scene) -> Needs:
    """In full batches, as they are where jobs pile up."""
    jobs = min(scene.lane.batch_size, fitting(scene))
    took = batch_ms(scene.worker, jobs, scene.job_ms, scene.events) / 1000
    cores = scene.rate * (database_ms(scene, jobs) / jobs + scene.submit_server_ms) / 1000
    return Needs(max(2, ceil(scene.rate / jobs * took * _SPARE)), ceil(cores * _SPARE * 10) / 10)


def scenes(stack: Stack) -> list[tuple[str, Scene]]:
    """The lane normal at each rate, with each kind of job."""
    known, worker = figures(), stack.functions[stack.lane("normal").function]
    trips = known["transactional_job_round_trips"] * known["round_trip_ms"]
    own, server = known["transactional_job_cpu_ms"] / core_share(worker), known["transactional_job_server_ms"]
    kinds = {"no-op": (0.0, 0.0), "one statement": (own + server + trips, server), "100 ms": (100.0, 0.0)}
    return [
        (kind, scene_of(stack, "normal", rate=rate, job_ms=ms, job_server_ms=server_ms))
        for rate in RATES
        for kind, (ms, server_ms) in kinds.items()
    ]


def measure(_dsn: str) -> list[Ratio]:
    """`python -m bench ramp`: as it is deployed, and with what keeps up."""
    stack = read_stack(ROOT / "template.yaml", {})
    print(as_deployed(stack), keeping_up(stack), sep="\n\n")
    return []


def as_deployed(stack: Stack) -> str:
    head = "| jobs a second | each | backlog | workers | waited p50 | p95 | drained after | held back by |"
    rows = [_row(kind, scene, simulate(scene)) for kind, scene in scenes(stack)]
    return "\n".join([head, "| --- " * 8 + "|", *rows])


def _row(kind: str, scene: Scene, ramp: Ramp) -> str:
    return (
        f"| {scene.rate:,.0f} | {kind} | {ramp.most_backlog:,} | {ramp.most_workers} | {_seconds(ramp.wait(0.5))} | "
        f"{_seconds(ramp.wait(0.95))} | {_drained(ramp)} | {ramp.limited_by} |"
    )


def keeping_up(stack: Stack) -> str:
    """What it takes, and the wait that is left: that of the time in which workers become as many as that."""
    head = "| jobs a second | each | NormalLaneConcurrency | cores of the database | waited p50 | p95 | drained after |"
    rows = []
    for kind, scene in scenes(stack):
        needed = needs(scene)
        wider = needed.met(scene)
        said = f"| {scene.rate:,.0f} | {kind} | {needed.workers:,} | {needed.cores:.1f} |"
        if wider is None:
            rows.append(f"{said} one mapping has {_MOST_CONCURRENCY:,} at most | | |")
            continue
        ramp = simulate(wider)
        rows.append(f"{said} {_seconds(ramp.wait(0.5))} | {_seconds(ramp.wait(0.95))} | {_drained(ramp)} |")
    return "\n".join([head, "| --- " * 7 + "|", *rows])


def _seconds(seconds: float) -> str:
    return f"{seconds:,.2f} s" if seconds < 10 else f"{seconds:,.0f} s"


def _drained(ramp: Ramp) -> str:
    return "not within an hour" if ramp.drained_seconds is None else f"{ramp.drained_seconds:,.0f} s"
