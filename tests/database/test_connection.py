"""An environment's one connection is opened late, checked, reopened, verified and never logged."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from signalbox.aws.clients import Clients
from signalbox.aws.database_secret import DatabaseAddress
from signalbox.errors import DatabaseUnavailable, SchemaMismatch, SettingsRefused, SignalboxError
from signalbox.ledger.context import Context, Done
from signalbox.postgres.connection import Database
from signalbox.postgres.dsn import dsn_of
from signalbox.postgres.tls import secure
from signalbox.runtime.settings import Settings
from signalbox.testing.rows import runs_of
from signalbox.testing.stage import NOON, Stage
from signalbox_laptop.postgres.embedded import EmbeddedPostgres
from tests.support.tasks import TEST_TASKS
from tests.support.tls_server import TlsServer

ARN = "arn:aws:secretsmanager:us-east-1:123456789012:secret:database"


def pid(connection: psycopg.Connection) -> int:
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    assert row is not None
    return int(row[0])


def test_a_connection_is_kept_from_one_invocation_to_the_next(stage: Stage) -> None:
    database = stage.app.resources.database
    assert pid(database.connection()) == pid(database.connection())


def test_a_connection_that_the_server_ended_is_replaced_before_it_is_used(stage: Stage, db: psycopg.Connection) -> None:
    first = pid(stage.app.resources.database.connection())
    db.execute("SELECT pg_terminate_backend(%s, 5000)", (first,))
    assert stage.run("sweep_runs", NOON)["status"] == "succeeded"
    assert pid(stage.app.resources.database.connection()) != first


def test_a_database_that_is_down_is_an_error_that_a_retry_may_heal(tmp_path: Path) -> None:
    database = Database(lambda _: f"postgresql://postgres:sesame@/nothing?host={tmp_path}")
    with pytest.raises(DatabaseUnavailable, match="the database can't be reached") as caught:
        database.connection()
    assert "sesame" not in str(caught.value)


def test_database_restart_during_a_run_fails_only_that_run(
    tmp_path: Path, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    from signalbox.engine_pack import ENGINE
    from signalbox.migrate import migrations
    from tests.support.tasks import note_run

    postgres = EmbeddedPostgres(tmp_path, durable=False)
    dsn = postgres.start()
    try:
        with psycopg.connect(dsn, autocommit=True) as db:
            migrations.apply(db, [ENGINE], "tests")
            db.execute("CREATE TABLE effects (task text, slot timestamptz, now timestamptz, worker_id text)")
        original = note_run.note_run

        def interrupted(context: Context) -> Done:
            with context.db.transaction():
                done = original(context)
                postgres.restart()
            return done

        with Stage(dsn, stage.aws).with_tasks(*TEST_TASKS) as mine:
            monkeypatch.setattr(note_run, "note_run", interrupted)
            with pytest.raises(psycopg.OperationalError):
                mine.run("note_run", NOON)
            monkeypatch.setattr(note_run, "note_run", original)
            assert mine.run("note_run", NOON)["status"] == "succeeded"
        with psycopg.connect(dsn, autocommit=True) as db:
            assert [row["status"] for row in runs_of(db, "note_run")] == ["failed", "succeeded"]
            assert db.execute("SELECT count(*) FROM effects").fetchone() == (1,)
            assert db.execute("SELECT count(*) FROM signalbox.job_locks").fetchone() == (0,)
    finally:
        postgres.stop()


@pytest.mark.usefixtures("effects")
def test_a_transaction_whose_connection_breaks_never_goes_on_with_another(
    stage: Stage, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.support.tasks import note_run

    original = note_run.note_run

    def cut_in_two(context: Context) -> Done:
        with context.db.transaction():
            original(context)
            db.execute("SELECT pg_terminate_backend(%s, 5000)", (context.db.info.backend_pid,))
            return original(context)

    monkeypatch.setattr(note_run, "note_run", cut_in_two)
    with pytest.raises(psycopg.OperationalError):
        stage.run("note_run", NOON)
    assert db.execute("SELECT count(*) FROM effects").fetchone() == (0,)
    assert [row["status"] for row in runs_of(db, "note_run")] == ["failed"]


def test_a_warm_environment_notices_a_schema_that_no_longer_serves_it(
    stage: Stage, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.run("sweep_runs", NOON)
    db.execute("INSERT INTO signalbox.schema_migrations VALUES ('signalbox', 99, 'n', 99, 'c', now(), 'tests')")
    monkeypatch.setattr("signalbox.postgres.connection.INSPECT_AFTER_SECONDS", -1.0)
    with pytest.raises(SchemaMismatch, match="newer than this code"):
        stage.run("sweep_runs", NOON, force=True)


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://u:p@db.example.com/x",
        "postgresql://u:p@10.0.0.7/x",
        "postgresql://u:p@localhost,db.example.com/x",
        "postgresql://u:p@/x?host=db.example.com&hostaddr=10.1.2.3",
        "postgresql://u:p@/x?hostaddr=10.1.2.3",
    ],
)
def test_the_certificate_of_a_host_that_is_not_this_one_is_verified(dsn: str) -> None:
    secured = conninfo_to_dict(secure(dsn, "/bundle.pem"))
    assert (secured["sslmode"], secured["sslrootcert"]) == ("verify-full", "/bundle.pem")


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql:///x?host=/var/run",
        "postgresql://u@127.0.0.1/x",
        "postgresql://u@localhost/x",
        "postgresql://u@[::1]/x",
    ],
)
def test_a_local_database_needs_no_certificate(dsn: str) -> None:
    assert "sslmode" not in conninfo_to_dict(secure(dsn, "/bundle.pem"))


def test_a_dsn_that_says_how_to_verify_is_left_as_it_is() -> None:
    secured = conninfo_to_dict(secure("postgresql://u@db.example.com/x?sslmode=require", "/bundle.pem"))
    assert secured["sslmode"] == "require"


SETTINGS = Settings(stack="s", database_secret_arn=ARN)


@pytest.mark.parametrize(
    ("secret", "expected"),
    [
        ("postgresql://u:p@h/d", {"host": "h", "user": "u", "password": "p", "dbname": "d"}),
        ('{"url": "postgresql://u:p@h/d"}', {"host": "h", "user": "u", "password": "p", "dbname": "d"}),
        (
            '{"username": "u", "password": "p w\'", "host": "h", "port": 6543, "dbname": "d", "engine": "postgres"}',
            {"host": "h", "user": "u", "password": "p w'", "dbname": "d", "port": "6543"},
        ),
    ],
)
def test_a_secret_may_be_a_dsn_or_what_rds_writes(secret: str, expected: dict[str, str]) -> None:
    assert conninfo_to_dict(dsn_of(secret, ARN, None)) == expected


def test_a_secret_that_rds_manages_takes_its_host_from_the_settings() -> None:
    assert conninfo_to_dict(dsn_of(json.dumps({"username": "u", "password": "p"}), ARN, "h:1/n")) == {
        "host": "h", "port": "1", "dbname": "n", "user": "u", "password": "p",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("secret", "words"),
    [
        ('{"username": "u"', "neither a DSN nor JSON"),
        ('{"username": "sesame"}', "lacks password, host"),
        ("{}", "lacks username, password, host"),
    ],
)
def test_a_secret_that_names_no_database_is_refused_without_repeating_it(secret: str, words: str) -> None:
    with pytest.raises(SettingsRefused, match=words) as caught:
        dsn_of(secret, ARN, None)
    assert "sesame" not in str(caught.value)


def test_a_password_rotated_since_it_was_read_is_read_again(tmp_path: Path) -> None:
    postgres, asked = EmbeddedPostgres(tmp_path, durable=False), []
    dsn = postgres.start()

    def locate(fresh: bool) -> str:
        asked.append(fresh)
        return psycopg.conninfo.make_conninfo(dsn, user="worker", password="new" if fresh else "old")

    try:
        with psycopg.connect(dsn, autocommit=True) as db:
            db.execute("CREATE ROLE worker LOGIN PASSWORD 'new'")
            rules = Path(str(db.execute("SHOW hba_file").fetchone()[0]))  # type: ignore[index]
            rules.write_text("local all worker scram-sha-256\nlocal all all trust\n")
            db.execute("SELECT pg_reload_conf()")
        with closing(Database(locate)) as database:
            row = database.connection().execute("SELECT current_user").fetchone()
        assert row == ("worker",)
        assert asked == [False, False, True]
    finally:
        postgres.stop()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> TlsServer:
    """Serve PostgreSQL's TLS handshake only, under an authority of its own."""
    return TlsServer(tmp_path_factory.mktemp("tls"))


def test_a_server_whose_certificate_leads_to_the_bundle_is_spoken_to(authority: TlsServer) -> None:
    with authority as address, closing(Database(lambda _: address, ca_bundle=str(authority.bundle))) as database:
        with pytest.raises(DatabaseUnavailable) as caught:
            database.connection()
        assert authority.handshakes == 1
    assert "certificate" not in str(caught.value)


def test_a_server_whose_certificate_leads_elsewhere_is_refused(authority: TlsServer, tmp_path: Path) -> None:
    other = TlsServer(tmp_path)
    with authority as address, closing(Database(lambda _: address, ca_bundle=str(other.bundle))) as database:
        with pytest.raises(DatabaseUnavailable, match="certificate verify failed"):
            database.connection()
        assert authority.handshakes == 0


def test_settings_and_errors_never_show_a_password() -> None:
    settings = Settings.read({"SIGNALBOX_STACK": "s", "SIGNALBOX_DATABASE_URL": "postgresql://u:sesame@h/d"})
    assert "sesame" not in repr(settings)
    assert "sesame" not in repr(DatabaseAddress(settings, Clients()))
    with pytest.raises(SignalboxError) as caught:
        Settings.read({"SIGNALBOX_STACK": "s", "SIGNALBOX_DATABASE_URL": "mysql://u:sesame@h/d"})
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://u:sesame/more@h/d",
        "postgresql://u:sesame%zz@h/d",
        "postgresql://u:open/sesame@h/d",
        "postgresql://u:open@sesame@h:port/d",
        "host=h password=sesame sesame",
        "host=h port=sesame",
    ],
)
def test_unreadable_dsn_is_reported_without_its_text(dsn: str) -> None:
    with pytest.raises(SettingsRefused, match="percent-encode") as caught:
        Database(lambda _: dsn).connection()
    assert "sesame" not in str(caught.value)
    assert caught.value.__context__ is None
