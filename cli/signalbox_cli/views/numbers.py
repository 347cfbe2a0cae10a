"""Write numbers in a sentence."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Return the count with its noun, in the plural unless it is one."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
