"""Keep forked children of jobs off the worker's connections, leases and messages: they end with the job's code."""

from __future__ import annotations

import os


def refuse_child(owner: int) -> None:
    """Raise in a child of the process that owns something."""
    if os.getpid() != owner:
        raise RuntimeError("a forked process can't use its parent's connections: open a new one")


def end_child(owner: int) -> None:
    """End a child at once: nothing is flushed, closed or sent."""
    if os.getpid() != owner:
        os._exit(0)
