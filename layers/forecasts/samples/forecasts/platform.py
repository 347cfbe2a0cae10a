"""Load the platform's rows: platform.sql gives its times relative to the story's instant."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import psycopg

_ROWS = Path(__file__).with_suffix(".sql")


def load_platform(database: str, at: datetime) -> None:
    """Load all rows, or none."""
    with psycopg.connect(database) as connection:
        connection.execute("SELECT set_config('story.at', %s, true)", [at.isoformat()])
        connection.execute(_ROWS.read_bytes())
