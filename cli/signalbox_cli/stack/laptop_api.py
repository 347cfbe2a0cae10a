"""Call the control API of the laptop's stack, below /_signalbox/ of its endpoint: AWS has nothing like it."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from signalbox_cli.errors import CommandFailed

_PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class LaptopControl:
    """Control one laptop stack."""

    endpoint: str

    def tick(self, at: datetime, rules: list[str] | None, *, due: bool) -> list[dict[str, Any]]:
        """Fire the named rules, or all; with `due`, only those of them that are due."""
        asked = {"at": at.isoformat(), "rules": rules, "due": due}
        fired: list[dict[str, Any]] = self._call("POST", "tick", asked)["fired"]
        return fired

    def idle(self, timeout: float) -> dict[str, Any]:
        """Wait until all requested work is done, and return the stack's numbers."""
        return self._call("GET", f"idle?timeout={timeout}", patience=timeout + _PATIENCE_SECONDS)

    def stop(self) -> None:
        self._call("POST", "stop")

    def _call(
        self, method: str, call: str, body: Mapping[str, Any] | None = None, patience: float = _PATIENCE_SECONDS
    ) -> dict[str, Any]:
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.endpoint}/_signalbox/{call}", content, method=method)
        # A proxy from the shell's environment would not reach this machine's loopback.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=patience) as answer:
                value: dict[str, Any] = json.load(answer)
                return value
        except urllib.error.HTTPError as refusal:
            raise CommandFailed(_message(refusal)) from None
        except OSError as error:
            raise CommandFailed(
                f"the laptop's stack does not answer at {self.endpoint} ({error}); `signalbox status` says more"
            ) from None


def _message(refusal: urllib.error.HTTPError) -> str:
    try:
        return str(json.load(refusal)["message"])
    except (ValueError, LookupError, TypeError):
        return f"the laptop's stack answered {refusal.code} {refusal.reason}"
