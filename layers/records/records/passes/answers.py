"""Define what the model answers in each pass, and check it before anything else sees it.

Errors name fields, and no value: pydantic's own would repeat them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from signalbox.packs.outcome import Transient
from signalbox.postgres.pg_text import clean

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def _storable(text: str) -> str:
    if clean(text) != text:
        raise ValueError("it has characters that PostgreSQL can't store")
    return text


def _calendar_date(value: Any) -> Any:
    if isinstance(value, str):
        if not _DATE.fullmatch(value):
            raise ValueError("it is no YYYY-MM-DD")
        return date.fromisoformat(value)
    return value


def _lower_id(text: str) -> str:
    return str(UUID(text))


Id = Annotated[str, AfterValidator(_lower_id)]
Text = Annotated[str, AfterValidator(_storable)]
Name = Annotated[Text, Field(min_length=1)]
Day = Annotated[date, BeforeValidator(_calendar_date), WithJsonSchema({"type": "string", "format": "date"})]
PageNumber = Annotated[int, Field(ge=1)]
Confidence = Annotated[float, Field(ge=0, le=1)]


class Part(BaseModel):
    """Give all parts of an answer the same rules: no value is made of another type."""

    model_config = ConfigDict(strict=True)


class Entity(Part):
    """Describe what the document says of the patient's health, at one place."""

    type: Literal["condition", "medication", "other"]
    text: Name
    page: PageNumber
    confidence: Confidence


class SubjectFound(Part):
    """Describe a person that the document is about."""

    name: Text
    date_of_birth: Day | None = None
    page: PageNumber


class Pass1Answer(Part):
    """Describe all entities and subjects of a piece."""

    entities: list[Entity]
    subjects: list[SubjectFound]


class Condition(Part):
    """Describe a condition, made of an entity."""

    entity_no: int
    name: Name
    code: Text | None = None
    code_system: Text | None = None
    status: Text | None = None
    onset_date: Day | None = None
    confidence: Confidence


class Medication(Part):
    """Describe a medication, made of an entity."""

    entity_no: int
    name: Name
    dose: Text | None = None
    frequency: Text | None = None
    started_on: Day | None = None
    stopped_on: Day | None = None
    confidence: Confidence


class Pass2Answer(Part):
    """Describe the patient's conditions and medications."""

    conditions: list[Condition]
    medications: list[Medication]


class Source(Part):
    """Name a row that a narrative is made of."""

    kind: Literal["condition", "medication"]
    id: Id


class Pass3Answer(Part):
    """Describe the narrative of a file."""

    narrative: Name
    sources: list[Source]


AnswerOfPass = TypeVar("AnswerOfPass", bound=Part)


class AnswerMalformed(Transient):
    """The model's answer is not as it was asked for; it may be the next time."""


def check(model: type[AnswerOfPass], output: Any) -> AnswerOfPass:
    """Return the answer as its model, or say which fields are wrong."""
    try:
        return model.model_validate(output)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False, include_context=False)
        places = sorted({".".join("#" if isinstance(part, int) else part for part in fault["loc"]) for fault in faults})
        raise malformed(places) from None


def malformed(places: Iterable[str]) -> AnswerMalformed:
    return AnswerMalformed(f"the model's answer is malformed at {', '.join(places) or 'its top'}")


def check_entities(answer: Pass2Answer, entities: list[dict[str, Any]]) -> None:
    """Check that each row is of an entity of its type, and each entity has one row at most."""
    for kind, rows in (("condition", answer.conditions), ("medication", answer.medications)):
        numbers = [row.entity_no for row in rows]
        known = {no for no, entity in enumerate(entities, 1) if entity["type"] == kind}
        if len(set(numbers)) < len(numbers) or not set(numbers) <= known:
            raise malformed([f"{kind}s.#.entity_no"])


def check_sources(answer: Pass3Answer, known: dict[str, set[str]]) -> None:
    """Check that each source is a row of the session."""
    if not all(source.id in known[source.kind] for source in answer.sources):
        raise malformed(["sources.#.id"])
