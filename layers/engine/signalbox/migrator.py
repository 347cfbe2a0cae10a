"""The migrator's payloads: {"action": "plan" | "apply" | "report"}."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from signalbox import migrations
from signalbox.clients import Clients
from signalbox.database import Connection, Database
from signalbox.errors import MigrationRefused
from signalbox.packs import Pack, load_packs
from signalbox.payload import Payload, read_payload
from signalbox.secret import DatabaseAddress
from signalbox.settings import Settings


class MigratorPayload(Payload):
    """plan: what would be applied; apply: applies it; report: how far the schemas are."""

    action: Literal["plan", "apply", "report"]


@dataclass(frozen=True, slots=True)
class Migrator:
    """One per execution environment; unlike the engine it takes the database as it finds it."""

    database: Database
    packs: tuple[Pack, ...]

    @staticmethod
    def start(environ: Mapping[str, str]) -> Migrator:
        settings = Settings.read(environ)
        address = DatabaseAddress(settings, Clients())
        return Migrator(
            Database(address, ca_bundle=settings.ca_bundle, application="migrator"),
            load_packs(settings.packs),
        )

    def act(self, event: object, applied_by: str) -> dict[str, Any]:
        """Does what the payload asks for, and answers where the schemas stand after it."""
        action = read_payload(MigratorPayload, event).action
        connection = self.database.connection()
        if action == "report":
            return {"action": action, "applied": [], **self._report(connection)}
        applied = migrations.apply(connection, self.packs, applied_by) if action == "apply" else []
        return {
            "action": action,
            "applied": [migration.label for migration in applied],
            "pending": [migration.label for migration in migrations.plan(connection, self.packs)],
            "versions": migrations.versions(connection),
        }

    def _report(self, connection: Connection) -> dict[str, Any]:
        """Even of a database that this code may not touch, and then with the reason."""
        versions = migrations.versions(connection)
        try:
            pending = [migration.label for migration in migrations.plan(connection, self.packs)]
        except MigrationRefused as refusal:
            return {"pending": [], "versions": versions, "fault": str(refusal)}
        return {"pending": pending, "versions": versions}
