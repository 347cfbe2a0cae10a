"""The migrator answers CloudFormation always, in time, with a helpful reason and no secret."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from signalbox.engine_pack import ENGINE
from signalbox.errors import AnswerLost, PayloadRefused
from signalbox.migrate import deploy_hook, migrations, migrator
from signalbox.migrate.deploy_hook import is_deploy
from signalbox.migrate.migrator import Migrator, serve_deploy
from signalbox.packs.pack import Pack
from signalbox.testing.stage import as_url
from signalbox_laptop.lambda_api.http_server import HttpServer, Request, Response

SIGNATURE = "X-Amz-Signature=sesame"
HOUR = 3600.0


class Bucket:
    """Collect the answers that are put, and reply as `says` tells."""

    def __init__(self) -> None:
        self.answers: list[dict[str, Any]] = []
        self.headers: list[Any] = []
        self.says: list[int | None] = []  # None hangs up
        self.server = HttpServer(0, self._take)

    def _take(self, request: Request) -> Response | None:
        says = self.says.pop(0) if self.says else 200
        if says == 200:
            self.answers.append(json.loads(request.body))
            self.headers.append(request.headers)
        return Response(says) if says else None

    def event(self, kind: str = "Create", **fields: Any) -> dict[str, Any]:
        return {
            "RequestType": kind,
            "ResponseURL": f"http://{self.server.address}/answer?{SIGNATURE}",
            "StackId": "arn:aws:cloudformation:us-east-1:123456789012:stack/s/1",
            "RequestId": "request",
            "LogicalResourceId": "Migrations",
            "ResourceType": "Custom::SignalboxMigrations",
            "ResourceProperties": {"ServiceToken": "arn"},
            **fields,
        }

    @property
    def answer(self) -> dict[str, Any]:
        [answer] = self.answers
        return answer


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    bucket = Bucket()
    bucket.server.start()
    yield bucket
    bucket.server.stop()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deploy_hook, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(migrator, "LOOK_AGAIN_SECONDS", 0.01)


def ask(event: object, dsn: str, seconds: float = HOUR, packs: tuple[Pack, ...] = (ENGINE,)) -> dict[str, Any]:
    def start() -> Migrator:
        given = Migrator.start(environ)
        made.append(given)
        return Migrator(given.database, packs, given.settings, given.clients)

    made: list[Migrator] = []
    environ = {"SIGNALBOX_STACK": "signalbox", "SIGNALBOX_DATABASE_URL": as_url(dsn)}
    try:
        return serve_deploy(event, start, environ, "tests", seconds)
    finally:
        for one in made:
            one.database.close()


def table(dsn: str, name: str) -> bool:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return connection.execute("SELECT to_regclass(%s) IS NOT NULL", (name,)).fetchone() == (True,)


@pytest.fixture
def numbers(tmp_path: Path) -> Callable[..., Pack]:
    def write(*files: str) -> Pack:
        for number, text in enumerate(files, 1):
            (tmp_path / f"{number:04}_n.sql").write_text(text)
        return Pack("numbers", (), tmp_path)

    return write


def test_new_stack_is_migrated_and_cloudformation_is_answered(bucket: Bucket, empty_dsn: str) -> None:
    ask(bucket.event(), empty_dsn)
    assert bucket.answer["Status"] == "SUCCESS"
    assert bucket.answer["Reason"].startswith("applied signalbox/0001_baseline")
    assert bucket.answer["Data"] == {"signalbox": str(migrations.latest_version(ENGINE))}
    assert {bucket.answer[name] for name in ("StackId", "RequestId", "LogicalResourceId")} == {
        "arn:aws:cloudformation:us-east-1:123456789012:stack/s/1",
        "request",
        "Migrations",
    }
    assert bucket.headers[0]["Content-Type"] == ""
    assert table(empty_dsn, "signalbox.jobs")


def test_an_update_with_nothing_to_do_keeps_its_physical_id(bucket: Bucket, dsn: str) -> None:
    ask(bucket.event("Update", PhysicalResourceId="as before"), dsn)
    assert (bucket.answer["Status"], bucket.answer["PhysicalResourceId"]) == ("SUCCESS", "as before")
    assert bucket.answer["Reason"].startswith("nothing to apply")


def deploys(dsn: str) -> list[str]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return [row[0] for row in connection.execute("SELECT version FROM signalbox.deploys ORDER BY id")]


def layers(engine: int, packs: int) -> dict[str, str]:
    arn = f"arn:aws:lambda:us-east-1:123456789012:layer:name-{uuid4().hex}"  # the laptop's names change at each start
    return {"Engine": f"{arn}:{engine}", "Code": f"{arn}:{packs}", "ServiceToken": "arn", "Secret": "arn"}


def test_each_deploy_that_brings_another_version_is_recorded(bucket: Bucket, empty_dsn: str) -> None:
    for engine, packs in ((7, 12), (7, 12), (7, 13), (7, 12)):
        ask(bucket.event("Update", ResourceProperties=layers(engine, packs)), empty_dsn)
    assert {answer["Status"] for answer in bucket.answers} == {"SUCCESS"}
    assert deploys(empty_dsn) == ["engine 7, packs 12", "engine 7, packs 13", "engine 7, packs 12"]


@pytest.mark.parametrize("properties", [None, "arn", [], {}, {"Engine": 7, "Code": "arn:aws:lambda:::layer:x"}])
def test_deploy_without_readable_layers_goes_on_unrecorded(bucket: Bucket, dsn: str, properties: object) -> None:
    ask(bucket.event("Update", ResourceProperties=properties), dsn)
    assert (bucket.answer["Status"], deploys(dsn)) == ("SUCCESS", [])


def test_a_delete_touches_nothing_and_needs_no_database(bucket: Bucket) -> None:
    ask(bucket.event("Delete", PhysicalResourceId="p"), "host=127.0.0.1 port=1 user=u dbname=none")
    assert bucket.answer["Status"] == "SUCCESS"


def test_failed_migration_fails_the_deploy_with_its_reason_and_no_row(
    bucket: Bucket, dsn: str, numbers: Callable[..., Pack]
) -> None:
    pack = numbers(
        "-- serves: 1\nCREATE TABLE numbers.people (name text); INSERT INTO numbers.people VALUES ('Ada'), ('Ada');\n",
        "-- serves: 1\nCREATE UNIQUE INDEX people_named_once ON numbers.people (name);\n",
    )
    ask(bucket.event("Update"), dsn, packs=(ENGINE, pack))
    assert bucket.answer["Status"] == "FAILED"
    assert "migration numbers/0002_n failed and left nothing behind" in bucket.answer["Reason"]
    assert "people_named_once" in bucket.answer["Reason"]
    assert "Ada" not in bucket.answer["Reason"]
    assert "docs/runbook.md" in bucket.answer["Reason"]


def test_rollback_accepts_a_newer_schema_that_serves_it(bucket: Bucket, dsn: str, numbers: Callable[..., Pack]) -> None:
    newer = numbers("-- serves: 1\nSELECT 1;\n", "-- serves: 1\nSELECT 2;\n")
    ask(bucket.event("Update"), dsn, packs=(ENGINE, newer))
    (newer.migrations / "0002_n.sql").unlink()
    bucket.answers.clear()
    ask(bucket.event("Update"), dsn, packs=(ENGINE, newer))
    assert (bucket.answer["Status"], bucket.answer["Reason"]) == (
        "SUCCESS",
        "nothing to apply; newer than this code, and serving it: numbers",
    )


def test_rollback_refuses_a_schema_that_no_longer_serves_it(
    bucket: Bucket, dsn: str, numbers: Callable[..., Pack]
) -> None:
    newer = numbers("-- serves: 1\nSELECT 1;\n", "-- serves: 2\nSELECT 2;\n")
    ask(bucket.event("Update"), dsn, packs=(ENGINE, newer))
    (newer.migrations / "0002_n.sql").unlink()
    bucket.answers.clear()
    ask(bucket.event("Update"), dsn, packs=(ENGINE, newer))
    assert bucket.answer["Status"] == "FAILED"
    assert "SchemaMismatch" in bucket.answer["Reason"]


def test_overdue_migration_is_ended_and_reported_before_the_function_times_out(
    bucket: Bucket, dsn: str, numbers: Callable[..., Pack]
) -> None:
    pack = numbers("-- serves: 1\nCREATE TABLE numbers.half (n int); SELECT pg_sleep(60);\n")
    ask(bucket.event("Update"), dsn, deploy_hook.RESERVE_SECONDS + 0.3, (ENGINE, pack))
    assert bucket.answer["Status"] == "FAILED"
    assert "MigrationOverdue: migration numbers/0001_n took longer" in bucket.answer["Reason"]
    assert not table(dsn, "numbers.half")


def test_a_database_that_does_not_let_go_keeps_the_answer_from_nobody(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deploy_hook, "RESERVE_SECONDS", 0.2)
    answered = threading.Event()

    def hang(*_: object) -> deploy_hook.DeployResult:
        answered.wait(10)
        return deploy_hook.DeployResult("SUCCESS", "too late", {})

    log = logging.getLogger("tests")
    waiting = threading.Thread(target=lambda: deploy_hook.serve(bucket.event(), 0.3, log, hang))
    waiting.start()
    for _ in range(1000):
        if bucket.answers:
            break
        threading.Event().wait(0.01)
    answered.set()
    waiting.join()
    assert (bucket.answer["Status"], bucket.answer["Reason"][:30]) == ("FAILED", "the migrator ran out of time w")


def test_a_table_in_use_is_tried_again_in_a_deploy(
    bucket: Bucket, dsn: str, numbers: Callable[..., Pack], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "LOCK_WAIT", "50ms")
    first = "-- serves: 1\nCREATE TABLE numbers.n (n int);\n"
    ask(bucket.event("Update"), dsn, packs=(ENGINE, numbers(first)))
    bucket.answers.clear()
    pack = numbers(first, "-- serves: 1\nALTER TABLE numbers.n ADD COLUMN m int;\n")
    with psycopg.connect(dsn) as other:
        other.execute("SELECT * FROM numbers.n")
        threading.Timer(0.3, other.rollback).start()
        ask(bucket.event("Update"), dsn, packs=(ENGINE, pack))
    assert bucket.answer["Status"] == "SUCCESS"


def test_database_that_is_down_is_reported_after_the_time_limit(bucket: Bucket) -> None:
    ask(bucket.event(), "host=127.0.0.1 port=1 user=u dbname=none", deploy_hook.RESERVE_SECONDS + 0.2)
    assert bucket.answer["Status"] == "FAILED"
    assert "DatabaseUnavailable: the database can't be reached" in bucket.answer["Reason"]


def test_wrong_environment_is_reported_too(bucket: Bucket) -> None:
    def start() -> Migrator:
        return Migrator.start({"SIGNALBOX_STACK": "s"})

    serve_deploy(bucket.event(), start, {}, "tests", HOUR)
    assert "SettingsRefused: the function's environment is wrong" in bucket.answer["Reason"]


def test_foreign_error_is_reported_by_type_without_its_text(bucket: Bucket) -> None:
    def start() -> Migrator:
        raise ValueError("postgresql://u:sesame@h")

    serve_deploy(bucket.event(), start, {}, "tests", HOUR)
    assert bucket.answer["Reason"].startswith("the migrator failed with ValueError at test_deploy_request.py:")
    assert "sesame" not in bucket.answer["Reason"]


@pytest.mark.parametrize("says", [503, 500, 429, None])
def test_an_answer_that_is_not_taken_is_given_again(bucket: Bucket, says: int | None) -> None:
    bucket.says = [says, says]
    ask(bucket.event("Delete"), "")
    assert bucket.answer["Status"] == "SUCCESS"


def test_permanently_refused_answer_raises_and_shows_no_address(
    bucket: Bucket, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket.says = [403]
    with pytest.raises(AnswerLost, match="not taken, status 403, after 1 tries") as caught:
        ask(bucket.event("Delete"), "")
    written = str(caught.value) + "".join(capsys.readouterr())
    assert "sesame" not in written
    assert bucket.server.address not in written


def test_an_answer_that_nobody_takes_is_given_up_in_time(bucket: Bucket) -> None:
    bucket.says = [503] * 100
    with pytest.raises(AnswerLost, match="status 503"):
        ask(bucket.event("Delete"), "", deploy_hook.PUT_SECONDS + 0.1)


def test_nothing_that_is_logged_or_answered_holds_the_address(
    bucket: Bucket, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        answer = ask(bucket.event(), dsn)
    written = "".join(str(vars(record)) for record in caplog.records) + json.dumps([answer, bucket.answers])
    assert "deploy.answered" in written
    assert "sesame" not in written


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ResponseURL": "http://example.com/?sesame"}, "ResponseURL must be https"),
        ({"ResponseURL": "file:///etc/sesame"}, "ResponseURL must be https"),
        ({"ResponseURL": ""}, "ResponseURL"),
        ({"RequestId": None}, "RequestId"),
    ],
)
def test_an_event_that_nobody_could_answer_is_refused(bucket: Bucket, change: dict[str, Any], words: str) -> None:
    with pytest.raises(PayloadRefused, match=words) as caught:
        ask(bucket.event(**change), "")
    assert "sesame" not in str(caught.value)


def test_a_request_of_an_unknown_type_fails_and_does_nothing(bucket: Bucket, empty_dsn: str) -> None:
    ask(bucket.event("Upsert"), empty_dsn)
    assert "'Upsert' is neither Create, Update nor Delete" in bucket.answer["Reason"]
    assert not table(empty_dsn, "signalbox.schema_migrations")


def test_a_reason_of_any_length_fits_what_cloudformation_takes(bucket: Bucket) -> None:
    request = deploy_hook.DeployRequest.model_validate(bucket.event())
    for reason in ("a" * 9000, "ü" * 9000, '"' * 9000):
        assert len(deploy_hook.DeployResult("FAILED", reason, {}).to_json(request)) <= deploy_hook.MOST_BYTES


def test_the_plain_payloads_are_none_of_cloudformations() -> None:
    plain: list[object] = [{"action": "plan"}, {}, [], None, "text"]
    assert not any(is_deploy(event) for event in plain)


def test_a_migrator_by_hand_still_refuses_a_newer_schema(dsn: str, db: psycopg.Connection) -> None:
    db.execute("INSERT INTO signalbox.schema_migrations VALUES ('signalbox', 99, 'n', 3, 'c', now(), 'tests')")
    environ = {"SIGNALBOX_STACK": "signalbox", "SIGNALBOX_DATABASE_URL": as_url(dsn)}
    by_hand = Migrator.start(environ)
    with closing(by_hand.database), pytest.raises(Exception, match="newer than this code"):
        by_hand.act({"action": "apply"}, "tests")
