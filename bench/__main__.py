"""`make bench` prints what each benchmark measured, against what, and the ratio beside its bound."""

from __future__ import annotations

import sys
from collections.abc import Callable

from bench.of_jobs import (
    caps,
    cells,
    depth,
    footprint,
    jobs,
    mixed,
    old_snapshot,
    operating,
    retention,
    service,
    submit,
    transactional,
    waiting,
)
from bench.of_packs import compliance, passports, records
from bench.of_tasks import bytecode, deliveries, listing, purge, run, start, usage, watchpoints
from bench.ratio import Ratio
from bench.stage.database import bench_database

BENCHMARKS: dict[str, Callable[[str], list[Ratio]]] = {
    "start": start.measure,
    "run": run.measure,
    "bytecode": bytecode.measure,
    "listing": listing.measure,
    "purge": purge.measure,
    "watchpoints": watchpoints.measure,
    "usage": usage.measure,
    "deliveries": deliveries.measure,
    "jobs": jobs.measure,
    "waiting": waiting.measure,
    "mixed": mixed.measure,
    "caps": caps.measure,
    "submit": submit.measure,
    "transactional": transactional.measure,
    "depth": depth.measure,
    "service": service.measure,
    "footprint": footprint.measure,
    "retention": retention.measure,
    "old_snapshot": old_snapshot.measure,
    "operating": operating.measure,
    "cells": cells.measure,
    "compliance": compliance.measure,
    "passports": passports.measure,
    "records": records.measure,
}


def main(names: list[str]) -> int:
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        print(f"no benchmark is named {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    with bench_database() as dsn:
        for name in names or BENCHMARKS:
            for ratio in BENCHMARKS[name](dsn):
                print(ratio, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
