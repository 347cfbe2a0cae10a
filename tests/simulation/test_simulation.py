"""The simulation keeps the engine's invariants, repeats exactly, and detects faults."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from signalbox.tasks import rescue_jobs
from tests.simulation.__main__ import run_seed
from tests.simulation.outside import Session, open_session
from tests.simulation.world import World


@pytest.fixture
def session(dsn: str) -> Iterator[Session]:
    with closing(open_session(dsn)) as session:
        yield session


def test_invariants_hold_under_any_fault(session: Session) -> None:
    for seed in range(1, 9):  # CI plays a thousand: make simulate SEEDS=1000
        assert run_seed(seed, session) is None


def test_seed_takes_the_same_steps_each_time(session: Session) -> None:
    worlds = [World(7, session), World(3, session), World(7, session)]
    for world in worlds:
        world.simulate()
    first, _, again = worlds
    assert (first.steps, first.now, first.trace) == (again.steps, again.now, again.trace)


def test_failing_seed_shows_its_last_steps(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("list_lost", "end"):
        careless = rescue_jobs.SQL[name].replace(
            "lease_expires_at <= clock_timestamp()", "lease_expires_at IS NOT NULL"
        )
        monkeypatch.setitem(rescue_jobs.SQL, name, careless)
    failures = filter(None, (run_seed(seed, session) for seed in range(1, 20)))
    steps, _, outcome = next(failures).rpartition("\n")
    assert "whose lease had not run out" in outcome
    assert "rescue" in steps.splitlines()[-1]
