"""Answer what is around the function."""

import importlib
import os
import sys
from pathlib import Path
from typing import Any


def handler(event: Any, context: Any) -> Any:
    modules = {name: importlib.import_module(name).WHERE for name in event.get("modules", [])}
    return {"environment": dict(os.environ), "path": sys.path, "cwd": str(Path.cwd()), "modules": modules}
