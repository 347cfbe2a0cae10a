"""A load on a template, and what comes of it: the stack's bill, its standing part, and the containers beside it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from local.cost.bill import Bill
from local.cost.containers import celery, postgres_workers
from local.cost.load import Load, Work
from local.cost.model import bill
from local.cost.stack import Stack


@dataclass(frozen=True, slots=True)
class Estimate:
    """What `signalbox cost` shows."""

    work: Work
    bill: Bill
    standing: Bill
    beside: tuple[Bill, ...]
    free_tier: bool

    def load_fields(self) -> dict[str, Any]:
        """As given, and as derived."""
        derived = {
            "job_ms": round(self.work.job_ms, 3),
            "batch": round(self.work.batch, 3),
            "batch_ms": round(self.work.batch_ms, 3),
            "workers_busy": round(self.work.workers, 4),
        }
        return asdict(self.work.load) | derived


def estimate(stack: Stack, load: Load, *, free_tier: bool = False) -> Estimate:
    work = Work(load, stack)
    ours, standing = bill(stack, load), bill(stack, replace(load, jobs_a_day=0))
    beside = (postgres_workers(work), celery(work))
    if free_tier:
        ours, standing = ours.with_free_tier(), standing.with_free_tier()
    return Estimate(work, ours, standing, beside, free_tier)
