"""Return the JSON schema of a job's payload, and whether it covers all checks of the payload's model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from signalbox.packs.job_payload import JobPayload
from signalbox.packs.registries import RegisteredJobType

# The keywords that the SQL function `schema_faults` checks, and those that check nothing.
_CHECKED = frozenset(
    {"$ref", "type", "required", "additionalProperties", "enum", "const", "anyOf", "oneOf", "items", "properties",
     "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"}
)  # fmt: skip
_NOTES = frozenset({"$defs", "title", "description", "default", "examples", "deprecated", "discriminator"})


def schema_of(model: type[JobPayload]) -> dict[str, Any]:
    return model.model_json_schema()


def has_validators(known: RegisteredJobType) -> bool:
    """Say whether a job may be refused when it is claimed though its payload fits the schema."""
    return (
        known.has_check
        or any(not set(schema) <= _CHECKED | _NOTES for schema in _schemas(schema_of(known.model)))
        or any(
            str(part.get("type", "")).startswith("function-") for part in _parts(known.model.__pydantic_core_schema__)
        )
    )


def _schemas(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield a schema and all schemas in it."""
    if not isinstance(schema, dict):
        return
    yield schema
    for group in ("properties", "$defs"):
        for inner in schema.get(group, {}).values():
            yield from _schemas(inner)
    for inner in (
        schema.get("items"),
        schema.get("additionalProperties"),
        *schema.get("anyOf", ()),
        *schema.get("oneOf", ()),
    ):
        yield from _schemas(inner)


def _parts(core: Any) -> Iterator[dict[str, Any]]:
    """Yield each object of pydantic's own schema, without those for serialization."""
    if isinstance(core, dict):
        yield core
        for name, inner in core.items():
            if name not in ("serialization", "metadata"):
                yield from _parts(inner)
    elif isinstance(core, list | tuple):
        for inner in core:
            yield from _parts(inner)
