"""Write the job plane's figures as OpenMetrics text, for Prometheus and what reads as it does: pure.

All are gauges, of now and of the last hour: roll-ups are pruned, so nothing here counts up for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from signalbox.packs.job_type import Lane
from signalbox.stats.figures import Figures
from signalbox.stats.statistics import LIVE, Statistics, longest_wait

Sample = tuple[Mapping[str, str], float]
_QUANTILES = (0.5, 0.95, 0.99)
_HELP = {
    "jobs": "Jobs that have not ended, by lane and status.",
    "oldest_waiting_seconds": "How long the oldest due job of a lane has been due.",
    "silent_jobs": "Running jobs that have missed three heartbeats.",
    "open_dead_letters": "Dead letters that are pending or investigated, by job type.",
    "failed_jobs_last_hour": "Jobs that failed permanently in the last hour, by job type.",
    "attempts_last_hour": "Attempts that ended in the last hour, by job type and outcome.",
    "attempt_duration_seconds_last_hour": "Durations of the attempts of the last hour, by job type and quantile.",
    "attempt_wait_seconds_last_hour": "How long jobs waited in their lane in the last hour, by job type and quantile.",
}


def open_metrics(hour: Statistics) -> str:
    """Return the text for the statistics of the last hour."""
    families: dict[str, list[Sample]] = {name: [] for name in _HELP}
    for name, labels, value in _samples(hour):
        families[name].append((labels, value))
    lines = [line for name, samples in families.items() for line in _family(name, samples)]
    return "\n".join([*lines, "# EOF", ""])


def _family(name: str, samples: list[Sample]) -> Iterator[str]:
    yield f"# TYPE signalbox_{name} gauge"
    yield f"# HELP signalbox_{name} {_HELP[name]}"
    for labels, value in samples:
        named = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        yield f"signalbox_{name}{{{named}}} {value:g}" if named else f"signalbox_{name} {value:g}"


def _samples(hour: Statistics) -> Iterator[tuple[str, Mapping[str, str], float]]:
    for lane in Lane:
        yield from _of_lane(hour, lane)
    yield "silent_jobs", {}, hour.silence.silent
    for job_type, dead in sorted(hour.dead_letters.items()):
        yield "open_dead_letters", {"job_type": job_type}, dead.open
        yield "failed_jobs_last_hour", {"job_type": job_type}, dead.failed_jobs
    for job_type, figures in sorted(hour.by_type.items()):
        yield from _of_type(job_type, figures)


def _of_lane(hour: Statistics, lane: Lane) -> Iterator[tuple[str, Mapping[str, str], float]]:
    found = [one for one in hour.live if one.lane == lane]
    for status in LIVE:
        yield "jobs", {"lane": lane, "status": status}, sum(one.number for one in found if one.status == status)
    oldest = longest_wait(found, hour.until)
    yield "oldest_waiting_seconds", {"lane": lane}, oldest.total_seconds() if oldest else 0


def _of_type(job_type: str, figures: Figures) -> Iterator[tuple[str, Mapping[str, str], float]]:
    for outcome in ("completed", "failed", "timed_out", "cancelled", "throttled", "others"):
        yield "attempts_last_hour", {"job_type": job_type, "outcome": outcome}, getattr(figures, outcome)
    for quantile in _QUANTILES:
        labels = {"job_type": job_type, "quantile": f"{quantile:g}"}
        for name, milliseconds in (("duration", figures.duration_ms(quantile)), ("wait", figures.wait_ms(quantile))):
            if milliseconds is not None:
                yield f"attempt_{name}_seconds_last_hour", labels, milliseconds / 1000


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
