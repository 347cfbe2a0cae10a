"""Secrets go only where they are used. A stack runs with known ones, through all sorts of failures and at the most
talkative log level; then all that was written is searched for them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from psycopg.conninfo import conninfo_to_dict

from signalbox.submit.new_job import NewJob
from signalbox_laptop.aws import client
from signalbox_laptop.home import StackState
from signalbox_laptop.up import StackOptions, down, up
from stand_ins import runpod, stripe
from tests.support.command_line import Signalbox
from tests.support.forecast_rows import forecast_run, organization
from tests.support.jobs_laptop import JobsLaptop, jobs_laptop
from tests.support.laptop import control, quiet
from tests.support.webhook_receiver import WebhookReceiver, answer, say
from tests.support.written import written

PARAMETERS = {
    "JobEvents": "all",
    "LogLevel": "DEBUG",
    "WebhookAllowHttp": "on",
    "WebhookPorts": "1-65535",
    "WebhookAllowedNetworks": "127.0.0.0/8",
}
FUNCTIONS = ("archiver", "poller", "worker", "worker-heavy", "dead-letter", "migrator")
SIGNING = "signalbox/webhooks/markers"
# Each in a form that nothing else has, so that a piece of it is found too.
PASSWORD, WRONG_PASSWORD = "pw-marker-5f21", "pw-marker-wrong-8e02"
HALF_A_PASSWORD = "pwmarker77"  # of one that no URL can hold as it stands
SECRETS = {
    "the database's password": PASSWORD,
    "a wrong password": WRONG_PASSWORD,
    "a password that is not percent-encoded": HALF_A_PASSWORD,
    "the key of RunPod": runpod.KEY,
    "the key of Stripe": stripe.KEY,
    "a wrong key": "key-marker-wrong-41d7",
    "the key that webhooks are signed with": "signing-marker-90aa",
}
TOKEN, QUERY = "token-marker-3c9b", "query-marker-77f0"
# In payloads, which are kept, and shown to who asks for the job: nowhere else.
PAYLOADS = {
    "a receiver's token": TOKEN,
    "a receiver's token in a URL": QUERY,
    "what an event tells": "event-marker-b2d6",
    "what a mail tells": "mail-marker-1ab3",
    "a param that is refused": "param-marker-66ee",
    "what is no message": "message-marker-0f0f",
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("secrets")


@pytest.fixture(scope="module")
def output(home: Path) -> Iterator[Mapping[str, str]]:
    """Return what the stack and the command line wrote, by place."""
    state = up(StackOptions(home=home, port=0, clock=False, durable=False, parameters=PARAMETERS), quiet)
    with jobs_laptop(state) as laptop:
        _ask_for_passwords(laptop)
        _listen_to_the_bus(state)
        _work(laptop)
        _fail_outside(laptop)
        said = _run_commands(home)
        _lose_the_database(laptop)
        yield written(state, home) | said
    down(home, quiet)


@pytest.mark.xdist_group("secrets")
def test_no_secret_is_in_anything_that_was_written(output: Mapping[str, str]) -> None:
    assert _found(output, SECRETS) == []


@pytest.mark.xdist_group("secrets")
def test_values_of_payloads_are_only_in_payloads(output: Mapping[str, str]) -> None:
    elsewhere = {place: text for place, text in output.items() if not place.startswith("payloads of ")}
    assert _found(elsewhere, PAYLOADS) == []
    kept = "".join(text for place, text in output.items() if place.startswith("payloads of "))
    assert [what for what, marker in PAYLOADS.items() if marker in kept] != [], "it was looked for where it is"


@pytest.mark.xdist_group("secrets")
@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("log /aws/lambda/signalbox-worker", "job.attempt_failed"),
        ("log /aws/lambda/signalbox-archiver", "DatabaseUnavailable"),
        ("log /aws/lambda/signalbox-archiver", '"level":"DEBUG"'),
        ("table signalbox.job_history", "StripeUnavailable"),
        ("table forecasts.forecast_runs", "unknown too"),
        ("table signalbox.job_executions", "Permanent"),
        ("table signalbox.dead_letter_jobs", "deliver_webhook"),
        ("table signalbox.dead_letter_jobs", "ParamsRefused"),
        ("queue of-the-bus", "deliver_webhook"),
        ("queue signalbox-failed-invocations", ""),
        ("functions", "SIGNALBOX_DATABASE_SECRET_ARN"),
        ("template", "DatabaseSecretArn"),
        ("said by signalbox dead-letters", "deliver_webhook"),
    ],
)
def test_where_it_was_searched_there_is_something_to_find(output: Mapping[str, str], place: str, words: str) -> None:
    assert words in output[place], output[place][-2000:]


def _found(places: Mapping[str, str], markers: Mapping[str, str]) -> list[str]:
    return [f"{what} is in {place}" for place, text in places.items() for what, it in markers.items() if it in text]


def _ask_for_passwords(laptop: JobsLaptop) -> None:
    """Let the functions log in by a secret from now on, and the server require the password."""
    db = laptop.db
    db.execute(f"CREATE ROLE known SUPERUSER LOGIN PASSWORD '{PASSWORD}'")
    (path,) = db.execute("SHOW hba_file").fetchone() or ("",)
    rules = Path(path)
    rules.write_text("local all known scram-sha-256\n" + rules.read_text())
    db.execute("SELECT pg_reload_conf()")
    _use_secret(laptop, _secret(laptop.state, PASSWORD))
    client("secretsmanager", laptop.state.endpoint).create_secret(
        Name=SIGNING, SecretString=SECRETS["the key that webhooks are signed with"]
    )


def _secret(state: StackState, password: str) -> str:
    given = conninfo_to_dict(state.database)
    fields = {"username": "known", "password": password, "host": given["host"], "dbname": given["dbname"]}
    return json.dumps(fields)


def _use_secret(laptop: JobsLaptop, content: str) -> None:
    """Restart the functions with this secret, by a change of their configuration."""
    secrets, functions = (client(one, laptop.state.endpoint) for one in ("secretsmanager", "lambda"))
    arn = secrets.create_secret(Name=f"database-{len(content)}-{hash(content)}", SecretString=content)["ARN"]
    for function in FUNCTIONS:
        name = f"{laptop.state.stack}-{function}"
        variables = functions.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
        changed = variables | {"SIGNALBOX_DATABASE_SECRET_ARN": arn, "SIGNALBOX_DATABASE_URL": ""}
        functions.update_function_configuration(FunctionName=name, Environment={"Variables": changed})


def _listen_to_the_bus(state: StackState) -> None:
    events, sqs = client("events", state.endpoint), client("sqs", state.endpoint)
    url = sqs.create_queue(QueueName="of-the-bus")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    pattern = json.dumps({"source": [{"prefix": ""}]})
    events.put_rule(Name="all", EventBusName=state.stack, EventPattern=pattern)
    events.put_targets(Rule="all", EventBusName=state.stack, Targets=[{"Id": "queue", "Arn": arn}])


def _call(url: str) -> NewJob:
    payload = {
        "url": url,
        "event_type": "test.happened",
        "event": {"tells": PAYLOADS["what an event tells"]},
        "secret": SIGNING,
        "headers": {"Authorization": f"Bearer {TOKEN}"},
    }
    return NewJob(job_type="deliver_webhook", payload=payload, max_attempts=1)


def _work(laptop: JobsLaptop) -> None:
    """Run jobs that succeed, that a receiver refuses, and that crash their worker."""
    query = f"?key={QUERY}"
    with WebhookReceiver(answer(200)) as good, WebhookReceiver(answer(400, b"no")) as bad:
        laptop.work_off(_call(good.url(path=f"/hook{query}")), _call(bad.url(path=f"/hook{query}")))
    laptop.work_off(_call(f"http://127.0.0.1:1/hook{query}"), _call(f"http://no.such.host.invalid/hook{query}"))
    mail = {
        "channel": "email",
        "recipients": ["a@b.invalid"],
        "subject": "one",
        "body": PAYLOADS["what a mail tells"],
    }
    laptop.work_off(NewJob(job_type="deliver_notification", payload=mail, max_attempts=1))
    sqs = client("sqs", laptop.state.endpoint)
    broken = '{"job_id": "' + PAYLOADS["what is no message"]
    sqs.send_message(QueueUrl=laptop.url_of("normal"), MessageBody=broken)
    laptop.wait_until_idle()
    with WebhookReceiver(say(b"", then_wait=True)) as silent:
        laptop.begin(_call(silent.url()))
        while not silent.received:
            pass
        _kill_workers(laptop.state)
    laptop.wait_until_idle()


def _kill_workers(state: StackState) -> None:
    for process in psutil.Process(state.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # others come and go meanwhile
            if process.environ().get("AWS_LAMBDA_FUNCTION_NAME") == f"{state.stack}-worker":
                process.kill()


def _fail_outside(laptop: JobsLaptop) -> None:
    """Provoke services that refuse their key, and payloads and operations that are refused."""
    secrets = client("secretsmanager", laptop.state.endpoint)
    organization(laptop.db, stripe_customer_id="cus_unknown", subscription_status="active")
    forecast_run(laptop.db, datetime.now(UTC) - timedelta(hours=8), external_id="unknown")
    for task in ("sync_stripe", "reconcile_forecasts"):
        _invoke(laptop.state, "archiver", {"task": task, "force": True})
    for name in ("runpod", "stripe"):
        secrets.put_secret_value(SecretId=f"{laptop.state.stack}/forecasts/{name}", SecretString=SECRETS["a wrong key"])
    forecast_run(laptop.db, datetime.now(UTC) - timedelta(hours=14), external_id="unknown too")
    marker = PAYLOADS["a param that is refused"]
    for payload in (
        {"task": "sync_stripe", "force": True},
        {"task": "reconcile_forecasts", "force": True},
        {"task": "prune_history", "params": {"password": marker}},
        {"task": "prune_history", "force": marker},
        {"operation": "submit_jobs", "params": {"jobs": [{"job_type": "run_task", "payload": {"task": [marker]}}]}},
        {"operation": "list_runs", "params": {"limit": marker}},
    ):
        _invoke(laptop.state, "archiver", payload)
    _invoke(laptop.state, "poller", {"force_retry": True})
    _invoke(laptop.state, "archiver", {"task": "prune_history", "params": {"password": marker}}, "Event")
    laptop.wait_until_idle()


def _invoke(state: StackState, function: str, payload: object, kind: str = "RequestResponse") -> None:
    body = json.dumps(payload).encode()
    asked: Any = {"FunctionName": f"{state.stack}-{function}", "InvocationType": kind, "Payload": body}
    client("lambda", state.endpoint).invoke(**asked)["Payload"].read()


def _lose_the_database(laptop: JobsLaptop) -> None:
    """Try a wrong password, a missing server, and an unreadable URL."""
    for content in (
        _secret(laptop.state, WRONG_PASSWORD),
        json.dumps({"username": "known", "password": WRONG_PASSWORD, "host": "127.0.0.1", "port": 1}),
        f"postgresql://known:{HALF_A_PASSWORD}/more@127.0.0.1:1/signalbox",
    ):
        _use_secret(laptop, content)
        _invoke(laptop.state, "archiver", {"task": "prune_history"})
    _invoke(laptop.state, "migrator", {"action": "plan"})
    laptop.begin(_call("http://127.0.0.1:1/hook"))
    assert control(laptop.state, "GET", "idle?timeout=20")["idle"] is True


def _run_commands(home: Path) -> dict[str, str]:
    signalbox = Signalbox({"SIGNALBOX_HOME": str(home)})
    found = {}
    for words in ("doctor", "history", "dead-letters", "logs"):
        ran = signalbox(*words.split())
        found[f"said by signalbox {words}"] = ran.out + ran.err
    return found
