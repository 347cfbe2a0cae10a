"""How often what was invoked, and how often it failed: what Lambda gives CloudWatch, by function, alias and version."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

from local.lambda_service.function import Function


class Figures:
    """Counts since the service was made."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, str | None, str], Counter[str]] = {}

    def count(self, function: Function, *metrics: str) -> None:
        key = function.name, function.qualifier, function.version
        with self._lock:
            self._counts.setdefault(key, Counter()).update(metrics)

    def read(self) -> list[dict[str, Any]]:
        """A record for each function, qualifier and version that executed."""
        with self._lock:
            return [
                {"function": function, "qualifier": qualifier, "version": version, **counts}
                for (function, qualifier, version), counts in self._counts.items()
            ]
