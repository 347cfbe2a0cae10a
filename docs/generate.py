"""Write the parts of the documents that the code knows better: `make docs`. A test fails while they differ.

Each part stands between `<!-- generated: name -->` and `<!-- end -->`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any

from signalbox.api.routes import ROUTES
from signalbox.engine_pack import registry_of
from signalbox.job_types import JOB_TYPES
from signalbox.jobs import status
from signalbox.ledger import ledger
from signalbox.ledger.backfill import TRANSITIONS as BACKFILL_TRANSITIONS
from signalbox.packs.task import Task
from signalbox_cli.command import COMMANDS
from signalbox_laptop.deploy.template import read_template

DOCS = Path(__file__).parent
_PART = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def tasks() -> str:
    """Return the table of the engine's own tasks."""
    return _table(registry_of([]))


def messages_of(module: Any) -> str:
    """Return one row per message of a pack, as its model has it."""
    models = sorted(module.Message.__subclasses__(), key=lambda model: model.__name__)
    rows = []
    for model in models:
        fields = ", ".join(f"`{_field(model, name)}`" for name in model.model_fields)
        rows.append(f"| `{model.__name__}` | {model.__doc__} | {fields} | `{model.tenant}` |")
    return "\n".join(["| message | | fields | group |", "| --- " * 4 + "|", *rows])


def _field(model: Any, name: str) -> str:
    """Return the field's name, with its default if it has one."""
    default = model.model_fields[name].default
    return name if model.model_fields[name].is_required() else f"{name}: {json.dumps(default)}"


def _table(tasks: Iterable[Task]) -> str:
    """Return one row per task, as it is registered."""
    rows = [
        f"| `{task.name}` | {task.summary} | {task.function} | `{task.schedule}` | {task.catch_up} | "
        f"{_span(task.max_lateness)} | {task.overlap} | {_span(task.retention)} |"
        for task in tasks
    ]
    head = "| task | does | function | schedule | catch-up | at most | overlap | rows kept |\n" + "| --- " * 8 + "|"
    return "\n".join([head, *rows])


def runs() -> str:
    return _diagram(ledger.TRANSITIONS, born=["running", "skipped", "missed"])


def backfill() -> str:
    return _diagram(BACKFILL_TRANSITIONS, born=["running"])


def jobs() -> str:
    return _diagram(status.TRANSITIONS, born=["pending", "queued"])


def job_types() -> str:
    """Return one row per job type, as it is registered."""
    rows = [
        f"| `{one.name}` | {one.summary} | {one.lane or 'by priority'} | {_span(one.timeout)} | "
        f"{one.retry.max_attempts} | {'exactly once' if one.transactional else 'at least once'} | {one.severity} |"
        for one in JOB_TYPES
    ]
    head = "| type | does | lane | at most | attempts | effects | severity |\n" + "| --- " * 7 + "|"
    return "\n".join([head, *rows])


def commands() -> str:
    """Return one row per command, with what its examples show."""
    rows = []
    for command in COMMANDS:
        lines = [f"`signalbox {example.line.replace('|', chr(92) + '|')}`" for example in command.load().EXAMPLES]
        rows.append(f"| `{command.name}` | {command.summary} | {'<br>'.join(lines)} |")
    return "\n".join(["| command | does | such as |", "| --- " * 3 + "|", *rows])


def alarms() -> str:
    """Return one row per alarm, as the templates have it."""
    root = DOCS.parent
    rows = [
        _alarm(one, "" if path.parent == root else f"the pack `{path.parent.name}`")
        for path in (root / "template.yaml", *sorted(root.glob("layers/*/template.yaml")))
        for one in read_template(path)["Resources"].values()
        if one["Type"] == "AWS::CloudWatch::Alarm"
    ]
    head = "| alarm | severity | rings when | looking at | only with |\n" + "| --- " * 5 + "|"
    return "\n".join([head, *rows])


def _alarm(resource: Mapping[str, Any], pack: str) -> str:
    given = resource["Properties"]
    name = given["AlarmName"]["Fn::Sub"].partition("}-")[2]
    severity, when, _ = given["AlarmDescription"]["Fn::Sub"][0].split(". ")
    periods = int(given["EvaluationPeriods"])
    needed, period = int(given.get("DatapointsToAlarm", periods)), timedelta(seconds=_period(given))
    looked_at = _span(periods * period) if needed in (1, periods) else f"{needed} of {periods} × {_span(period)}"
    only = f"`{resource['Condition']}`" if "Condition" in resource else pack
    return f"| [`{name}`](runbook.md#{name}) | {severity.lower()} | {when} | {looked_at} | {only} |"


def _period(alarm: Mapping[str, Any]) -> int:
    """Return the alarm's period; one that calculates has the period of its metrics."""
    stats = [query["MetricStat"]["Period"] for query in alarm.get("Metrics", []) if "MetricStat" in query]
    return int(stats[0] if stats else alarm["Period"])


def routes() -> str:
    """Return one row per route of the HTTP API."""
    rows = [
        f"| {route.method} | `{route.path}` | {route.summary} | {route.operation.role} | "
        f"{'yes' if route.operation.per_tenant else ''} |"
        for route in ROUTES
    ]
    return "\n".join(["| | path | | role | for a tenant |", "| --- " * 5 + "|", *rows])


PARTS: dict[str, Callable[[], str]] = {
    "tasks": tasks,
    "alarms": alarms,
    "runs": runs,
    "backfills": backfill,
    "jobs": jobs,
    "job_types": job_types,
    "commands": commands,
    "routes": routes,
}


PAGES = sorted([*DOCS.glob("*.md"), *DOCS.parent.glob("layers/*/README.md")])


def parts_of(page: Path) -> Mapping[str, Callable[[], str]]:
    """Return what is generated for a page: a pack's own page has parts of that pack."""
    if page.parent == DOCS:
        return PARTS
    pack = page.parent.name
    return {
        "tasks": lambda: _table(import_module(f"{pack}.tasks").TASKS),
        "messages": lambda: messages_of(import_module(f"{pack}.messages")),
    }


def filled(page: Path) -> str:
    """Return the document with its generated parts as the code has them now."""
    parts = parts_of(page)
    return _PART.sub(lambda part: f"{part[1]}{parts[part[2]]()}\n{part[3]}", page.read_text("utf-8"))


def main() -> int:
    for page in PAGES:
        if page.read_text("utf-8") != filled(page):
            page.write_text(filled(page), "utf-8")
            print(f"{page.name}: written")
    return 0


def _diagram(transitions: Mapping[StrEnum, frozenset[StrEnum]], born: list[str]) -> str:
    lines = [f"    [*] --> {state}" for state in born]
    for state, targets in transitions.items():
        lines += [f"    {state} --> {target}" for target in sorted(targets)]
        lines += [] if targets else [f"    {state} --> [*]"]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```"])


def _span(span: timedelta) -> str:
    seconds = int(span.total_seconds())
    if seconds % 60:
        return f"{seconds} s"
    minutes = seconds // 60
    for size, unit in ((1440, "day"), (60, "hour")):
        if minutes % size == 0:
            count = minutes // size
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{minutes} minutes"


if __name__ == "__main__":
    sys.exit(main())
