"""Collect all that a laptop's stack has written, by place, for tests that search it. Reading takes messages off
their queues."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from signalbox_laptop.aws import client
from signalbox_laptop.home import StackState

# Where a payload is kept because it is one: the job's own, its dead letter's, the schedule's that will submit it.
PAYLOADS = {"payload", "job_payload", "message"}


def written(state: StackState, home: Path) -> dict[str, str]:
    """Return text by place. The database's own files are left out: its tables are read instead."""
    with psycopg.connect(state.database) as db:
        return {
            **dict(_files(home)),
            **dict(_logs(state)),
            **dict(_tables(db)),
            **dict(_queues(state)),
            **dict(_deployment(state)),
        }


def _files(home: Path) -> Iterator[tuple[str, str]]:
    for path in home.rglob("*"):
        if path.is_file() and "postgres" not in path.relative_to(home).parts[0]:
            yield f"file {path.relative_to(home)}", path.read_text("utf-8", "replace")


def _logs(state: StackState) -> Iterator[tuple[str, str]]:
    logs = client("logs", state.endpoint)
    for group in logs.describe_log_groups()["logGroups"]:
        pages = logs.get_paginator("filter_log_events").paginate(logGroupName=group["logGroupName"])
        yield f"log {group['logGroupName']}", "\n".join(one["message"] for page in pages for one in page["events"])


def _tables(db: psycopg.Connection[Any]) -> Iterator[tuple[str, str]]:
    tables = db.execute(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'"
        " AND table_schema NOT IN ('information_schema', 'pg_catalog')"
    ).fetchall()
    for schema, table in tables:
        rows = db.execute(sql.SQL("SELECT to_jsonb(t) FROM {} AS t").format(sql.Identifier(schema, table))).fetchall()
        yield f"table {schema}.{table}", "\n".join(_without_payload(row) for (row,) in rows)
        yield f"payloads of {schema}.{table}", "\n".join(_payload(row) for (row,) in rows)


def _without_payload(row: Mapping[str, Any]) -> str:
    return json.dumps({name: value for name, value in row.items() if name not in PAYLOADS}, ensure_ascii=False)


def _payload(row: Mapping[str, Any]) -> str:
    return json.dumps([value for name, value in row.items() if name in PAYLOADS], ensure_ascii=False)


def _queues(state: StackState) -> Iterator[tuple[str, str]]:
    sqs = client("sqs", state.endpoint)
    for url in sqs.list_queues().get("QueueUrls", []):
        found = []
        while taken := sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"], MessageAttributeNames=["All"]
        ).get("Messages"):
            found += [json.dumps(one) for one in taken]
        yield f"queue {url.rpartition('/')[2]}", "\n".join(found)


def _deployment(state: StackState) -> Iterator[tuple[str, str]]:
    cloudformation, functions = client("cloudformation", state.endpoint), client("lambda", state.endpoint)
    yield "template", json.dumps(cloudformation.get_template(StackName=state.stack)["TemplateBody"])
    yield "stack", json.dumps(cloudformation.describe_stacks(StackName=state.stack)["Stacks"], default=str)
    yield "functions", json.dumps(functions.list_functions()["Functions"], default=str)
