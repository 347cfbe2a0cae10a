"""Check whether a resource's own policy lets EventBridge in for a rule. Without it AWS delivers nothing.

Only what such policies contain is understood: statements that allow a service an action, on condition of a source. Deny
statements are ignored: on the laptop they concern transport, and all of it is loopback.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

_SERVICE = "events.amazonaws.com"


def permits(policy: str | None, action: str, source_arn: str, account: str) -> bool:
    """Say whether a statement allows EventBridge this action for this rule."""
    statements = json.loads(policy)["Statement"] if policy else []
    source = {"aws:sourcearn": source_arn, "aws:sourceaccount": account}
    return any(
        statement["Effect"] == "Allow"
        and _names_service(statement.get("Principal"))
        and any(fnmatchcase(action.lower(), pattern.lower()) for pattern in _listed(statement.get("Action")))
        and _holds(statement.get("Condition") or {}, source)
        for statement in _listed(statements)
    )


def _names_service(principal: Any) -> bool:
    if isinstance(principal, Mapping):
        return _SERVICE in _listed(principal.get("Service")) or "*" in _listed(principal.get("AWS"))
    return principal in (_SERVICE, "*")


def _holds(conditions: Mapping[str, Mapping[str, Any]], source: Mapping[str, str]) -> bool:
    """Compare every condition by pattern, whatever its operator: those for equality contain no wildcard."""
    return all(
        any(fnmatchcase(source.get(key.lower(), ""), pattern) for pattern in _listed(wanted))
        for condition in conditions.values()
        for key, wanted in condition.items()
    )


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
