"""Make a target's input: the event itself, a part of it, a constant, or the result of its input transformer.

Pure. A variable of the template stands for JSON outside of quotes, and for text inside. What the event lacks is empty
in both places, so that the result stays JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from signalbox_laptop.event_sources.rule import Rule, RuleTarget

_MISSING = object()
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+|\*)\]")
# A quoted string, in which variables are text, or a variable outside of quotes.
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|<([\w.-]+)>')
_VARIABLE = re.compile(r"<([\w.-]+)>")


class InputInvalid(Exception):
    """The target's input is not JSON once the event is in it."""


def input_of(rule: Rule, target: RuleTarget, event: Mapping[str, Any]) -> str:
    """Return the JSON text that goes to the target."""
    if target.input is not None:
        return target.input
    if target.input_path is not None:
        part = part_of(event, target.input_path)
        return json.dumps(None if part is _MISSING else part)
    if target.input_template is not None:
        values = {name: part_of(event, path) for name, path in (target.input_paths_map or {}).items()}
        return render(target.input_template, {**values, **_reserved(rule, event)})
    return json.dumps(event)


def render(template: str, values: Mapping[str, Any]) -> str:
    """Return the template with its variables filled in."""

    def fill(piece: re.Match[str]) -> str:
        if piece[1] is None:
            return _VARIABLE.sub(lambda variable: _as_text(values.get(variable[1], _MISSING)), piece[0])
        return _as_json(values.get(piece[1], _MISSING))

    rendered = _PIECE.sub(fill, template)
    try:
        json.loads(rendered)
    except ValueError as error:
        raise InputInvalid(f"the input template gives no JSON ({error}): {template}") from None
    return rendered


def part_of(event: Any, path: str) -> Any:
    """Return what a JSON path such as $.detail.items[0] leads to."""
    current = event
    for name, index in _STEP.findall(path.removeprefix("$")):
        if index == "*":
            continue  # all items: returning the list itself is enough here
        try:
            current = current[int(index)] if index else current[name]
        except (LookupError, TypeError):
            return _MISSING
    return current


def _reserved(rule: Rule, event: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "aws.events.rule-arn": rule.arn,
        "aws.events.rule-name": rule.name,
        "aws.events.event.ingestion-time": event["time"],
        "aws.events.event": {name: value for name, value in event.items() if name != "detail"},
        "aws.events.event.json": event,
    }


def _as_json(value: Any) -> str:
    return '""' if value is _MISSING else json.dumps(value)


def _as_text(value: Any) -> str:
    """Return the value's text within quotes: escaped once more, without quotes of its own."""
    if value is _MISSING:
        return ""
    return json.dumps(value if isinstance(value, str) else json.dumps(value))[1:-1]
