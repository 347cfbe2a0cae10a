"""Apply migrations: numbered .sql files, forward only, each in its own transaction, locked against a second migrator.

A file `0007_add_heartbeat.sql` begins with `-- serves: 6`: the oldest code, named by the schema it was written for,
that still works once the file is applied. So the code that runs during a deploy is known to be safe. Code that is too
old, and a database that is behind, are refused with the reason instead of failing somewhere later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

from signalbox.errors import DatabaseUnavailable, MigrationOverdue, MigrationRefused, MigratorBusy, SchemaMismatch
from signalbox.packs.pack import Pack
from signalbox.postgres.connection import Connection
from signalbox.postgres.error_details import without_details
from signalbox.postgres.queries import load_queries

if TYPE_CHECKING:
    from signalbox.migrate.grants import Grants

SQL = load_queries(__file__)
_FILE = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
_SERVES = re.compile(r"-- serves: (\d+)\n")
LOCK_WAIT = "5s"


@dataclass(frozen=True, slots=True)
class Migration:
    """Describe one file."""

    pack: str
    version: int
    name: str
    serves: int  # the oldest version of the code that works on the schema it makes
    sql: str

    @property
    def checksum(self) -> str:
        from hashlib import sha256

        return sha256(self.sql.encode()).hexdigest()

    @property
    def label(self) -> str:
        return f"{self.pack}/{self.version:04}_{self.name}"


@dataclass(frozen=True, slots=True)
class Applied:
    """Hold one row of schema_migrations."""

    pack: str
    version: int
    name: str
    serves: int
    checksum: str


def read_migrations(pack: Pack) -> tuple[Migration, ...]:
    """Return the pack's files in order, numbered from 1 without a gap."""
    migrations = tuple(_read(pack.name, path) for path in sorted(pack.migrations.glob("*.sql")))
    for expected, migration in enumerate(migrations, start=1):
        if migration.version != expected:
            raise MigrationRefused(
                f"migration {migration.label} should have number {expected:04}: numbers go up by one"
            )
    return migrations


def latest_version(pack: Pack) -> int:
    """Return the schema version that this code was written for, by the names of the files alone."""
    return max((int(path.name[:4]) for path in pack.migrations.glob("[0-9]*.sql")), default=0)


def plan(connection: Connection, packs: Sequence[Pack]) -> list[Migration]:
    """Return what would be applied, in order. Refuse a database that this code may not migrate."""
    applied = _applied(connection)
    return [migration for pack in packs for migration in _pending(read_migrations(pack), applied.get(pack.name, []))]


def apply(
    connection: Connection,
    packs: Sequence[Pack],
    applied_by: str,
    roles: Grants | None = None,
) -> list[Migration]:
    """Apply what is pending, and return it. A failure keeps the files before it and nothing of its own.

    With roles, the owner runs each migration, and what it has made gets its grants in the same transaction.
    """
    done: list[Migration] = []
    _prepare(connection)
    _record(connection, roles)  # for objects that a shared log-in made before there were roles
    for pack in packs:
        for migration in read_migrations(pack):
            if _apply_one(connection, pack, migration, applied_by, roles):
                done.append(migration)
    return done


def record_deploy(connection: Connection, version: str) -> None:
    """Record that code of this version is being deployed."""
    connection.execute(SQL["record_deploy"], {"version": version})


def versions(connection: Connection) -> dict[str, int]:
    """Return the version of each pack's schema."""
    return {pack: rows[-1].version for pack, rows in _applied(connection).items()}


def report(connection: Connection, packs: Sequence[Pack]) -> dict[str, Any]:
    """Return what is pending, or why this code may not migrate the database, as after a roll-back."""
    found = versions(connection)
    try:
        return {"pending": [migration.label for migration in plan(connection, packs)], "versions": found}
    except MigrationRefused as refusal:
        return {"pending": [], "versions": found, "fault": str(refusal)}


def ahead_of(connection: Connection, packs: Iterable[Pack]) -> set[str]:
    """Return the packs whose schema is newer than this code, as after a roll-back."""
    found = versions(connection)
    return {pack.name for pack in packs if found.get(pack.name, 0) > latest_version(pack)}


def require_current(connection: Connection, packs: Iterable[Pack]) -> None:
    """Refuse a database that is behind this code, or so far ahead that this code no longer works on it."""
    try:
        rows = connection.execute(SQL["newest_versions"]).fetchall()
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        raise SchemaMismatch(
            "the database has no Signalbox schema: run the migrator "
            '(`signalbox migrate`, or invoke it with {"action": "apply"})'
        ) from None
    found = {pack: (version, serves) for pack, version, serves in rows}
    for pack in packs:
        _require(pack.name, latest_version(pack), *found.get(pack.name, (0, 0)))


def _require(pack: str, code: int, version: int, serves: int) -> None:
    if version < code:
        raise SchemaMismatch(
            f"schema {pack} is at version {version} and this code needs {code}: run the migrator (`signalbox migrate`)"
        )
    if serves > code:
        raise SchemaMismatch(
            f"the database is newer than this code: schema {pack} is at version {version}, which serves code written "
            f"for {serves} and later, and this code was written for {code}; deploy the newer code"
        )


def _read(pack: str, path: Path) -> Migration:
    named, sql = _FILE.fullmatch(path.name), path.read_text("utf-8")
    serves = _SERVES.match(sql)
    if named is None or serves is None:
        raise MigrationRefused(
            f"migration {pack}/{path.name} must be named like 0007_add_heartbeat.sql and start with '-- serves: N'"
        )
    return Migration(pack, int(named[1]), named[2], int(serves[1]), sql)


def _applied(connection: Connection) -> dict[str, list[Applied]]:
    by_pack: dict[str, list[Applied]] = {}
    try:
        rows = connection.execute(SQL["list_applied"]).fetchall()
    except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
        _refuse_foreign_schema(connection)
        return by_pack
    for row in rows:
        by_pack.setdefault(row[0], []).append(Applied(*row))
    return by_pack


def _refuse_foreign_schema(connection: Connection) -> None:
    tables = [row[0] for row in connection.execute(SQL["list_tables"]).fetchall()]
    if "schema_migrations" in tables:
        return  # another migrator has begun since; we look again under the lock
    if tables:
        raise SchemaMismatch(
            f"schema signalbox holds tables ({', '.join(tables)}) and no record of migrations: something else, or "
            "another version, wrote them; move them away, or name another database"
        )


def _pending(migrations: Sequence[Migration], applied: Sequence[Applied]) -> Sequence[Migration]:
    known: Mapping[int, Migration] = {migration.version: migration for migration in migrations}
    for row in applied:
        label = f"{row.pack}/{row.version:04}_{row.name}"
        if row.version not in known:
            raise MigrationRefused(
                f"the database is newer than this code: it has {label}, and this code ends at {len(migrations):04}; "
                "deploy the newer code, or restore the database from a backup"
            )
        if known[row.version].checksum != row.checksum:
            raise MigrationRefused(
                f"migration {label} was changed after it was applied: put the file back as it was, and write a new one"
            )
    return migrations[len(applied) :]


def _prepare(connection: Connection) -> None:
    _applied(connection)  # this refuses a schema that something else wrote
    with connection.transaction():
        _lock(connection)
        connection.execute(SQL["create_record"])


def _record(connection: Connection, roles: Grants | None) -> None:
    if roles is not None:
        with connection.transaction():
            _lock(connection)
            roles.apply(connection)


def _apply_one(connection: Connection, pack: Pack, migration: Migration, applied_by: str, roles: Grants | None) -> bool:
    with connection.transaction():
        _lock(connection)
        # Read under the lock: another migrator may just have finished.
        pending = _pending(read_migrations(pack), _applied(connection).get(pack.name, []))
        if migration not in pending:
            return False
        with _explained(migration):
            connection.execute(sql.SQL(SQL["create_schema"]).format(pack=sql.Identifier(pack.name)))
            if roles is not None:
                roles.become_owner(connection, pack.name)
            connection.execute(migration.sql.encode())
            connection.execute(SQL["reset_role"])
        record = (
            migration.pack,
            migration.version,
            migration.name,
            migration.serves,
            migration.checksum,
            applied_by,
        )
        connection.execute(SQL["record"], record)
        if roles is not None:
            roles.apply(connection)
        return True


@contextmanager
def _explained(migration: Migration) -> Iterator[None]:
    """Raise the server's errors in words that say which migration failed and what to do."""
    try:
        yield
    except psycopg.errors.LockNotAvailable:
        raise MigratorBusy(
            f"migration {migration.label} waited {LOCK_WAIT} for a table in use, and changed nothing: try again"
        ) from None
    except psycopg.errors.QueryCanceled:
        raise MigrationOverdue(
            f"migration {migration.label} took longer than the migrator may, and left nothing behind: split it, or "
            "apply it from a machine that has the time"
        ) from None
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(
            f"the connection broke in migration {migration.label}, which left nothing behind: {error}"
        ) from None
    except psycopg.Error as error:
        raise MigrationRefused(
            f"migration {migration.label} failed and left nothing behind: {without_details(error)}"
        ) from None


def _lock(connection: Connection) -> None:
    # Held to the end of the transaction, not of the session, so that no proxy has to pin the connection.
    connection.execute(SQL["set_lock_wait"], (LOCK_WAIT,))
    try:
        connection.execute(SQL["lock"])
    except psycopg.errors.LockNotAvailable:
        raise MigratorBusy(
            f"another migrator has been at work for more than {LOCK_WAIT}: try again once it is done"
        ) from None
