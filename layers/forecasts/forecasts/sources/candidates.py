"""Find what upstream offers each model beyond the known runs: complete cycles, and pairs of instants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from forecasts.runs.inference_payload import Model
from forecasts.runs.store import KnownRun, RunCandidate
from forecasts.settings import ForecastSettings, settings_of
from forecasts.sources.gfs import Cycles, KeyTemplate, cycles_between, find_cycles
from forecasts.sources.goes import Goes
from forecasts.sources.mirror import first_answer
from forecasts.sources.mirrors import mirrors_of
from forecasts.sources.mrms import Mrms
from forecasts.sources.nowcast import match
from forecasts.sources.observed import Layout, instants_between
from signalbox.ledger.context import Context


@dataclass(frozen=True, slots=True)
class Window:
    """Select runs after the first instant and not after the second."""

    since: datetime
    until: datetime

    def holds(self, instant: datetime) -> bool:
        return self.since < instant <= self.until


@dataclass(frozen=True, slots=True)
class Candidates:
    """List runs that could be made now, oldest first."""

    candidates: tuple[RunCandidate, ...]
    skipped: int = 0  # begun upstream, and not complete or without a match
    left_over: int = 0  # beyond what one poll looks at


def list_medium_range_candidates(context: Context, window: Window, known_runs: Sequence[KnownRun]) -> Candidates:
    """Return GFS cycles."""
    settings = settings_of(context)
    template = KeyTemplate.of(settings.gfs_key_template)
    known = {run.run_timestamp for run in known_runs}
    wanted = [cycle for cycle in cycles_between(window.since, window.until) if cycle not in known]
    if not wanted:
        return Candidates(())
    found: Cycles = first_answer(
        context, "gfs", mirrors_of(settings, "gfs"), lambda mirror: find_cycles(mirror, template, wanted)
    )
    complete = [cycle for cycle in found.listed if cycle.complete]
    return Candidates(
        tuple(RunCandidate("medium_range", cycle.instant, (cycle.reference,)) for cycle in complete),
        skipped=len(found.listed) - len(complete),
        left_over=found.left_over,
    )


def list_nowcast_candidates(context: Context, window: Window, known_runs: Sequence[KnownRun]) -> Candidates:
    """Return pairs of GOES and MRMS instants. The satellite's instant names the run."""
    settings = settings_of(context)
    tolerance = timedelta(seconds=settings.nowcast_tolerance_seconds)
    goes = Goes(settings.goes_product, settings.goes_files_per_instant)
    satellite = _instants(context, "goes", goes, window)
    radar = _instants(context, "mrms", Mrms(settings.mrms_product), Window(window.since - tolerance, window.until))
    # A known run without a radar instant takes part in the matching, and so keeps others from its instant.
    known = {run.run_timestamp for run in known_runs}
    paired = {run.run_timestamp for run in known_runs if run.radar_timestamp}
    used = {run.radar_timestamp for run in known_runs}
    pairs = match(satellite.keys() - paired, radar.keys() - used, tolerance)
    new = [pair for pair in pairs if pair.satellite not in known]
    return Candidates(
        tuple(
            RunCandidate("nowcast", pair.satellite, satellite[pair.satellite] + radar[pair.radar], pair.radar)
            for pair in new
        ),
        skipped=len(satellite.keys() - known) - len(new),
    )


OFFERS: Mapping[Model, Callable[[Context, Window, Sequence[KnownRun]], Candidates]] = {
    # First, since there are few of them: a rush of nowcasts must not use up the limit.
    "medium_range": list_medium_range_candidates,
    "nowcast": list_nowcast_candidates,
}


def _instants(context: Context, source: str, layout: Layout, window: Window) -> dict[datetime, tuple[str, ...]]:
    mirrors = mirrors_of(settings_of(context), source)
    return first_answer(
        context, source, mirrors, lambda mirror: instants_between(mirror, layout, window.since, window.until)
    )


def likely_references(settings: ForecastSettings, model: Model, run_timestamp: datetime) -> tuple[str, ...]:
    """Return where a run's files likely are, for a row without references: at the first mirrors, not asking them."""
    if model == "medium_range":
        template = KeyTemplate.of(settings.gfs_key_template)
        return (mirrors_of(settings, "gfs")[0].reference(template.prefix(run_timestamp)),)
    goes, mrms = Goes(settings.goes_product), Mrms(settings.mrms_product)
    return (
        mirrors_of(settings, "goes")[0].reference(goes.stem(run_timestamp)),
        mirrors_of(settings, "mrms")[0].reference(mrms.stem(run_timestamp)),
    )
