"""Run the jobs that an SQS batch names to their ends, many of them side by side.

    read → claim → run → record → publish

Postgres is the truth, so a message is done once its job's state is recorded, whatever that is. Only unreadable messages
come back, until their dead-letter queue has them; an error of the batch brings back all of it.
"""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import psycopg

from signalbox.errors import DatabaseUnavailable
from signalbox.jobs.job_message import read_messages
from signalbox.packs.registries import JobTypeRegistry
from signalbox.worker.driver import Driver
from signalbox.worker.groups import TypeGroups
from signalbox.worker.visibility import bring_back

if TYPE_CHECKING:
    from signalbox.invocation import Invocation, Resources

# The groups of an execution environment, by its registry of job types, since tests have several in a process.
_groups: WeakKeyDictionary[JobTypeRegistry, TypeGroups] = WeakKeyDictionary()


def work(resources: Resources, event: object, invocation: Invocation) -> dict[str, Any]:
    """Run the jobs of an event, and return to SQS the messages that must come back."""
    messages, unreadable = read_messages(event, resources.log)
    if resources.job_types not in _groups:
        _groups[resources.job_types] = TypeGroups(resources.job_types, resources.pool.size)
    driver = Driver(resources, invocation, _groups[resources.job_types], event)
    if messages:
        _work_off(driver, messages)
    if driver.error is not None:
        resources.database.close()
        if isinstance(driver.error, psycopg.OperationalError | DatabaseUnavailable):
            bring_back(resources.clients, event, invocation.ends_at, resources.log)
        raise driver.error
    driver.write_metrics()
    return {"batchItemFailures": [{"itemIdentifier": id_} for id_ in unreadable]}


def _work_off(driver: Driver, messages: dict[str, str]) -> None:
    """Run the driver in a thread beside this one, which is the only one that signals reach."""
    thread = Thread(target=driver.run, args=(messages,), name="driver")
    thread.start()
    try:
        driver.main.serve()
    finally:
        thread.join()
