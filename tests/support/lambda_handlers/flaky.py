"""Fail as the environment says: never, always, or for events that ask for it."""

import os
from typing import Any


def handler(event: Any, context: Any) -> dict[str, Any]:
    wanted = os.environ.get("FAILS", "")
    if wanted == "always" or (wanted == "asked" and "fail" in str(event)):
        raise RuntimeError(f"version {context.function_version} fails")
    return {"version": context.function_version}
