"""Read a function's response to an invocation: a value, or an error in one line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from signalbox_cli.errors import FunctionFailed


@dataclass(frozen=True, slots=True)
class FunctionResponse:
    """Describe one invocation's outcome. An asynchronous one has neither content nor log."""

    function: str  # short name
    content: bytes
    failed: bool
    log: str
    request_id: str

    def value(self) -> Any:
        """Return what the function returned; raise what it failed with, or refused to do."""
        content = json.loads(self.content or b"null")
        if self.failed:
            raise _fault(self.function, content)
        if isinstance(content, dict) and set(content) == {"refused"}:
            raise _fault(self.function, content["refused"])
        return content


def _fault(function: str, error: Any) -> FunctionFailed:
    """Return the error. The engine's own errors say what to do next; for others, point to the log."""
    if not isinstance(error, dict):
        return FunctionFailed(f"function {function} failed: {error}", "Error")
    kind, message = str(error.get("errorType", "Error")), error.get("errorMessage", "without a message")
    from signalbox import errors

    if hasattr(errors, kind):
        return FunctionFailed(f"{kind}: {message}", kind)
    return FunctionFailed(
        f"{kind}: {message}; `signalbox logs {function} --since 10m` shows what {function} said", kind
    )
