"""Owner, writer and reader have exactly their rights on every table and function."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from forecasts.pack import PACK
from signalbox.engine_pack import ENGINE
from signalbox.errors import MigrationRefused
from signalbox.migrate import migrations
from signalbox.migrate.grants import Grants, find_roles
from signalbox.migrate.logins import LogIn
from signalbox.packs.pack import Pack
from signalbox.testing.databases import log_in, make_schema, new_database

ROOMS = ("signalbox", "forecasts")
WRITES = {"SELECT", "INSERT", "UPDATE", "DELETE"}
ALL = (*sorted(WRITES), "TRUNCATE", "REFERENCES", "TRIGGER")


@pytest.fixture(scope="module")
def migrated(server: str) -> Iterator[psycopg.Connection]:
    """Migrate the engine and a pack; connect as superuser."""
    with new_database(server) as dsn:
        make_schema(dsn, [ENGINE, PACK])
        with psycopg.connect(dsn, autocommit=True) as connection:
            yield connection


def tables(db: psycopg.Connection) -> list[tuple[str, str, str]]:
    return db.execute(
        "SELECT c.oid::regclass::text, c.relkind::text, pg_get_userbyid(c.relowner)::text FROM pg_class AS c "
        "WHERE c.relnamespace::regnamespace::text = ANY (%s) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')",
        (list(ROOMS),),
    ).fetchall()


def rights(db: psycopg.Connection, role: str, table: str) -> set[str]:
    query = "SELECT p FROM unnest(%s::text[]) AS p WHERE has_table_privilege(%s, %s, p)"
    return {row[0] for row in db.execute(query, (list(ALL), role, table)).fetchall()}


def test_owner_owns_writer_writes_and_reader_reads_each_table(migrated: psycopg.Connection) -> None:
    found = tables(migrated)
    assert len(found) > 40
    for table, kind, owner in found:
        only_read = kind in "vm" or table == "signalbox.schema_migrations"
        assert owner == "signalbox_owner", table
        assert rights(migrated, "signalbox_writer", table) == ({"SELECT"} if only_read else WRITES), table
        assert rights(migrated, "signalbox_reader", table) == {"SELECT"}, table


def test_each_function_is_the_owners_and_only_the_writer_calls_it(migrated: psycopg.Connection) -> None:
    found = migrated.execute(
        "SELECT oid::regprocedure::text, pg_get_userbyid(proowner)::text, "
        "has_function_privilege('signalbox_writer', oid, 'EXECUTE'), "
        "has_function_privilege('signalbox_reader', oid, 'EXECUTE'), has_function_privilege('public', oid, 'EXECUTE') "
        "FROM pg_proc WHERE pronamespace::regnamespace::text = ANY (%s)",
        (list(ROOMS),),
    ).fetchall()
    assert len(found) > 10
    assert [row for row in found if row[1:] != ("signalbox_owner", True, False, False)] == []


def test_a_function_with_the_owners_rights_says_where_it_looks_for_names(migrated: psycopg.Connection) -> None:
    found = migrated.execute(
        "SELECT oid::regprocedure::text FROM pg_proc WHERE prosecdef AND pronamespace::regnamespace::text = ANY (%s) "
        "AND NOT coalesce(array_to_string(proconfig, ','), '') LIKE '%%search_path=pg_catalog, pg_temp%%'",
        (list(ROOMS),),
    ).fetchall()
    assert found == []


@pytest.mark.parametrize("role", ["writer", "reader"])
def test_nobody_but_the_owner_makes_anything_in_the_schemas(migrated: psycopg.Connection, role: str) -> None:
    query = "SELECT has_schema_privilege(%s, nspname, 'CREATE') FROM pg_namespace WHERE nspname::text = ANY (%s)"
    assert migrated.execute(query, (f"signalbox_{role}", list(ROOMS))).fetchall() == [(False,), (False,)]
    staging = migrated.execute(query, (f"signalbox_{role}", ["signalbox_staging"])).fetchone()
    assert staging == (role == "writer",)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE signalbox.mine ()",
        "ALTER TABLE signalbox.jobs ADD COLUMN mine int",
        "DROP TABLE signalbox.job_locks",
        "TRUNCATE signalbox.job_locks",
        "UPDATE signalbox.schema_migrations SET serves = 99",
        "CREATE OR REPLACE FUNCTION signalbox.worker_lost() RETURNS jsonb LANGUAGE sql AS 'SELECT NULL::jsonb'",
        "SET ROLE signalbox_owner",
    ],
)
def test_a_writer_changes_no_schema(writer: str, statement: str) -> None:
    with psycopg.connect(writer, autocommit=True) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(statement.encode())


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO signalbox.job_locks VALUES ('l', 'w', now(), now())",
        "DELETE FROM signalbox.job_history",
        "SELECT signalbox.claim_jobs(gen_random_uuid(), '{}', 'w', 'n', interval '1 s')",
        "CREATE TABLE signalbox_staging.mine ()",
    ],
)
def test_a_reader_writes_nothing_and_calls_nothing(reader: str, statement: str) -> None:
    with psycopg.connect(reader, autocommit=True) as connection:
        assert connection.execute("SELECT count(*) FROM signalbox.jobs").fetchone() == (0,)
        refused = (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedFunction)
        with pytest.raises(refused):
            connection.execute(statement.encode())


@pytest.fixture
def plain(empty_dsn: str) -> Iterator[str]:
    """Create a database for an owner without power over roles."""
    name = f"plain_{psycopg.conninfo.conninfo_to_dict(empty_dsn)['dbname']}"
    with psycopg.connect(empty_dsn, autocommit=True) as db:
        database = sql.Identifier(db.info.dbname)
        role = sql.Identifier(name)
        db.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'tests'").format(role))
        db.execute(sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(database, role))
        yield make_conninfo(empty_dsn, user=name, password="tests")
        db.execute(sql.SQL("DROP OWNED BY {}").format(role))
        db.execute(sql.SQL("DROP ROLE {}").format(role))


def test_owner_without_role_rights_uses_one_log_in_and_advises_grants(plain: str) -> None:
    with psycopg.connect(plain, autocommit=True) as connection:
        roles = find_roles(connection)
        assert not roles.apart
        assert "GRANT signalbox_owner TO " in roles.advice
        migrations.apply(connection, [ENGINE], "tests", roles)
        migrations.require_current(connection, [ENGINE])
        with pytest.raises(MigrationRefused, match="can't be made: role"):
            roles.keep(connection, LogIn("functions", "p", "writer"))


def test_tables_pass_to_the_owner_once_a_dba_makes_the_roles(
    plain: str, empty_dsn: str, db: psycopg.Connection
) -> None:
    with psycopg.connect(plain, autocommit=True) as connection:
        migrations.apply(connection, [ENGINE], "tests", find_roles(connection))
        with psycopg.connect(empty_dsn, autocommit=True) as dba:
            grant = sql.SQL("GRANT signalbox_owner TO {}").format(sql.Identifier(connection.info.user))
            dba.execute(grant)
        roles = find_roles(connection)
        assert roles.apart
        assert migrations.apply(connection, [ENGINE], "tests", roles) == []
        assert {owner for _, _, owner in tables(connection)} == {"signalbox_owner"}
    with psycopg.connect(log_in(empty_dsn, "writer"), autocommit=True) as connection:
        connection.execute("SELECT signalbox.make_partitions('job_executions', 1)")


def test_a_later_migration_s_table_has_its_grants_with_the_migration_itself(
    dsn: str, db: psycopg.Connection, tmp_path: Path
) -> None:
    (tmp_path / "0001_n.sql").write_text(
        "-- serves: 1\nCREATE TABLE numbers.n (id serial);\n"
        "CREATE FUNCTION numbers.next() RETURNS int LANGUAGE sql AS 'SELECT 1';\n"
    )
    (tmp_path / "0002_broken.sql").write_text("-- serves: 1\nSELECT 1 / 0;\n")
    pack = Pack("numbers", (), tmp_path)
    with pytest.raises(MigrationRefused):
        migrations.apply(db, [ENGINE, pack], "tests", find_roles(db))
    with psycopg.connect(log_in(dsn, "writer"), autocommit=True) as writer:
        writer.execute("INSERT INTO numbers.n DEFAULT VALUES")
        writer.execute("SELECT numbers.next()")
    with psycopg.connect(log_in(dsn, "reader"), autocommit=True) as reader:
        assert reader.execute("SELECT count(*) FROM numbers.n").fetchone() == (1,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            reader.execute("SELECT numbers.next()")


def test_a_private_schema_is_the_writers_alone(dsn: str, db: psycopg.Connection, tmp_path: Path) -> None:
    first = "-- serves: 1\nCREATE TABLE health.notes (id int);\n"
    (tmp_path / "0001_n.sql").write_text(first + "INSERT INTO signalbox.private_schemas VALUES ('health', 'it is');\n")
    (tmp_path / "0002_n.sql").write_text("-- serves: 1\nCREATE TABLE health.later (id int);\n")
    migrations.apply(db, [ENGINE, Pack("health", (), tmp_path)], "tests", find_roles(db))
    with psycopg.connect(log_in(dsn, "writer"), autocommit=True) as writer:
        writer.execute("INSERT INTO health.notes VALUES (1)")
    with psycopg.connect(log_in(dsn, "reader"), autocommit=True) as reader:
        for table in ("health.notes", "health.later"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute(f"SELECT FROM {table}")
    assert rights(db, "signalbox_reader", "health.later") == set()


def test_private_schema_that_is_gone_takes_nothing_from_the_reader(db: psycopg.Connection, tmp_path: Path) -> None:
    db.execute("INSERT INTO signalbox.private_schemas VALUES ('gone', 'its pack is')")
    (tmp_path / "0001_n.sql").write_text("-- serves: 1\nCREATE TABLE numbers.n (id int);\n")
    migrations.apply(db, [ENGINE, Pack("numbers", (), tmp_path)], "tests", find_roles(db))
    assert rights(db, "signalbox_reader", "numbers.n") == {"SELECT"}


def test_what_the_owners_functions_make_later_has_its_grants_as_well(dsn: str, db: psycopg.Connection) -> None:
    db.execute("SET ROLE signalbox_owner")
    db.execute("CREATE TABLE signalbox.made_at_night (n int)")
    db.execute("RESET ROLE")
    assert rights(db, "signalbox_writer", "signalbox.made_at_night") == WRITES
    assert rights(db, "signalbox_reader", "signalbox.made_at_night") == {"SELECT"}


def test_applying_again_changes_no_grant(db: psycopg.Connection) -> None:
    rows = "SELECT xmin::text, oid FROM pg_class UNION ALL SELECT xmin::text, oid FROM pg_proc ORDER BY 2"
    before = db.execute(rows).fetchall()
    migrations.apply(db, [ENGINE], "tests", find_roles(db))
    assert db.execute(rows).fetchall() == before


def test_migrators_of_several_databases_in_one_cluster_do_not_trip_over_the_roles(server: str) -> None:
    faults: list[BaseException] = []

    def migrate(dsn: str) -> None:
        try:
            with psycopg.connect(dsn, autocommit=True) as connection:
                assert find_roles(connection).apart
        except BaseException as error:
            faults.append(error)

    with new_database(server) as one, new_database(server) as another:
        migrators = [Thread(target=migrate, args=(dsn,)) for dsn in (one, another) * 3]
        for migrator in migrators:
            migrator.start()
        for migrator in migrators:
            migrator.join()
    assert faults == []


@pytest.mark.parametrize("name", ["postgres", "signalbox_owner"])
def test_a_secret_gives_no_password_to_a_superuser_or_a_group(db: psycopg.Connection, name: str) -> None:
    with pytest.raises(MigrationRefused, match=f"names '{name}', which is the migrator's own log-in"):
        Grants(apart=True).keep(db, LogIn(name, "p", "writer"))
