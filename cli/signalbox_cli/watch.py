"""Implement `--watch`: show what a command shows again and again until Ctrl-C."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Callable
from typing import NoReturn

_CLEAR = "\x1b[H\x1b[2J"


def watch(run: Callable[[Namespace], int], args: Namespace, pause: Callable[[float], None] = time.sleep) -> NoReturn:
    """Run the command repeatedly, each time on a cleared terminal. Piped output is one answer after the other."""
    while True:
        if sys.stdout.isatty():
            print(_CLEAR, end="")
        run(args)
        sys.stdout.flush()
        pause(args.watch)
