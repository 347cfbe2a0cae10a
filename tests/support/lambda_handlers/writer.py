"""Write to the log in the ways that functions do."""

import json
import logging
import sys
from typing import Any

logging.getLogger().setLevel("INFO")


def handler(event: Any, context: Any) -> Any:
    for line in event.get("print", []):
        print(line)
    for line in event.get("stderr", []):
        print(line, file=sys.stderr)
    for message in event.get("log", []):
        logging.getLogger("writer").info(message)
    sys.stdout.write(event.get("unended", ""))
    for number in range(event.get("flood", 0)):
        sys.stdout.write(f"line {number} of many\n")
    if "raise" in event:
        raise RuntimeError(event["raise"])
    return json.loads(event.get("answer", "null"))


def big(event: Any, context: Any) -> Any:
    return "x" * event["bytes"]


def size(event: Any, context: Any) -> Any:
    return len(json.dumps(event, separators=(",", ":")))
