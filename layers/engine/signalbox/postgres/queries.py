"""SQL lives in .sql files beside the module that uses it, each query under a line `-- name: what it is for`.

Loaded once, at the import of the module that owns the file, and never put together from pieces at run time.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import LiteralString, cast

_HEADING = re.compile(r"^-- ([a-z_]+): .+$", re.MULTILINE)


def load_queries(module_file: str) -> dict[str, LiteralString]:
    """The queries of the .sql file with the module's own stem, by name."""
    path = Path(module_file).with_suffix(".sql")
    pieces = _HEADING.split(path.read_text("utf-8"))
    names, bodies = pieces[1::2], pieces[2::2]
    # A literal for the type checker: the text comes from a file of this package, never from a caller.
    return {name: cast("LiteralString", body.strip()) for name, body in zip(names, bodies, strict=True)}
