"""Serve the migrator's payloads, {"action": "plan" | "apply" | "report"}, and CloudFormation's request in a deploy."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import psycopg

from signalbox.aws.clients import Clients
from signalbox.aws.database_secret import DatabaseAddress
from signalbox.engine_pack import load_packs
from signalbox.errors import MigrationOverdue, Unavailable
from signalbox.migrate import deploy_hook, migrations
from signalbox.migrate.deploy_hook import DeployResult
from signalbox.migrate.grants import Grants, find_roles
from signalbox.migrate.job_types import keep_job_types
from signalbox.migrate.logins import LogIn, read_logins
from signalbox.packs.pack import Pack
from signalbox.packs.payload import Payload, read_payload
from signalbox.postgres.connection import Connection, Database
from signalbox.runtime.log import Logger, make_logger
from signalbox.runtime.settings import Settings

# A paused database starts soon, and a table in use becomes free sooner or later.
LOOK_AGAIN_SECONDS = 3.0
CANCEL_AGAIN_SECONDS = 1.0


class MigratorPayload(Payload):
    """Choose what to do. plan: list what would be applied; apply: apply it; report: return the schemas' versions."""

    action: Literal["plan", "apply", "report"]


@dataclass(frozen=True, slots=True)
class Migrator:
    """Migrate a database in any state, unlike the engine. There is one Migrator per execution environment."""

    database: Database
    packs: tuple[Pack, ...]
    settings: Settings
    clients: Clients

    @staticmethod
    def start(environ: Mapping[str, str]) -> Migrator:
        settings, clients = Settings.read(environ), Clients()
        address = DatabaseAddress(settings, clients)
        database = Database(
            address,
            ca_bundle=settings.ca_bundle,
            application="migrator",
            locate_next=address.next,
            error_details=settings.database_error_details,
        )
        return Migrator(database, load_packs(settings.packs), settings, clients)

    def act(self, event: object, applied_by: str) -> dict[str, Any]:
        """Do what the payload asks for, and return the schemas' versions after it."""
        action = read_payload(MigratorPayload, event).action
        connection = self.database.connection()
        if action == "report":
            return {"action": action, "applied": [], **migrations.report(connection, self.packs)}
        answer: dict[str, Any] = {"action": action, "applied": []}
        if action == "apply":
            applied, roles = self._apply(connection, applied_by)
            answer |= {"applied": applied, "roles": _as_json(roles)}
        pending = [migration.label for migration in migrations.plan(connection, self.packs)]
        return answer | {"pending": pending, "versions": migrations.versions(connection)}

    def deploy(self, applied_by: str, seconds: float, version: str | None = None) -> DeployResult:
        """Apply for a deploy of this version: patiently, in time, and accept a newer schema that serves this code."""
        ends_at = time.monotonic() + seconds
        while True:
            try:
                return self._deploy_once(applied_by, ends_at - time.monotonic(), version)
            except MigrationOverdue:
                raise
            except Unavailable:
                if time.monotonic() + LOOK_AGAIN_SECONDS > ends_at:
                    raise
                time.sleep(LOOK_AGAIN_SECONDS)

    def _deploy_once(self, applied_by: str, seconds: float, version: str | None) -> DeployResult:
        connection = self.database.connection()
        ahead = migrations.ahead_of(connection, self.packs)
        if ahead:  # after a roll-back: the newer schema stays, if it serves this code
            migrations.require_current(connection, [pack for pack in self.packs if pack.name in ahead])
        mine = replace(self, packs=tuple(pack for pack in self.packs if pack.name not in ahead))
        with _cancelled_after(connection, seconds):
            applied, roles = mine._apply(connection, applied_by, ahead)
            if version is not None:
                migrations.record_deploy(connection, version)
        versions = {pack: str(version) for pack, version in migrations.versions(connection).items()}
        done = f"applied {', '.join(applied)}" if applied else "nothing to apply"
        left = f"; newer than this code, and serving it: {', '.join(sorted(ahead))}" if ahead else ""
        return DeployResult("SUCCESS", f"{done}{left}{'; ' if roles.advice else ''}{roles.advice}", versions)

    def _apply(self, connection: Connection, applied_by: str, newer: Collection[str] = ()) -> tuple[list[str], Grants]:
        roles = find_roles(connection)
        applied = migrations.apply(connection, self.packs, applied_by, roles)
        keep_job_types(connection, self.packs, newer)
        for login in self._logins():
            roles.keep(connection, login)
        return [migration.label for migration in applied], roles

    def _logins(self) -> Iterator[LogIn]:
        if arn := self.settings.writer_login_secret_arn:
            yield from read_logins(self.clients, arn, "writer")
        if arn := self.settings.reader_login_secret_arn:
            yield from read_logins(self.clients, arn, "reader")


def serve_deploy(
    event: object, start: Callable[[], Migrator], environ: Mapping[str, str], applied_by: str, seconds_left: float
) -> dict[str, Any]:
    """Answer CloudFormation, even if the migrator can't start."""
    log: Logger = make_logger(environ.get("SIGNALBOX_STACK", "signalbox"))
    return deploy_hook.serve(
        event, seconds_left, log, lambda seconds, version: start().deploy(applied_by, seconds, version)
    )


def _as_json(roles: Grants) -> dict[str, Any]:
    return {"apart": roles.apart, **({"advice": roles.advice} if roles.advice else {})}


@contextmanager
def _cancelled_after(connection: Connection, seconds: float) -> Iterator[None]:
    """Cancel the running statement once the time is over, and each that follows it."""
    done = threading.Event()

    def watch() -> None:
        wait = max(0.0, seconds)
        while not done.wait(wait):
            with suppress(psycopg.Error):
                connection.cancel()
            wait = CANCEL_AGAIN_SECONDS

    # Set the server's own limit too: RDS Proxy takes no requests to cancel.
    connection.execute("SELECT set_config('statement_timeout', %s, false)", (str(max(1, round(seconds * 1000))),))
    watcher = threading.Thread(target=watch, name="migration-deadline", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        with suppress(psycopg.Error):
            connection.execute("RESET statement_timeout")
