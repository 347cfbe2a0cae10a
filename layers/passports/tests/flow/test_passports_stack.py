"""The laptop brings up the deployment with the pack: a battery's story, from its bill of materials to its exports."""

from __future__ import annotations

import json
from collections.abc import Iterator

import psycopg
import pytest

from passports.job_types import JOB_TYPES
from signalbox_laptop.home import StackState
from tests.support.command_line import Signalbox
from tests.support.story import stack_with_story, wait_for_jobs

WEBHOOKS = {"WebhookAllowHttp": "on", "WebhookPorts": "1024-65535", "WebhookAllowedNetworks": "127.0.0.0/8"}


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[StackState, Signalbox]]:
    home = tmp_path_factory.mktemp("passports")
    with stack_with_story("passports", home, **WEBHOOKS) as state:
        wait_for_jobs(state)
        yield state, Signalbox({"SIGNALBOX_HOME": str(home)})


@pytest.fixture
def db(story: tuple[StackState, Signalbox]) -> Iterator[psycopg.Connection]:
    with psycopg.connect(story[0].database, autocommit=True) as connection:
        yield connection


def test_each_job_type_is_completed(db: psycopg.Connection) -> None:
    found = db.execute("SELECT job_type, status FROM signalbox.jobs").fetchall()
    assert {job_type for job_type, _ in found} >= {job_type.name for job_type in JOB_TYPES}
    assert {status for _, status in found} == {"completed"}


def test_the_passport_is_signed_drawn_and_exported(db: psycopg.Connection) -> None:
    [(status, signature, png)] = db.execute(
        "SELECT status, octet_length(signature), substr(qr_png, 2, 3) FROM passports.passport_versions"
    ).fetchall()
    assert (status, signature, bytes(png)) == ("SIGNED", 64, b"PNG")
    formats = db.execute("SELECT format FROM passports.passport_exports ORDER BY 1").fetchall()
    assert formats == [("JSON_LD",), ("PDF",), ("XML",)]


def test_the_command_verifies_the_chains_and_finds_a_break(
    story: tuple[StackState, Signalbox], db: psycopg.Connection
) -> None:
    _, signalbox = story
    whole = signalbox("verify-events")
    assert (whole.code, whole.out.strip().endswith("all are whole")) == (0, True), whole.err
    db.execute("SET session_replication_role = replica")
    db.execute("UPDATE passports.events SET payload = '{}' WHERE event_type = 'PASSPORT_SIGNED'")
    broken = signalbox("verify-events", "--json")
    assert (broken.code, json.loads(broken.out)["first_broken"]["fault"]) == (1, "hash")
