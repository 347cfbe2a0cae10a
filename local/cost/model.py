"""The model: each thing that AWS charges a stack for, as a quantity of a month.

One function a service. Standing parts are there without any job; all others grow with the jobs. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from local.cost.bill import Bill, Item, item, present
from local.cost.figures import figures
from local.cost.load import EVENTS_OF_A_JOB, Load, Work
from local.cost.stack import Function, Stack

_GB = 1e9
DAYS_KEPT = 30  # signalbox.settings.Settings.job_retention_days, which a test compares
_MILLION = 1e6


def bill(stack: Stack, load: Load, name: str = "this stack") -> Bill:
    """What the stack costs with that load."""
    work = Work(load, stack)
    services = (functions, queues, events, logs, metrics, watching, traces, keys_and_secrets, network, database)
    return Bill(name, present(one for service in services for one in service(work)), tuple(_notes(work)))


def functions(work: Work) -> Iterator[Item]:
    """Requests and GB-seconds: of the workers, of the scheduled tasks, of cold starts."""
    stack, known = work.stack, figures()
    yield _requests("worker", work.invocations, "LaneBatchSize")
    yield _seconds("worker", work.worker, work.invocations * work.batch_ms / 1000, "MemorySize, LaneBatchSize")
    for logical_id, fires in _fires(stack).items():
        function, name = stack.functions[logical_id], logical_id.removesuffix("Function").lower()
        yield _requests(f"scheduled tasks ({name})", fires, "DisabledTasks, the rules")
        seconds = fires * known["task_ms"] / 1000
        yield _seconds(f"scheduled tasks ({name})", function, seconds, "the rules")
        yield _seconds(f"cold starts ({name})", function, _cold_starts() * known["init_ms"] / 1000)
    starts = _cold_starts() * ceil(work.workers) if work.jobs_a_second else 0
    yield _seconds("cold starts (worker)", work.worker, starts * known["init_ms"] / 1000)


def queues(work: Work) -> Iterator[Item]:
    """Sends, receives and deletes of ten messages at most; and what pollers ask in vain, day and night."""
    stack, known = work.stack, figures()
    sent = work.load.submitted_at_once
    sends = work.jobs_a_month / sent * ceil(sent / known["messages_a_receive"])
    taken = work.invocations * ceil(work.batch / known["messages_a_receive"])
    in_vain = known["pollers"] * known["hours_a_month"] * 3600 / known["long_poll_seconds"]
    yield item("SQS", "messages sent", "sqs.requests", sends, "submits of many at once")
    yield item("SQS", "messages received and deleted", "sqs.requests", 2 * taken, "LaneBatchSize")
    yield item("SQS", "the same messages, for their groups", "sqs.groups", sends + 2 * taken)
    polls = (len(stack.mappings) - 1) * in_vain + max(0.0, in_vain - taken)
    yield item("SQS", "empty receives of the mappings", "sqs.requests", polls)


def events(work: Work) -> Iterator[Item]:
    """Rules on a schedule cost nothing; each change of a job that is published does."""
    told = work.jobs_a_month * EVENTS_OF_A_JOB[work.stack.events]
    yield item("EventBridge", "changes of jobs published", "events.custom", told, "JobEvents")


def logs(work: Work) -> Iterator[Item]:
    """A line a batch or run, and Lambda's own two."""
    known, fires = figures(), sum(_fires(work.stack).values())
    of_runs = fires * (known["run_log_bytes"] + known["platform_log_bytes"])
    of_work = work.invocations * (known["batch_log_bytes"] + known["platform_log_bytes"])
    kept = (of_runs + of_work) * work.stack.log_days / 30 * known["log_share_stored"]
    yield item("CloudWatch", "logs of scheduled tasks", "logs.ingested", of_runs / _GB, "LogLevel")
    yield item("CloudWatch", "logs of workers", "logs.ingested", of_work / _GB, "LogLevel, LaneBatchSize")
    yield item("CloudWatch", "logs kept", "logs.stored", kept / _GB, "LogRetentionDays")


def metrics(work: Work) -> Iterator[Item]:
    """Each name by each set of dimensions is one, paid for the hours in which it is sent."""
    known, stack = figures(), work.stack
    by_task = sum(known["run_metrics"] * rule.hours_a_day / 24 for rule in stack.rules)
    always = known["sweep_metrics"] if _fires(stack) else 0
    hours = min(work.load.busy_hours, work.load.jobs_a_day) / 24
    of_jobs = known["batch_metrics"] * (1 + work.load.job_types) * hours
    yield item("CloudWatch", "metrics of each task", "metrics", by_task, "the rules")
    yield item("CloudWatch", "metrics of the stack and its lanes", "metrics", always)
    yield item("CloudWatch", "metrics of job types", "metrics", of_jobs, "job types")
    yield item("CloudWatch", "metrics of the worker's version", "metrics", known["version_metrics"] * hours)
    yield item("CloudWatch", "metrics from filters of logs", "metrics", stack.metrics_from_logs)


def watching(work: Work) -> Iterator[Item]:
    """Alarms and the dashboard."""
    stack = work.stack
    yield item("CloudWatch", "alarms", "alarms", stack.alarm_metrics)
    yield item("CloudWatch", "alarms over alarms", "alarms.composite", stack.composite_alarms)
    yield item("CloudWatch", "dashboard", "dashboards", stack.dashboards)


def traces(work: Work) -> Iterator[Item]:
    """The first of each second, and a share of the others."""
    known, stack = figures(), work.stack
    seconds = known["hours_a_month"] * 3600
    fires = sum(count for name, count in _fires(stack).items() if stack.functions[name].traced)
    rate = (fires + work.invocations * work.worker.traced) / seconds
    first = min(rate, known["traces_a_second"])
    recorded = first + known["traced_share"] * (rate - first)
    yield item("X-Ray", "traces", "traces", recorded * seconds, "Tracing")


def keys_and_secrets(work: Work) -> Iterator[Item]:
    """SQS asks KMS anew, for each role that sends or receives, when a queue's data key has been used long enough."""
    known, stack = figures(), work.stack
    asked = 2 * known["kms_producers"] + 1
    encrypted = [queue.reuse_seconds for queue in stack.queues.values() if queue.reuse_seconds]
    requests = sum(known["hours_a_month"] * 3600 / reuse * asked for reuse in encrypted)
    environments = len(_fires(stack)) + (ceil(work.workers) if work.jobs_a_second else 0)
    yield item("KMS", "keys", "kms.keys", stack.keys)
    yield item("KMS", "requests of queues, at most", "kms.requests", requests, "KmsDataKeyReusePeriodSeconds")
    yield item("Secrets Manager", "secrets", "secrets", stack.secrets)
    yield item("Secrets Manager", "reads, one a cold start", "secrets.requests", _cold_starts() * environments)


def network(work: Work) -> Iterator[Item]:
    """Interface endpoints, where the stack makes them; their data is that of calls of AWS."""
    known, zones = figures(), work.stack.endpoint_zones
    if not zones:
        return
    told = work.jobs_a_month * EVENTS_OF_A_JOB[work.stack.events]
    calls = (work.jobs_a_month + told) / known["messages_a_receive"] + sum(_fires(work.stack).values())
    yield item("VPC", "interface endpoints", "endpoint.hours", zones * known["hours_a_month"], "Database, SubnetIds")
    yield item("VPC", "data through them", "endpoint.data", calls * known["call_bytes"] / _GB)


def database(work: Work) -> Iterator[Item]:
    """An Aurora that the stack makes. One that is there already is paid for; the notes say what it gets to do."""
    known, stack = figures(), work.stack
    if stack.least_acu is None:
        return
    awake = max(stack.least_acu, known["least_acu"] if _fires(stack) else 0)
    acu = max(awake, cores_of_database(work) * known["acu_a_core"] / known["database_use"])
    ios = max(commits(work), wal_bytes(work) / known["io_bytes"])
    hours = known["hours_a_month"]
    yield item(
        "Aurora",
        "capacity",
        "aurora.capacity",
        acu * stack.instances * hours,
        "DatabaseMinCapacity, DatabaseStandby, the rules of each minute",
    )
    yield item("Aurora", "storage", "aurora.storage", stored_gb(work), "SIGNALBOX_JOB_RETENTION_DAYS")
    yield item("Aurora", "writes", "aurora.io", ios, "LaneBatchSize")
    if stack.proxied:
        charged = max(acu, known["proxy_least_acu"])
        yield item("RDS Proxy", "capacity", "proxy.capacity", charged * hours, "DatabaseProxy")


def cores_of_database(work: Work) -> float:
    """That jobs keep at work in the database, while they come."""
    known = figures()
    of_one = known["submit_server_ms"] + known["job_server_ms"] + known["batch_server_ms"] / work.batch
    own = known["transactional_job_server_ms"] if work.load.job_ms is None else 0.0
    return work.jobs_a_second * (of_one + own) / 1000


def commits(work: Work) -> float:
    """That wait for a flush, in a month: of submits, claims and ends."""
    known = figures()
    own = known["transactional_job_fsyncs"] * work.jobs_a_month if work.load.job_ms is None else 0.0
    submits = work.jobs_a_month / work.load.submitted_at_once
    return submits * known["submit_fsyncs"] + work.invocations * known["lone_job_fsyncs"] + own


def wal_bytes(work: Work) -> float:
    """In a month, without whole pages."""
    known, load = figures(), work.load
    submitted = known["submit_wal_bytes" if load.submitted_at_once == 1 else "submit_in_bulk_wal_bytes"]
    done = known["transactional_job_wal_bytes" if load.job_ms is None else "job_wal_bytes"]
    return work.jobs_a_month * (submitted + done)


def stored_gb(work: Work) -> float:
    """Of jobs and attempts, at the end of the time that they are kept."""
    return work.load.jobs_a_day * DAYS_KEPT * figures()["job_stored_bytes"] / _GB


def _notes(work: Work) -> Iterator[str]:
    if work.stack.least_acu is None:
        yield (
            f"your database is not in the sum; it writes {wal_bytes(work) / _GB:,.1f} GB of WAL a month, commits "
            f"{commits(work) / _MILLION:,.1f} million times, keeps {stored_gb(work):,.1f} GB of jobs, and has "
            f"{cores_of_database(work):.2f} of a core at work while they come"
        )
    if work.stack.endpoint_zones:
        yield f"a NAT gateway in two zones would cost ${_nat():,.2f} a month and its data; the stack makes none"
    if work.workers > work.lane.concurrency:
        yield (
            f"the lane {work.load.lane} has {work.lane.concurrency} workers at most, and this load keeps "
            f"{work.workers:,.1f} busy: jobs would pile up; raise {work.load.lane.capitalize()}LaneConcurrency"
        )


def _nat() -> float:
    return item("VPC", "NAT", "nat.hours", 2 * figures()["hours_a_month"]).usd


def _fires(stack: Stack) -> dict[str, float]:
    """Of rules in a month, by function."""
    found: dict[str, float] = {}
    for rule in stack.rules:
        a_month = rule.fires_a_day * figures()["hours_a_month"] / 24
        found[rule.function] = found.get(rule.function, 0.0) + a_month
    return {name: fires for name, fires in found.items() if fires}


def _cold_starts() -> float:
    """Of one execution environment that is always in use, in a month."""
    return figures()["environments_a_day"] * figures()["hours_a_month"] / 24


def _requests(what: str, number: float, moved_by: str) -> Item:
    return item("Lambda", f"requests: {what}", "lambda.requests", number, moved_by)


def _seconds(what: str, function: Function, seconds: float, moved_by: str = "") -> Item:
    price = f"lambda.{function.architecture}"
    return item("Lambda", f"time: {what}", price, seconds * function.memory_mb / 1024, moved_by)
