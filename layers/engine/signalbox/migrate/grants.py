"""Decide who may do what in the database: three groups, whose members the functions log in as.

`signalbox_owner` owns our schemas, `signalbox_writer` works in them, `signalbox_reader` reads. The migrator brings each
object under them in the transaction of the migration that made it, so that running code never meets a table without its
grants. Where it may not make roles, one log-in serves for all, and the answer says what a DBA can do about it.
"""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from psycopg import sql

from signalbox.errors import MigrationRefused, MigratorBusy
from signalbox.migrate.logins import LogIn
from signalbox.postgres.connection import Connection
from signalbox.postgres.queries import load_queries

SQL = load_queries(__file__)
# Roles belong to the cluster, and a migrator's lock to its database: another database's migrator may change the same
# rows.
_COLLISIONS = (psycopg.errors.UniqueViolation, psycopg.errors.DuplicateObject, psycopg.errors.InternalError_)
_TRIES = 5


@dataclass(frozen=True, slots=True)
class Grants:
    """Manage a database's grants: separate roles, or one role for all with advice what to run about it."""

    apart: bool
    advice: str = ""

    def apply(self, connection: Connection) -> None:
        """Give what the caller's transaction has made its owner and its grants."""
        if not self.apart:
            return
        try:
            connection.execute(SQL["apply_grants"])
        except psycopg.errors.LockNotAvailable:
            raise MigratorBusy(
                "a table that is to get its owner is in use, and nothing was changed: try again"
            ) from None
        except psycopg.errors.InsufficientPrivilege as error:
            raise MigrationRefused(
                f"the schemas can't be given to signalbox_owner: {error.diag.message_primary}; the migrator's log-in "
                "must own their contents and be allowed to CREATE in the database"
            ) from None

    def become_owner(self, connection: Connection, schema: str) -> None:
        """Become the owner of this schema, to the end of the caller's transaction or `RESET ROLE`."""
        if self.apart:
            connection.execute(sql.SQL(SQL["become_owner"]).format(schema=sql.Identifier(schema)))

    def keep(self, connection: Connection, login: LogIn) -> None:
        """Make the log-in if it is missing, and set it as its secret has it."""
        if not self.apart:
            raise MigrationRefused(f"the log-in '{login.name}' can't be made: {self.advice}")
        with connection.transaction():
            found = connection.execute(SQL["find_login"], (login.name,)).fetchone()
            if found is not None and found[0]:
                raise MigrationRefused(
                    f"the secret of the {login.group} names '{login.name}', which is the migrator's own log-in, a "
                    "group, or may make roles: name one that is only for the functions"
                )
            _keep(connection, login, exists=found is not None)


def find_roles(connection: Connection) -> Grants:
    """Return the groups, made where they are missing and may be made."""
    for _ in range(_TRIES):
        there, ours = connection.execute(SQL["look"]).fetchone() or (False, False)
        if there and ours:
            return Grants(apart=True)
        try:
            connection.execute(SQL["make_groups"])
        except psycopg.errors.InsufficientPrivilege:
            return Grants(apart=False, advice=_advice(connection))
        except _COLLISIONS:
            continue
    return Grants(apart=False, advice=_advice(connection))


def _keep(connection: Connection, login: LogIn, *, exists: bool) -> None:
    # Hash the password here, so that no statement log of the server ever has it.
    verifier = connection.pgconn.encrypt_password(login.password.encode(), login.name.encode(), b"scram-sha-256")
    names = {
        "login": sql.Identifier(login.name),
        "group": sql.Identifier(f"signalbox_{login.group}"),
        "verifier": sql.Literal(verifier.decode()),
    }
    steps = [*([] if exists else ["create_login"]), "set_login", *(["keep_reading"] if login.group == "reader" else [])]
    for step in steps:
        connection.execute(sql.SQL(SQL[step]).format(**names))


def _advice(connection: Connection) -> str:
    user = sql.Identifier(connection.info.user).as_string(connection)
    return (
        f"role {user} may neither make roles nor become signalbox_owner, so one role serves for all; one that may make "
        "roles can run: CREATE ROLE signalbox_owner NOLOGIN; CREATE ROLE signalbox_writer NOLOGIN; "
        f"CREATE ROLE signalbox_reader NOLOGIN; GRANT signalbox_owner TO {user}; (leave out those that are there), and "
        "`signalbox migrate` after it"
    )
