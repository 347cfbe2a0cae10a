"""The pack's schema."""

from __future__ import annotations

from pathlib import Path

import psycopg

from forecasts import pack
from tests.support.catalogue import catalogue
from tests.support.stage import Stage


def test_the_packs_migrations_together_make_the_schema_that_stands_in_the_repository(
    empty_dsn: str, db: psycopg.Connection
) -> None:
    with psycopg.connect(empty_dsn, autocommit=True) as empty:
        empty.execute((Path(pack.__file__).parent / "schema.sql").read_bytes())
        assert catalogue(empty, "forecasts") == catalogue(db, "forecasts")
    assert len(catalogue(db, "forecasts")) > 200


def test_the_pack_takes_the_place_of_the_engines_stand_in(stage: Stage) -> None:
    assert stage.engine.tools.registry.find("poll_data").module == "forecasts.tasks.poll_data"
