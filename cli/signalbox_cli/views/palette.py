"""Give each status a look: a symbol that tells it apart without colours, and a colour."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Look:
    """Describe how one status looks."""

    word: str
    symbol: str
    ascii: str  # if the terminal can't show the symbol
    style: str


# From best to worst: a grid column that covers several slots shows the worst of them.
LOOKS = {
    "succeeded": Look("ran", "■", "#", "green"),
    "skipped": Look("skipped", "–", "-", "cyan"),
    "due": Look("due", "·", ".", "bright_black"),
    "partial": Look("partial", "◧", "+", "yellow"),
    "running": Look("running", "▶", ">", "bright_blue"),
    "missed": Look("missed", "○", "o", "magenta"),
    "failed": Look("failed", "✗", "X", "bold red"),
}
WORST_LAST = tuple(LOOKS)
_OTHERS = {
    "completed": "green",
    "lost": "yellow",
    "paused": "yellow",
    "cancelled": "magenta",
    "ok": "green",
    "warn": "yellow",
    "fail": "bold red",
    "ERROR": "bold red",
    "CRITICAL": "bold red",
    "WARNING": "yellow",
    "WARN": "yellow",
    "DEBUG": "bright_black",
}


def style_of(status: str) -> str:
    look = LOOKS.get(status)
    return look.style if look else _OTHERS.get(status, "")


def symbol_of(status: str, *, unicode: bool) -> str:
    look = LOOKS.get(status, Look(status, "?", "?", ""))
    return look.symbol if unicode else look.ascii
