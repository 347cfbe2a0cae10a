"""Wait for the jobs of the packs that a demo runs, and count them by type."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from signalbox.engine_pack import load_packs
from signalbox_cli.views.table import Column, Row
from signalbox_laptop.packs import NAMES

if TYPE_CHECKING:
    import psycopg

COLUMNS = (Column("job type"), Column("jobs", right=True), Column("completed", right=True), Column("others"))
_PATIENCE_SECONDS = 60.0
_LOOK_AGAIN_SECONDS = 0.2
_FINAL = ("completed", "failed", "cancelled")


@dataclass(slots=True)
class PackJobs:
    """Hold how many jobs there are of each type and status."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)

    def finish(self, database: str) -> None:
        """Wait for a limited time until all of them have ended."""
        import psycopg

        until = time.monotonic() + _PATIENCE_SECONDS
        with psycopg.connect(database, autocommit=True) as connection:
            self._look(connection)
            while self._open() and time.monotonic() < until:
                time.sleep(_LOOK_AGAIN_SECONDS)
                self._look(connection)

    def failures(self) -> list[str]:
        """Return a line for each type that has jobs which did not complete."""
        left = {key: count for key, count in self.counts.items() if key[1] != "completed"}
        return [f"{count} of {name}: {status}, and not completed" for (name, status), count in sorted(left.items())]

    def rows(self) -> list[Row]:
        return [self._row(name) for name in dict.fromkeys(name for name, _ in sorted(self.counts))]

    def as_json(self) -> list[dict[str, object]]:
        return [
            {"job_type": name, "status": status, "jobs": count} for (name, status), count in sorted(self.counts.items())
        ]

    def _look(self, connection: psycopg.Connection) -> None:
        types = [one.name for pack in load_packs(NAMES) if pack.name in NAMES for one in pack.job_types]
        found = connection.execute(
            "SELECT job_type, status, count(*) FROM signalbox.jobs WHERE job_type = ANY (%s) GROUP BY 1, 2", (types,)
        )
        self.counts = Counter({(name, status): count for name, status, count in found.fetchall()})

    def _open(self) -> bool:
        return any(status not in _FINAL for _, status in self.counts)

    def _row(self, name: str) -> Row:
        of_type = {status: count for (one, status), count in self.counts.items() if one == name}
        others = ", ".join(f"{count} {status}" for status, count in sorted(of_type.items()) if status != "completed")
        return Row([name, str(sum(of_type.values())), str(of_type.get("completed", 0)), others])
