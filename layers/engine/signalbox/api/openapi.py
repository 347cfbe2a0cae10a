"""Describe the HTTP API in OpenAPI 3.1, from the routes and from the models that check the operations' params."""

from __future__ import annotations

import json
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from pydantic.json_schema import models_json_schema

from signalbox.api.routes import ROUTES, Route

_REF = "#/components/schemas/{model}"
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "request_id"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string", "description": "the kind of refusal"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "what is wrong, which thing, and what to do next"},
        "request_id": {"type": "string", "description": "by which the function's log is searched"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "message"],
                "properties": {"field": {"type": "string"}, "message": {"type": "string"}},
            },
        },
    },
}


# What the answer of each operation always has.
_ANSWERS = {
    "list_jobs": ("jobs", "next"), "submit_jobs": (), "show_job": ("job", "executions"),
    "explain_job": ("explanation",), "show_progress": ("progress",),
    "cancel_jobs": (), "retry_jobs": (), "pause": (), "resume": (), "set_cap": ("control",), "send_signal": ("signal",),
    "list_controls": ("controls",), "show_group": ("group",), "seal_group": ("group",),
    "list_job_types": ("job_types",), "show_job_type": ("job_type",), "list_dead_letters": (),
    "show_dead_letter": ("dead_letter",), "triage_dead_letters": (), "redrive": (),
    "list_bulk_actions": ("bulk_actions",), "show_bulk_action": ("bulk_action",),
    "cancel_bulk_action": ("bulk_action",),
    "list_tasks": ("tasks",), "run_task": ("task", "slot", "status"), "list_runs": ("runs", "next"),
    "show_slots": ("since", "until", "tasks"), "find_gap": ("gap",), "list_backfills": ("backfills",),
    "create_backfill": (),
    "show_backfill": ("backfill",), "pause_backfill": ("backfill",), "change_backfill": ("backfill",),
    "resume_backfill": ("backfill",),
    "cancel_backfill": ("backfill",), "list_schedules": ("schedules", "next"), "create_schedule": ("schedule",),
    "pause_schedule": ("schedule",), "resume_schedule": ("schedule",), "delete_schedule": ("schedule",),
    "show_statistics": (), "show_health": (), "show_metrics": (),
}  # fmt: skip
_JOB = ("id", "job_type", "lane", "status", "created")


@cache
def openapi() -> dict[str, Any]:
    """Return the whole document."""
    models = sorted({route.model for route in ROUTES}, key=lambda model: model.__name__)
    _, found = models_json_schema([(model, "validation") for model in models], ref_template=_REF)
    schemas: dict[str, Any] = found["$defs"]
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _described(route, schemas)
    text = json.dumps([paths, schemas])
    used = {name: schema for name, schema in schemas.items() if f'"{_REF.format(model=name)}"' in text}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Signalbox", "version": _version(), "description": "Jobs and tasks of one stack."},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": {**used, "Problem": _PROBLEM},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(route: Route, schemas: dict[str, Any]) -> dict[str, Any]:
    schema = schemas[route.model.__name__]
    fields = {name: schema["properties"][name] for name in route.fields}
    required = [name for name in schema.get("required", []) if name in fields]
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in route.in_path
    ]
    body: dict[str, Any] = {}
    if route.method == "GET":
        in_query = [
            {"name": name, "in": "query", "required": name in required, "schema": one} for name, one in fields.items()
        ]
        return _operation(route, [*in_path, *in_query], body)
    if fields:
        content = {"type": "object", "properties": fields, "required": required, "additionalProperties": False}
        body = {"requestBody": {"required": bool(required), "content": {"application/json": {"schema": content}}}}
    return _operation(route, in_path, body)


def _operation(route: Route, parameters: list[dict[str, Any]], body: dict[str, Any]) -> dict[str, Any]:
    keys = _JOB if route.shape == "job" else _ANSWERS[route.name]
    answer: dict[str, Any] = {"application/json": {"schema": {"type": "object", "required": list(keys)}}}
    if route.shape == "text":
        answer = {"application/openmetrics-text": {"schema": {"type": "string"}}}
    refused = {"application/problem+json": {"schema": {"$ref": _REF.format(model="Problem")}}}
    responses: dict[str, Any] = {
        str(status): {"description": "done", "content": answer} for status in {200, route.status}
    }
    if route.method == "GET":
        responses["304"] = {"description": "nothing has changed since the response with this ETag"}
    responses["default"] = {"description": "refused, with the reason and what to do", "content": refused}
    return {
        "operationId": "_".join(
            part.strip("{}").replace("-", "_")
            for part in [route.method.lower(), *route.path.split("/")]
            if part not in ("", "v1")
        ),
        "summary": route.summary,
        "description": f"Operation `{route.name}`, for the role {route.operation.role}.",
        "parameters": parameters,
        **body,
        "responses": responses,
    }


def _version() -> str:
    try:
        return version("signalbox")
    except PackageNotFoundError:  # a function's package has no metadata
        return "0"
