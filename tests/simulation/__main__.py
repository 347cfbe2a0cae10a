"""Run seeds (`make simulate SEED=17`, or `SEEDS=1000`) and print the last steps of failed ones."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from signalbox.engine_pack import ENGINE
from signalbox.testing.databases import make_schema
from signalbox_laptop.postgres.embedded import EmbeddedPostgres
from tests.simulation.outside import Session, open_session
from tests.simulation.world import World


@contextmanager
def own_server() -> Iterator[str]:
    """Yield the DSN of a server for this run alone."""
    with TemporaryDirectory(prefix="signalbox-simulation-", ignore_cleanup_errors=True) as home:
        postgres = EmbeddedPostgres(Path(home), durable=False)
        try:
            dsn = postgres.start()
            make_schema(dsn, [ENGINE])
            yield dsn
        finally:
            postgres.stop()


def run_seed(seed: int, session: Session) -> str | None:
    """Return None, or what went wrong with the steps before it."""
    world = World(seed, session)
    try:
        world.simulate()
    except Exception as error:
        lines = [f"{now:10.3f}  {actor:<16}  {what}" for now, actor, what in world.trace]
        return "\n".join([*lines, f"seed {seed}: {type(error).__name__}: {' '.join(str(error).split())}"])
    return None


def run_seeds(seeds: Sequence[int]) -> list[str]:
    """Return what went wrong in the first seed that failed."""
    with own_server() as dsn, closing(open_session(dsn)) as session:
        failures = (run_seed(seed, session) for seed in seeds)
        return list(islice(filter(None, failures), 1))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("seed", type=int, help="the first")
    parser.add_argument("seeds", type=int, help="how many")
    given = parser.parse_args()
    began, processes = time.monotonic(), min(os.cpu_count() or 1, given.seeds)
    seeds = range(given.seed, given.seed + given.seeds)
    with ProcessPoolExecutor(processes) as pool:
        failures = list(chain(*pool.map(run_seeds, [seeds[first::processes] for first in range(processes)])))
    print(*failures, sep="\n\n")
    outcome = "; ".join(failure.rpartition("\n")[2] for failure in failures) or "all is well"
    print(f"{given.seeds} seeds in {time.monotonic() - began:.0f} s: {outcome}")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
