"""List the job types that this stack knows, each with the JSON schema of its payload."""

from __future__ import annotations

from typing import Any

from psycopg.rows import dict_row
from pydantic import Field

from signalbox.errors import JobTypeUnknown
from signalbox.invocation import Invocation, Resources
from signalbox.packs.payload import Payload
from signalbox.packs.suggest import nearest
from signalbox.postgres.json_rows import json_row
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)


class ListJobTypes(Payload):
    """Take no params."""


class ShowJobType(Payload):
    name: str = Field(min_length=1, max_length=200)


def list_job_types(resources: Resources, _: ListJobTypes, __: Invocation) -> dict[str, Any]:
    """Return the types that the last deploy stored, without their schemas."""
    with resources.database.connection().cursor(row_factory=dict_row) as cursor:
        return {"job_types": [json_row(row) for row in cursor.execute(SQL["list"]).fetchall()]}


def show_job_type(resources: Resources, params: ShowJobType, _: Invocation) -> dict[str, Any]:
    with resources.database.connection().cursor(row_factory=dict_row) as cursor:
        found = cursor.execute(SQL["show"], {"name": params.name}).fetchone()
        if found is None:
            names = [row["name"] for row in cursor.execute(SQL["list"]).fetchall()]
            raise JobTypeUnknown(f"no job type is named '{params.name}'{nearest(params.name, names)}")
    return {"job_type": json_row(found)}
