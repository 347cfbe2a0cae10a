"""Migrations go forward only, one at a time, each whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread

import psycopg
import pytest

from signalbox.app import App
from signalbox.engine_pack import ENGINE
from signalbox.errors import MigrationRefused, MigratorBusy, PayloadRefused, SchemaMismatch
from signalbox.invocation import Invocation
from signalbox.migrate import migrations
from signalbox.migrate.migrator import Migrator
from signalbox.packs.pack import Pack
from signalbox.testing.stage import NOON, as_url
from tests.support.schema_objects import schema_objects

NUMBERS = "-- serves: 1\nCREATE TABLE numbers.numbers (n int);\n"


@pytest.fixture
def numbers(tmp_path: Path) -> Pack:
    """Return a pack with a migration of its own."""
    (tmp_path / "0001_numbers.sql").write_text(NUMBERS)
    return Pack("numbers", (), tmp_path)


@pytest.fixture
def empty(empty_dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(empty_dsn, autocommit=True) as connection:
        yield connection


def test_a_plan_changes_nothing(empty: psycopg.Connection, numbers: Pack) -> None:
    planned = migrations.plan(empty, [ENGINE, numbers])
    assert [migration.label for migration in planned][-1] == "numbers/0001_numbers"
    assert schema_objects(empty) == []


def test_applying_twice_applies_once(empty: psycopg.Connection, numbers: Pack) -> None:
    first = migrations.apply(empty, [ENGINE, numbers], "tests")
    assert [migration.pack for migration in first][-1] == "numbers"
    assert migrations.apply(empty, [ENGINE, numbers], "tests") == []
    assert migrations.versions(empty) == {"numbers": 1, "signalbox": migrations.latest_version(ENGINE)}


def test_a_migration_that_fails_leaves_what_came_before_and_nothing_of_its_own(
    empty: psycopg.Connection, numbers: Pack
) -> None:
    (numbers.migrations / "0002_broken.sql").write_text(
        "-- serves: 1\nCREATE TABLE numbers.half (n int); SELECT 1 / 0;\n"
    )
    with pytest.raises(MigrationRefused, match="numbers/0002_broken failed and left nothing behind: division by zero"):
        migrations.apply(empty, [ENGINE, numbers], "tests")
    assert migrations.versions(empty)["numbers"] == 1
    assert empty.execute("SELECT to_regclass('numbers.half')").fetchone() == (None,)


def test_a_migration_changed_after_the_fact_is_refused(empty: psycopg.Connection, numbers: Pack) -> None:
    migrations.apply(empty, [numbers], "tests")
    (numbers.migrations / "0001_numbers.sql").write_text(NUMBERS + "-- an afterthought\n")
    with pytest.raises(MigrationRefused, match="0001_numbers was changed after it was applied"):
        migrations.plan(empty, [numbers])
    with pytest.raises(MigrationRefused, match="0001_numbers was changed after it was applied"):
        migrations.apply(empty, [numbers], "tests")


def test_a_database_that_is_newer_than_the_code_is_refused(empty: psycopg.Connection, numbers: Pack) -> None:
    second = numbers.migrations / "0002_more.sql"
    second.write_text("-- serves: 1\nALTER TABLE numbers.numbers ADD COLUMN m int;\n")
    migrations.apply(empty, [numbers], "tests")
    second.unlink()
    with pytest.raises(MigrationRefused, match="newer than this code: it has numbers/0002_more"):
        migrations.plan(empty, [numbers])
    migrations.require_current(empty, [numbers])  # the migration serves code written for 1: it may go on running


def test_code_that_a_newer_schema_no_longer_serves_is_refused(empty: psycopg.Connection, numbers: Pack) -> None:
    second = numbers.migrations / "0002_less.sql"
    second.write_text("-- serves: 2\nALTER TABLE numbers.numbers DROP COLUMN n;\n")
    migrations.apply(empty, [numbers], "tests")
    second.unlink()
    with pytest.raises(SchemaMismatch, match="newer than this code: schema numbers is at version 2"):
        migrations.require_current(empty, [numbers])


def test_code_is_refused_by_a_schema_that_is_behind(empty: psycopg.Connection, numbers: Pack) -> None:
    migrations.apply(empty, [numbers], "tests")
    (numbers.migrations / "0002_more.sql").write_text("-- serves: 1\nSELECT 1;\n")
    with pytest.raises(SchemaMismatch, match="schema numbers is at version 1 and this code needs 2: run the migrator"):
        migrations.require_current(empty, [numbers])


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("0003_gap.sql", "-- serves: 1\n", "should have number 0002"),
        ("0002_Silent.sql", "-- serves: 1\n", "must be named like"),
        ("0002_silent.sql", "SELECT 1;\n", "start with '-- serves: N'"),
    ],
)
def test_a_file_that_breaks_the_order_is_refused(numbers: Pack, name: str, text: str, words: str) -> None:
    (numbers.migrations / name).write_text(text)
    with pytest.raises(MigrationRefused, match=words):
        migrations.read_migrations(numbers)


def test_two_migrators_at_once_apply_each_migration_once(empty_dsn: str, numbers: Pack) -> None:
    for number in range(2, 12):
        sql = f"-- serves: 1\nSELECT pg_sleep(0.01); CREATE TABLE numbers.n{number} (n int);\n"
        (numbers.migrations / f"{number:04}_n.sql").write_text(sql)
    applied: list[list[migrations.Migration]] = []

    def migrate() -> None:
        with psycopg.connect(empty_dsn, autocommit=True) as connection:
            applied.append(migrations.apply(connection, [ENGINE, numbers], "tests"))

    migrators = [Thread(target=migrate) for _ in range(4)]
    for migrator in migrators:
        migrator.start()
    for migrator in migrators:
        migrator.join()
    labels = [migration.label for done in applied for migration in done]
    assert len(applied) == 4
    assert sorted(labels) == sorted(set(labels))
    assert len(labels) == 11 + migrations.latest_version(ENGINE)


def test_a_migrator_that_begins_between_two_looks_of_another_is_no_stranger(
    empty: psycopg.Connection, empty_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    look_again = migrations._refuse_foreign_schema

    def after_another_has_begun(connection: psycopg.Connection) -> None:
        monkeypatch.setattr(migrations, "_refuse_foreign_schema", look_again)
        with psycopg.connect(empty_dsn, autocommit=True) as other:
            migrations.apply(other, [ENGINE], "the other")
        look_again(connection)

    monkeypatch.setattr(migrations, "_refuse_foreign_schema", after_another_has_begun)
    assert migrations.apply(empty, [ENGINE], "tests") == []


def test_a_migrator_does_not_wait_for_another_for_ever(
    empty: psycopg.Connection, empty_dsn: str, numbers: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "LOCK_WAIT", "50ms")
    with psycopg.connect(empty_dsn) as other:
        other.execute(migrations.SQL["lock"])
        with pytest.raises(MigratorBusy, match="another migrator has been at work"):
            migrations.apply(empty, [numbers], "tests")
    migrations.apply(empty, [numbers], "tests")


def test_a_migration_that_meets_a_table_in_use_gives_up_and_changes_nothing(
    empty: psycopg.Connection, empty_dsn: str, numbers: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "LOCK_WAIT", "50ms")
    migrations.apply(empty, [numbers], "tests")
    (numbers.migrations / "0002_more.sql").write_text("-- serves: 1\nALTER TABLE numbers.numbers ADD COLUMN m int;\n")
    with psycopg.connect(empty_dsn) as other:
        other.execute("SELECT * FROM numbers.numbers")
        with pytest.raises(MigratorBusy, match="waited 50ms for a table in use, and changed nothing"):
            migrations.apply(empty, [numbers], "tests")
    assert migrations.versions(empty) == {"numbers": 1}


def test_tables_that_something_else_wrote_are_not_touched(empty: psycopg.Connection) -> None:
    empty.execute("CREATE SCHEMA signalbox")
    empty.execute("CREATE TABLE signalbox.job_locks (id text PRIMARY KEY, locked_until timestamptz)")
    with pytest.raises(SchemaMismatch, match=r"holds tables \(job_locks\) and no record of migrations"):
        migrations.plan(empty, [ENGINE])
    with pytest.raises(SchemaMismatch, match=r"holds tables \(job_locks\) and no record of migrations"):
        migrations.apply(empty, [ENGINE], "tests")


def test_a_lock_table_that_another_version_wrote_is_named(dsn: str, db: psycopg.Connection) -> None:
    db.execute("ALTER TABLE signalbox.job_locks RENAME COLUMN expires_at TO locked_until")
    engine = App.start({"SIGNALBOX_STACK": "signalbox", "SIGNALBOX_DATABASE_URL": as_url(dsn)})
    with (
        closing(engine.resources.database),
        pytest.raises(SchemaMismatch, match=r"expires_at.*another version wrote it"),
    ):
        engine.run_task({"task": "sweep_runs"}, Invocation.of("r", NOON, 60))
    assert db.execute("SELECT count(*) FROM signalbox.job_history").fetchone() == (0,)


def test_an_unmigrated_database_is_refused_with_what_to_do(empty_dsn: str) -> None:
    engine = App.start({"SIGNALBOX_STACK": "signalbox", "SIGNALBOX_DATABASE_URL": as_url(empty_dsn)})
    with (
        closing(engine.resources.database),
        pytest.raises(SchemaMismatch, match="no Signalbox schema: run the migrator"),
    ):
        engine.run_task({"task": "sweep_runs"}, Invocation.of("r", NOON, 60))


def test_the_migrator_function_plans_applies_and_reports(empty_dsn: str) -> None:
    migrator = Migrator.start({"SIGNALBOX_STACK": "signalbox", "SIGNALBOX_DATABASE_URL": as_url(empty_dsn)})
    with closing(migrator.database):
        planned = migrator.act({"action": "plan"}, "tests")
        assert (planned["applied"], planned["versions"]) == ([], {})
        applied = migrator.act({"action": "apply"}, "tests")
        assert applied["applied"] == planned["pending"]
        assert applied["pending"] == []
        assert migrator.act({"action": "report"}, "tests")["versions"] == applied["versions"]
        refused: list[object] = [{}, {"action": "aply"}, [], {"action": "plan", "dry": True}]
        for event in refused:
            with pytest.raises(PayloadRefused):
                migrator.act(event, "tests")
