"""A rotation of the database's secret neither cuts off functions at work nor refuses new ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import boto3
import psycopg
import pytest

from signalbox.app import App
from signalbox.errors import DatabaseUnavailable
from signalbox.migrate.migrator import Migrator
from signalbox.testing.stage import NOON, Stage
from signalbox_laptop.moto.process import MotoProcess
from signalbox_laptop.postgres.embedded import EmbeddedPostgres
from tests.support.aws import speak_to

RUN = {"task": "sweep_runs"}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a server that asks for passwords; yield its superuser's DSN."""
    postgres = EmbeddedPostgres(tmp_path_factory.mktemp("postgres"), durable=False)
    dsn = postgres.start()
    with psycopg.connect(dsn, autocommit=True) as db:
        [file] = db.execute("SHOW hba_file").fetchone() or ("",)
        Path(file).write_text("local all postgres trust\nlocal all all scram-sha-256\n")
        db.execute("SELECT pg_reload_conf()")
    yield dsn
    postgres.stop()


@pytest.fixture(scope="module")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    process = MotoProcess(tmp_path_factory.mktemp("moto"))
    yield process.start()
    process.stop()


@dataclass(frozen=True)
class Vault:
    """Hold the functions' secret, and migrate with it."""

    host: str
    secrets: Any
    arn: str

    def environ(self, **more: str) -> dict[str, str]:
        info = psycopg.conninfo.conninfo_to_dict(self.host)
        return {
            "SIGNALBOX_STACK": "signalbox",
            "SIGNALBOX_DATABASE_SECRET_ARN": self.arn,
            "SIGNALBOX_DATABASE_HOST": quote(str(info["host"]), safe=""),
            **more,
        }

    def migrate(self) -> dict[str, Any]:
        owner = {"SIGNALBOX_DATABASE_URL": self.host, "SIGNALBOX_WRITER_LOGIN_SECRET_ARN": self.arn}
        migrator = Migrator.start(self.environ(**owner))
        with closing(migrator.database):
            return migrator.act({"action": "apply"}, "tests")

    def put(self, user: str, password: str, stage: str) -> str:
        text = json.dumps({"username": user, "password": password})
        stored = self.secrets.put_secret_value(SecretId=self.arn, SecretString=text, VersionStages=[stage])
        return str(stored["VersionId"])

    def promote(self, version: str) -> None:
        """End a rotation."""
        found = self.secrets.describe_secret(SecretId=self.arn)["VersionIdsToStages"]
        [current] = [one for one, stages in found.items() if "AWSCURRENT" in stages]
        self.secrets.update_secret_version_stage(
            SecretId=self.arn, VersionStage="AWSCURRENT", MoveToVersionId=version, RemoveFromVersionId=current
        )

    def alter(self, user: str, password: str) -> None:
        with psycopg.connect(self.host, autocommit=True) as db:
            db.execute(psycopg.sql.SQL("ALTER ROLE {} PASSWORD {}").format(user_of(user), password))

    def engine(self) -> App:
        return App.start(self.environ())


def user_of(name: str) -> psycopg.sql.Identifier:
    return psycopg.sql.Identifier(name)


@pytest.fixture
def vault(host: str, moto: str, monkeypatch: pytest.MonkeyPatch) -> Vault:
    speak_to(moto, monkeypatch)
    secrets = boto3.client("secretsmanager")
    text = json.dumps({"username": "first", "password": uuid4().hex})
    vault = Vault(host, secrets, secrets.create_secret(Name=uuid4().hex, SecretString=text)["ARN"])
    vault.migrate()
    return vault


def who(engine: App) -> tuple[str, int]:
    row = engine.resources.database.connection().execute("SELECT current_user::text, pg_backend_pid()").fetchone()
    assert row is not None
    return row


def runs(engine: App) -> str:
    return str(engine.run_task(RUN | {"force": True}, Stage.invocation(NOON))["status"])


def test_log_ins_that_take_turns_leave_nobody_out(vault: Vault) -> None:
    warm, cold = vault.engine(), vault.engine()
    with closing(warm.resources.database), closing(cold.resources.database):
        before, _ = who(warm), who(cold)
        pending = vault.put("second", "two", "AWSPENDING")
        vault.migrate()  # makes the second beside the first
        with warm.resources.database.connection().transaction():
            vault.promote(pending)
            assert runs(warm) == "succeeded"
        assert who(warm) == before
        cold.resources.database.close()
        vault.alter("first", "locked out")  # as when the first is given its next password
        assert runs(cold) == "succeeded"
        assert who(cold)[0] == "second"


def test_pending_version_opens_a_log_in_whose_password_has_changed(vault: Vault) -> None:
    warm, cold = vault.engine(), vault.engine()
    with closing(warm.resources.database), closing(cold.resources.database):
        before, _ = who(warm), who(cold)
        cold.resources.database.close()
        pending = vault.put("first", "fresh", "AWSPENDING")
        vault.alter("first", "fresh")
        assert runs(cold) == "succeeded", "the secret is still the old one, and the password no longer"
        cold.resources.database.close()
        vault.promote(pending)
        assert (runs(warm), who(warm)) == ("succeeded", before)
        assert runs(cold) == "succeeded"


def test_password_in_no_version_of_the_secret_is_reported_once(vault: Vault) -> None:
    vault.alter("first", "by hand")
    with closing(vault.engine().resources.database) as database:
        with pytest.raises(DatabaseUnavailable, match="password authentication failed") as caught:
            database.connection()
        assert "by hand" not in str(caught.value)


def test_pending_version_of_one_log_in_does_not_change_its_password_early(vault: Vault) -> None:
    vault.put("first", "too early", "AWSPENDING")
    vault.migrate()
    engine = vault.engine()
    with closing(engine.resources.database):
        assert who(engine)[0] == "first"


def test_log_in_of_the_secret_may_only_write_and_has_timeouts(vault: Vault) -> None:
    with closing(vault.engine().resources.database) as database:
        connection = database.connection()
        assert connection.execute("SHOW statement_timeout").fetchone() == ("15min",)
        assert connection.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("5min",)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("CREATE TABLE signalbox.mine ()")


def test_no_statement_holds_the_password(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []
    execute = psycopg.Connection.execute

    def note(self: Any, query: Any, *rest: Any, **options: Any) -> Any:
        statements.append(query if isinstance(query, str) else query.as_string(self))
        return execute(self, query, *rest, **options)

    monkeypatch.setattr(psycopg.Connection, "execute", note)
    pending = vault.put("second", "sesame", "AWSPENDING")
    vault.promote(pending)
    vault.migrate()
    assert any("SCRAM-SHA-256$" in statement for statement in statements)
    assert not any("sesame" in statement for statement in statements)
