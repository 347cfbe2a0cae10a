"""Where output goes: results to stdout, what is said on the way to stderr. Colours and widths are rich's to find out:
it honours NO_COLOR, FORCE_COLOR, TERM and COLUMNS.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

# A pipe has no width, and what reads it wants one line a thing.
_UNBOUNDED = 10_000


def print_json(value: Any) -> None:
    """One line, so that it can be read as it comes."""
    print(json.dumps(value), flush=True)


def say(text: str) -> None:
    """To the person, beside the result."""
    print(text, file=sys.stderr, flush=True)


def console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def width_of(console: Console, unbounded: int = _UNBOUNDED) -> int:
    """Columns of the terminal; without one, as many as the caller likes."""
    return console.width if console.is_terminal or os.environ.get("COLUMNS") else unbounded


def shows_unicode(console: Console) -> bool:
    return console.encoding.lower().replace("-", "").startswith("utf")


def print_lines(console: Console, lines: Iterable[Text]) -> None:
    for line in lines:
        console.print(line, no_wrap=True, overflow="ignore", crop=False)
