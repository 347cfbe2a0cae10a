"""Numbers in a sentence."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """With its noun, in the plural where there is not one."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
