"""Let a command choose jobs or dead letters by their ids, or by options made of a filter's fields."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from signalbox.operate.filters import DeadLetterFilter, JobFilter
from signalbox_cli.command_parser import CommandParser
from signalbox_cli.errors import UsageRefused
from signalbox_cli.options.shared import TIME, instant, json_object


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """Make options from the fields of one filter."""

    model: type[JobFilter | DeadLetterFilter]
    things: str
    one: str
    example: str  # an option, for the error that asks for one
    too_wide: Collection[str]  # fields that choose nearly everything when given alone

    def add(self, parser: CommandParser) -> None:
        group = parser.add_argument_group(f"which {self.things} (all filters must match)")
        for name, field in self._fields().items():
            option = _option(name)
            group.add_argument(f"--{option.replace('_', '-')}", help=field.description, **_kind(option, field))

    def filters(self, args: Namespace) -> dict[str, Any]:
        """Return the filters that were given, as the operations name them."""
        given = {name: getattr(args, _option(name)) for name in self._fields()}
        return {name: value for name, value in given.items() if value is not None}

    def require(self, args: Namespace, ids: Sequence[str]) -> None:
        """Refuse a command that names neither ids nor a filter, or both."""
        filters = self.filters(args)
        if ids and filters:
            raise UsageRefused(f"give ids of {self.things} or filters, not both")
        if not ids and not filters.keys() - self.too_wide:
            raise UsageRefused(
                f"name the ID of {self.one}, or give a filter such as {self.example}; "
                f"`signalbox {args.command.name} --help` shows examples"
            )

    def _fields(self) -> dict[str, FieldInfo]:
        return {name: field for name, field in self.model.model_fields.items() if name != "ids"}


def _option(field: str) -> str:
    return "type" if field == "job_type" else field


def _kind(option: str, field: FieldInfo) -> dict[str, Any]:
    """Return what argparse needs to read the option's value."""
    if choices := choices_of(field.annotation):
        return {"choices": choices}
    if datetime in _parts(field.annotation):
        return {"type": instant, "metavar": TIME}
    if any(get_origin(part) is dict for part in _parts(field.annotation)):
        return {"type": json_object, "metavar": "JSON"}
    return {"metavar": option.upper()}


def choices_of(annotation: Any) -> tuple[str, ...]:
    """Return the values of the first Literal in an annotation."""
    return next((get_args(part) for part in _parts(annotation) if get_origin(part) is Literal), ())


def _parts(annotation: Any) -> list[Any]:
    inner = [] if get_origin(annotation) is Literal else get_args(annotation)
    return [annotation, *(part for one in inner for part in _parts(one))]


JOBS = FilterOptions(JobFilter, "jobs", "a job", "--type", ("until",))
LETTERS = FilterOptions(DeadLetterFilter, "dead letters", "a dead letter", "--fingerprint", ("until", "status"))
LANES = choices_of(JobFilter.model_fields["lane"].annotation)
