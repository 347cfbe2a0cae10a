"""Where output goes: results to stdout, what is said on the way to stderr. Colours and widths are rich's to find out:
it honours NO_COLOR, FORCE_COLOR, TERM and COLUMNS. Names, payloads' words and errors are written by others: none of
them gets to steer the terminal of who looks at them.
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
# What a terminal obeys rather than shows, but for the ends of lines and tabs.
_STEERING = {code: "?" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def print_json(value: Any) -> None:
    """One line, so that it can be read as it comes."""
    print(json.dumps(value), flush=True)


def say(text: str) -> None:
    """To the person, beside the result."""
    print(harmless(text), file=sys.stderr, flush=True)


def harmless(text: str) -> str:
    return text.translate(_STEERING)


def console(*, stderr: bool = False) -> Console:
    from rich.console import Console
    from rich.text import Text

    class Guarded(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            for thing in objects:
                if isinstance(thing, Text):
                    thing.plain = harmless(thing.plain)
            super().print(*(harmless(one) if isinstance(one, str) else one for one in objects), **options)

    return Guarded(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def width_of(console: Console, unbounded: int = _UNBOUNDED) -> int:
    """Columns of the terminal; without one, as many as the caller likes."""
    return console.width if console.is_terminal or os.environ.get("COLUMNS") else unbounded


def shows_unicode(console: Console) -> bool:
    return console.encoding.lower().replace("-", "").startswith("utf")


def print_lines(console: Console, lines: Iterable[Text]) -> None:
    for line in lines:
        console.print(line, no_wrap=True, overflow="ignore", crop=False)
