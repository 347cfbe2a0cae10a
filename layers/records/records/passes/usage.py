"""Count what all answers of a pass have cost: those too that were cut, malformed or came too late."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from signalbox import JobContext

_STEP = "answer:"  # of each execution that has asked


@dataclass(frozen=True, slots=True)
class Usage:
    """Hold tokens and time."""

    input_tokens: int = 0
    output_tokens: int = 0
    milliseconds: int = 0


def keep(context: JobContext, usage: Usage) -> None:
    """Keep what this execution's answer has cost, whatever becomes of the attempt."""
    context.once(f"{_STEP}{context.job.execution}", lambda: asdict(usage))


def total(context: JobContext) -> Usage:
    found: list[Mapping[str, int]] = context.kept(_STEP)
    return Usage(*(sum(one[name] for one in found) for name in Usage.__slots__))
