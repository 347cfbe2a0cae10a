"""Check whether the stack's database is as it should be, for `signalbox doctor`."""

from __future__ import annotations

import time
from typing import Any

from signalbox.invocation import Invocation, Resources
from signalbox.migrate import migrations
from signalbox.packs.payload import Payload
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


class Examine(Payload):
    """Take no params."""


def examine(resources: Resources, _: Examine, __: Invocation) -> dict[str, Any]:
    connection = resources.database.connection()
    began = time.perf_counter()
    version, name, statement, idle = connection.execute(SQL["describe_server"]).fetchone() or ("", "", "", "")
    latency_ms = round((time.perf_counter() - began) * 1000, 2)
    held, expired = connection.execute(SQL["count_locks"]).fetchone() or (0, 0)
    running, failed, missed = connection.execute(SQL["count_runs"]).fetchone() or (0, 0, 0)
    return {
        "database": {"server_version": version, "name": name, "latency_ms": latency_ms},
        "timeouts": {"statement_timeout": statement, "idle_in_transaction_session_timeout": idle},
        "schema": migrations.report(connection, resources.packs),
        "locks": {"held": held, "expired": expired},
        "runs": {"running": running, "failed_last_day": failed, "missed_last_day": missed},
        "tasks": {
            "registered": len(resources.tasks.by_name),
            "disabled": sorted(resources.settings.disabled_tasks),
        },
    }
