"""Take time outside the handler."""

import os
import time
from typing import Any

time.sleep(float(os.environ["START_SECONDS"]))


def handler(event: Any, context: Any) -> Any:
    return "started"
