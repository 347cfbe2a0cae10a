"""Write results to stdout and messages to stderr.

rich finds out colours and widths: it honours NO_COLOR, FORCE_COLOR, TERM and COLUMNS. Names, payloads and errors come
from others: control characters in them are replaced, so that they can't steer the terminal.
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

# A pipe has no width, and its reader wants one line per item.
_UNBOUNDED = 10_000
# Replace every control character but line ends and tabs.
_STEERING = {code: "?" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def print_json(value: Any) -> None:
    """Print one line, so that it can be read as it comes."""
    print(json.dumps(value), flush=True)


def say(text: str) -> None:
    """Tell the person something on stderr, beside the result."""
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
    """Return the terminal's columns; without a terminal, the given number."""
    return console.width if console.is_terminal or os.environ.get("COLUMNS") else unbounded


def shows_unicode(console: Console) -> bool:
    return console.encoding.lower().replace("-", "").startswith("utf")


def print_lines(console: Console, lines: Iterable[Text]) -> None:
    for line in lines:
        console.print(line, no_wrap=True, overflow="ignore", crop=False)
