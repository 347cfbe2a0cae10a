"""A database row as JSON has it: instants in UTC as text, everything else as it is."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def as_json(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value for name, value in row.items()
    }
