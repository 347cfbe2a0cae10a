"""Describe one request for a page, and what a page is made of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, get_args
from urllib.parse import urlencode

from signalbox.access.caller import Role
from signalbox.access.sessions import Session
from signalbox.api.request import HttpRequest, typed
from signalbox.invocation import Invocation, Resources
from signalbox.operations import OPERATIONS
from signalbox.pages.commands import Command

_SPAN = re.compile(r"(\d{1,6})([smhdw])")
_AHEAD = frozenset({"ignore_until"})  # fields for which `2d` is to come
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_WITHOUT_ZONE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?")


@dataclass(frozen=True, slots=True)
class Visit:
    """Describe who asks for which page. A page that is shown again for a form has the form's fields and answer."""

    resources: Resources
    invocation: Invocation
    session: Session
    path: str
    query: Mapping[str, str]
    in_path: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)
    action: str = ""  # the operation that the form asked for
    refused: str = ""
    answer: Mapping[str, Any] | None = None  # of its dry run

    @staticmethod
    def of(resources: Resources, invocation: Invocation, session: Session, request: HttpRequest) -> Visit:
        invocation = replace(invocation, caller=session.caller)
        query = {name: text for name, text in request.query.items() if text.strip()}
        return Visit(resources, invocation, session, request.path, query)

    @property
    def address(self) -> str:
        """Return where this page is, which holds all of its state."""
        return self.path + (f"?{urlencode(self.query)}" if self.query else "")

    def preview_of(self, *operations: str) -> Mapping[str, Any] | None:
        """Return what the form's operation would do, if it is one of these."""
        return self.answer if self.action in operations else None

    @property
    def is_operator(self) -> bool:
        return self.session.caller.role is Role.OPERATOR

    @property
    def clock(self) -> datetime:
        return self.invocation.clock

    def operate(self, operation: str, /, **params: Any) -> dict[str, Any]:
        """Ask for one operation, as this caller."""
        return OPERATIONS[operation].run(self.resources, params, self.invocation)

    def params(self, operation: str, given: Mapping[str, str]) -> dict[str, Any]:
        """Return the operation's params from the texts of a query or a form; what it does not know is left out."""
        fields = {found.alias or name: found for name, found in OPERATIONS[operation].model.model_fields.items()}
        params: dict[str, Any] = {}
        for name, text in given.items():
            if name not in fields or not text.strip():
                continue
            is_time = datetime in _types_in(fields[name].annotation)
            params[name] = (
                moment(text, self.clock, ahead=name in _AHEAD) if is_time else typed(fields, name, text.strip())
            )
        return params


@dataclass(frozen=True, slots=True)
class Shown:
    """Say what a page shows: a template with its values, and the commands that show or do the same."""

    template: str
    title: str
    values: Mapping[str, Any]
    commands: Sequence[Command] = ()


def _types_in(annotation: Any) -> Iterator[Any]:
    yield annotation
    for part in get_args(annotation):
        yield from _types_in(part)


def moment(text: str, clock: datetime, *, ahead: bool = False) -> str:
    """Return an instant of a form as operations take it: `2h` is so long ago, or ahead; without a zone it is in UTC."""
    text = text.strip()
    if found := _SPAN.fullmatch(text):
        span = timedelta(**{_UNITS[found[2]]: int(found[1])})
        with suppress(OverflowError):  # then it is no time, which the operation says
            return (clock + span if ahead else clock - span).astimezone(UTC).isoformat()
    return (
        f"{text.replace(' ', 'T')}{'' if 'T' in text or ' ' in text else 'T00:00'}Z"
        if _WITHOUT_ZONE.fullmatch(text)
        else text
    )
