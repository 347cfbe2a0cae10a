"""Load the payloads of events/ and of each pack by file name: the docs show them and the laptop is tried with them."""

from __future__ import annotations

import json
from typing import Any

from signalbox.packs.registries import TaskRegistry
from tests.support.template import ROOT

EVENTS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text())
    for folder in (ROOT, *sorted(ROOT.glob("layers/*")))
    for path in sorted(folder.glob("events/*.json"))
}


def function_of(event: dict[str, Any], registry: TaskRegistry) -> str:
    """Return the folder of the function that takes it."""
    if "Records" in event:
        return "dead_letter" if all(map(_has_failed, event["Records"])) else "worker"
    if "action" in event:
        return "migrator"
    return "api" if "operation" in event else registry.find(event["task"]).function


def _has_failed(record: dict[str, Any]) -> bool:
    """Say whether its queue is one of those where failures end."""
    return str(record["eventSourceARN"]).endswith(("-dlq", "-failed-invocations"))
