"""Load SQL from .sql files beside the module that uses it, each query under a line `-- name: what it is for`.

An indented line `-- include: file.name` stands for that query of another file of the folder: a condition that several
queries share. Everything is put together when the module that owns the file is imported, and never from values.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import LiteralString, cast

_HEADING = re.compile(r"^-- ([a-z_]+): .+$", re.MULTILINE)
_INCLUDE = re.compile(r"^ +-- include: (\w+)\.(\w+)$", re.MULTILINE)


def load_queries(module_file: str) -> dict[str, LiteralString]:
    """Return the queries of the .sql file with the module's own stem, by name."""
    path = Path(module_file).with_suffix(".sql")
    text = _INCLUDE.sub(lambda found: load_queries(str(path.with_stem(found[1])))[found[2]], path.read_text("utf-8"))
    pieces = _HEADING.split(text)
    names, bodies = pieces[1::2], pieces[2::2]
    # A literal for the type checker: the text comes from a file of this package, never from a caller.
    return {name: cast("LiteralString", body.strip()) for name, body in zip(names, bodies, strict=True)}
