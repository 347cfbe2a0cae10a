"""The code of a job may fork. The child is no worker: connections, leases and messages are its parent's, so that it
uses none of them, and ends where the job's code does.
"""

from __future__ import annotations

import os


def refuse_child(owner: int) -> None:
    """Raise in a child of the process to which something belongs."""
    if os.getpid() != owner:
        raise RuntimeError("a forked process has no part in its parent's connections: it may open one of its own")


def end_child(owner: int) -> None:
    """End a child at once: nothing is flushed, closed or sent."""
    if os.getpid() != owner:
        os._exit(0)
