"""events/ has a payload for each task and each entry point, and its function accepts it."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from pydantic import BaseModel

from signalbox.engine_pack import registry_of
from signalbox.errors import Refused
from signalbox.jobs.job_message import read_messages
from signalbox.ledger.run import check_params
from signalbox.ledger.task_payload import TaskPayload
from signalbox.migrate.migrator import MigratorPayload
from signalbox.operations import OPERATIONS, OperationPayload
from signalbox.packs.payload import read_payload
from signalbox.runtime.log import make_logger
from tests.support.events import EVENTS, function_of
from tests.support.template import PACKS, ROOT

REGISTRY = registry_of(PACKS)


def refusal_of(event: dict[str, Any]) -> str | None:
    """Return why its function would refuse it."""
    try:
        accept(event)
    except Refused as error:
        return str(error)
    return None


def accept(event: dict[str, Any]) -> None:
    """Accept it as its function does, without doing anything."""
    if "Records" in event:
        read_messages(event, make_logger("events"))
    elif "action" in event:
        read_payload(MigratorPayload, event)
    elif "operation" in event:
        asked = read_payload(OperationPayload, event)
        read_payload(model_of(asked.operation), asked.params)
    else:
        accept_task(event)


def accept_task(event: dict[str, Any]) -> None:
    """Check the task's payload; only the poller takes params beside the payload's own fields."""
    polls = REGISTRY.find(event["task"]).function == "poller"
    beside = {name: value for name, value in event.items() if polls and name not in TaskPayload.model_fields}
    payload = read_payload(TaskPayload, {name: value for name, value in event.items() if name not in beside})
    check_params(REGISTRY.find(payload.task), payload.params | beside)


def model_of(operation: str) -> type[BaseModel]:
    return OPERATIONS[operation].model


@pytest.mark.parametrize("name", EVENTS)
def test_the_event_is_accepted(name: str) -> None:
    assert refusal_of(EVENTS[name]) is None


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"action": "migrate"}, "'action'"),
        ({"operation": "list_runs", "params": {"tusk": "sweep_runs"}}, "did you mean 'task'?"),
        ({"task": "poll_data", "limit": -1}, "'limit'"),
        ({"task": "sweep_runs", "limit": 1}, "limit"),
        ({"task": "sweep_runs", "params": {"hours": 1}}, "takes no params"),
        ({"task": "sweep_runs", "scheduled_time": "2026-01-05T12:00:00"}, "time zone"),
        ({"task": "swep_runs"}, "did you mean 'sweep_runs'?"),
    ],
)
def test_an_event_that_its_function_would_refuse_is_refused_here(event: dict[str, Any], words: str) -> None:
    assert words in (refusal_of(event) or "")


@pytest.mark.parametrize("task", REGISTRY.names())
def test_a_task_has_an_event_of_its_name(task: str) -> None:
    assert EVENTS[task]["task"] == task


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_that_needs_no_id_has_an_event(operation: str) -> None:
    events = [event for event in EVENTS.values() if event.get("operation") == operation]

    assert events or "id" in model_of(operation).model_fields


def test_each_of_the_migrators_actions_has_an_event() -> None:
    actions = set(get_args(MigratorPayload.model_fields["action"].annotation))

    assert {event["action"] for event in EVENTS.values() if "action" in event} == actions


def test_each_function_has_an_event() -> None:
    functions = {path.parent.name for path in ROOT.glob("functions/*/handler.py")}

    assert {function_of(event, REGISTRY) for event in EVENTS.values()} == functions
