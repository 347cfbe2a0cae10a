"""Read the payloads of the entry points, and raise errors that name every fault.

Every field is checked, because a misspelt `reference_time` that was ignored would run the wrong slot.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from signalbox.errors import PayloadRefused
from signalbox.packs.suggest import nearest

_SURROGATE = re.compile("[\ud800-\udfff]")
_FIRST_YEAR, _LAST_YEAR = 1970, 2200


def _instant(value: object) -> datetime:
    """Read text only: pydantic would read a number as seconds since 1970, or as milliseconds if it is large."""
    if isinstance(value, datetime):
        instant = value
    elif isinstance(value, str):
        try:
            instant = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f"'{value[:40]}' is not an ISO-8601 time, such as 2026-01-31T06:00:00Z") from None
    else:
        raise ValueError("must be text, an ISO-8601 time such as 2026-01-31T06:00:00Z")
    if instant.tzinfo is None:
        raise ValueError(f"'{value}' has no time zone: end it with Z or an offset such as +01:00")
    if not _FIRST_YEAR < instant.year < _LAST_YEAR:
        raise ValueError(f"'{value}' is not between the years {_FIRST_YEAR} and {_LAST_YEAR}")
    return instant.astimezone(UTC)


Instant = Annotated[datetime, BeforeValidator(_instant)]


class Payload(BaseModel):
    """Give every payload the same rules: no unknown fields, and no change once read."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


Model = TypeVar("Model", bound=BaseModel)


def read_payload(model: type[Model], value: object, what: str = "payload") -> Model:
    """Return the checked payload, or raise one error that lists every fault."""
    if not isinstance(value, dict):
        raise PayloadRefused(f"{what} must be a JSON object, and is {_kind(value)}")
    if fault := _unstorable(value):
        raise PayloadRefused(f"{what} refused: it holds {fault}, which PostgreSQL can't store")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        faults: list[dict[str, Any]] = [dict(fault) for fault in error.errors(include_url=False)]
        texts = [fault_of(model, fault) for fault in faults]
        fields = [".".join(map(str, fault["loc"])) for fault in faults]
        raise PayloadRefused(f"{what} refused: {'; '.join(texts)}", list(zip(fields, texts, strict=True))) from None


def fault_of(model: type[BaseModel], fault: dict[str, Any]) -> str:
    """Return one line for one fault, without the value: it may be a secret."""
    field = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        names = _names_beside(model, fault["loc"])
        return f"field '{field}' is not known{nearest(str(fault['loc'][-1]), names) if names else ''}"
    if fault["type"] == "missing":
        return f"field '{field}' is missing"
    return f"field '{field}': {fault['msg'].removeprefix('Value error, ')}"


def _names_beside(model: type[BaseModel], place: Sequence[int | str]) -> Sequence[str]:
    """Return the fields of the model at this place, however deep, or none where it can't be found."""
    found: type[BaseModel] | None = model
    for name in place[:-1]:
        if isinstance(name, str) and found is not None:
            field = found.model_fields.get(name)
            found = _model_in(field.annotation) if field else None
    return list(found.model_fields) if found is not None else []


def _model_in(annotation: object) -> type[BaseModel] | None:
    """Return the model itself, or that of a list's items."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)


def _unstorable(value: object) -> str | None:
    """Name what can't be stored of a text anywhere in the value."""
    if isinstance(value, str):
        if "\0" in value:
            return "a NUL character"
        return "half a surrogate pair" if not value.isascii() and _SURROGATE.search(value) else None
    parts = [part for pair in value.items() for part in pair] if isinstance(value, dict) else value
    return next(filter(None, map(_unstorable, parts)), None) if isinstance(parts, list) else None


def _kind(value: object) -> str:
    names = {
        list: "an array",
        str: "text",
        bool: "true or false",
        int: "a number",
        float: "a number",
        type(None): "null",
    }
    return names.get(type(value), type(value).__name__)
