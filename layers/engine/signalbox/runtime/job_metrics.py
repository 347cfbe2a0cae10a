"""Count the ends of jobs and the dead letters, for workers and sweeps."""

from __future__ import annotations

from collections.abc import Mapping

from signalbox.runtime.metrics import write_line

NAMES = {
    "completed": "JobsCompleted",
    "failed": "AttemptsFailed",
    "timeout": "AttemptsFailed",
}


def write_metrics(stack: str, counts: Mapping[tuple[str, str], int], messages: int, claimed: int) -> None:
    """Write a line for each job type of an invocation: its attempts by how they ended."""
    by_type: dict[str, dict[str, int]] = {}
    for (job_type, execution), number in counts.items():
        by_type.setdefault(job_type, {})[execution] = number
    for job_type, ended in by_type.items():
        counted: dict[str, float] = {}
        for execution, number in ended.items():
            if execution in NAMES:
                counted[NAMES[execution]] = counted.get(NAMES[execution], 0) + number
        write_line(stack, "batch.ended", counted, job_type=job_type, messages=messages, claimed=claimed, **ended)


def count_dead_letters(stack: str, severity: str, number: int) -> None:
    """Count the dead letters that were just reported to operators; critical ones raise an alarm."""
    counted = {"CriticalDeadLetters": number} if severity == "critical" else {}
    write_line(stack, "dead_letters.notified", counted, severity=severity, number=number)
