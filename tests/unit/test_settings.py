"""Settings are read once and checked together."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from signalbox.engine_pack import load_packs
from signalbox.errors import SettingsRefused
from signalbox.runtime.settings import FileTransfers, JwtIssuer, Settings

LEAST = {"SIGNALBOX_STACK": "s", "SIGNALBOX_DATABASE_URL": "postgresql:///x"}


def test_the_least_that_a_function_needs_is_a_stack_and_a_database() -> None:
    settings = Settings.read(LEAST | {"SIGNALBOX_PACKS": "", "SIGNALBOX_DATABASE_HOST": " "})
    assert settings == Settings(stack="s", database_url="postgresql:///x")


def test_every_setting_is_read(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.touch()
    settings = Settings.read(
        {
            "SIGNALBOX_STACK": "s",
            "SIGNALBOX_DATABASE_SECRET_ARN": "arn",
            "SIGNALBOX_DATABASE_HOST": "h:6543/n",
            "SIGNALBOX_CA_BUNDLE": str(bundle),
            "SIGNALBOX_PACKS": "forecasts, passports",
            "SIGNALBOX_DISABLED_TASKS": "poll_data,sweep_runs",
            "SIGNALBOX_MAX_CONTINUATIONS": "0",
            "SIGNALBOX_BUDGET_MARGIN_SECONDS": "1",
            "SIGNALBOX_LEASE_MARGIN_SECONDS": "2",
        }
    )
    assert settings == Settings(
        stack="s",
        database_secret_arn="arn",
        database_host="h:6543/n",
        ca_bundle=str(bundle),
        packs=("forecasts", "passports"),
        disabled_tasks=frozenset({"poll_data", "sweep_runs"}),
        max_continuations=0,
        budget_margin_seconds=1,
        lease_margin_seconds=2,
    )


def test_all_faults_are_listed_together() -> None:
    with pytest.raises(SettingsRefused) as caught:
        Settings.read(
            {
                "SIGNALBOX_DATABASE_HOST": "h/n/m",
                "SIGNALBOX_WORKER_SLOTS": "70000",
                "SIGNALBOX_CA_BUNDLE": "/nowhere.pem",
                "SIGNALBOX_PACKS": "fore casts",
                "SIGNALBOX_MAX_CONTINUATIONS": "-1",
            }
        )
    for words in (
        "SIGNALBOX_STACK is not set",
        "SIGNALBOX_DATABASE_HOST is not host, host:port or host:port/name",
        "SIGNALBOX_WORKER_SLOTS is '70000': Input should be less than or equal to 400",
        "SIGNALBOX_CA_BUNDLE names '/nowhere.pem', where there is no file",
        "SIGNALBOX_PACKS holds 'fore casts', which is not a name",
        "SIGNALBOX_MAX_CONTINUATIONS is '-1'",
        "neither SIGNALBOX_DATABASE_SECRET_ARN nor SIGNALBOX_DATABASE_URL is set",
    ):
        assert words in str(caught.value)


def test_a_pack_whose_layer_is_missing_is_named() -> None:
    with pytest.raises(SettingsRefused, match="pack 'no_such_pack' is named in SIGNALBOX_PACKS but its layer"):
        load_packs(["no_such_pack"])


def test_published_job_changes_is_one_of_three_settings() -> None:
    with pytest.raises(
        SettingsRefused, match="SIGNALBOX_JOB_EVENTS is 'some': Input should be 'all', 'ends' or 'none'"
    ):
        Settings.read(LEAST | {"SIGNALBOX_JOB_EVENTS": "some"})
    assert Settings.read(LEAST | {"SIGNALBOX_JOB_EVENTS": "ends"}).job_events == "ends"


def test_what_files_may_be_imported_and_exported_is_listed_by_its_use() -> None:
    settings = Settings.read(LEAST | {"SIGNALBOX_FILE_TRANSFERS": "import:a.*, export:b.c, bucket:in.acme,bucket:out"})
    assert settings.file_transfers == FileTransfers(("a.*",), ("b.c",), ("in.acme", "out"))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("bucket:s3://a", "holds 'bucket:s3://a', which names no bucket"),
        ("export:a", "holds 'export:a', which names neither schema.table nor schema.*"),
        ("a.b", "holds 'a.b', which must start with import:, export: or bucket:"),
    ],
)
def test_a_wrong_entry_of_the_file_transfers_is_named(value: str, said: str) -> None:
    with pytest.raises(SettingsRefused, match=re.escape(said)):
        Settings.read(LEAST | {"SIGNALBOX_FILE_TRANSFERS": value})


@pytest.mark.parametrize(
    ("given", "issuer"),
    [
        ("https://a.example/ aud", JwtIssuer("https://a.example/", "aud", "roles", None)),
        (
            "https://a.example/t/v2.0 api://b cognito:groups org",
            JwtIssuer("https://a.example/t/v2.0", "api://b", "cognito:groups", "org"),
        ),
        ("http://127.0.0.1:80/x aud", JwtIssuer("http://127.0.0.1:80/x", "aud")),
    ],
)
def test_issuer_of_tokens_is_read_from_words(given: str, issuer: JwtIssuer) -> None:
    assert Settings.read(LEAST | {"SIGNALBOX_JWT_ISSUER": given}).jwt_issuer == issuer


@pytest.mark.parametrize(
    "given",
    [
        *("https://a.example", "aud https://a.example", "https://a.example aud b c d", "http://a.example aud"),
        *(
            "http://localhost.a.example aud",
            "http://127.0.0.1@a.example aud",
            "https://a.example?x aud",
            "https:// aud",
        ),
    ],
)
def test_issuer_that_is_not_safe_or_not_whole_is_refused(given: str) -> None:
    with pytest.raises(SettingsRefused, match=r"SIGNALBOX_JWT_ISSUER is not ISSUER AUDIENCE"):
        Settings.read(LEAST | {"SIGNALBOX_JWT_ISSUER": given})
