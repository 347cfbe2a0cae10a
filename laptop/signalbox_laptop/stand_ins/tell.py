"""Give a stand-in one instruction, for sample data and tests."""

from __future__ import annotations

import json
import urllib.request
from typing import Any


def tell(method: str, url: str, what: Any) -> None:
    """Send JSON to an address below /_stand_in/; a refusal is raised."""
    # A proxy from the shell's environment would not reach this machine's loopback.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(urllib.request.Request(url, json.dumps(what).encode(), method=method), timeout=10):
        pass
