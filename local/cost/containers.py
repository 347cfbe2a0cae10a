"""The same jobs in containers that run all day, sized by the same measured throughput: what a stack is compared with.

Two of them: workers that read a queue in Postgres, as those of river, solid_queue or procrastinate do; and Celery's,
with a broker beside them and a process that sends what is due. Neither database nor alarms are in it, nor in what it is
compared with; so the same database serves either.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from local.cost.bill import Bill, Item, item, present
from local.cost.figures import figures
from local.cost.load import Work, batch_ms
from local.cost.stack import Function


def postgres_workers(work: Work) -> Bill:
    """Workers on a queue in Postgres, in public subnets."""
    return Bill("containers, queue in Postgres", present(_tasks("workers", workers(work))))


def celery(work: Work) -> Bill:
    """Celery: workers, one process that sends what is due, and a broker with a replica."""
    nodes = figures()["brokers"] * figures()["hours_a_month"]
    broker = item("ElastiCache", "broker", "broker", nodes)
    beside = [*_tasks("workers", workers(work)), *_tasks("the scheduler", 1), broker]
    return Bill("containers, Celery and Valkey", present(beside))


def workers(work: Work) -> int:
    """Tasks of the smallest size, for the hours in which jobs come; they stay up for the others."""
    known = figures()
    one = Function("container", int(known["container_cores"] * known["one_core_mb"]), "arm64", 0, False)
    own = work.job_ms if work.load.job_ms is not None else _own_ms(known["container_cores"])
    busy = work.jobs_a_second / work.batch * batch_ms(one, work.batch, own, "none") / 1000
    return max(int(known["container_least"]), ceil(busy / known["container_jobs_at_once"] / known["container_use"]))


def _own_ms(cores: float) -> float:
    known = figures()
    waits = known["transactional_job_server_ms"] + known["transactional_job_round_trips"] * known["round_trip_ms"]
    return known["transactional_job_cpu_ms"] / cores + waits


def _tasks(what: str, number: int) -> Iterator[Item]:
    known = figures()
    hours = number * known["hours_a_month"]
    yield item("Fargate", f"{what}: {number} of 0.25 vCPU", "fargate.cpu", hours * known["container_cores"])
    yield item("Fargate", f"{what}: memory", "fargate.memory", hours * known["container_gb"])
    yield item("Fargate", f"{what}: public addresses", "ipv4", hours)
