"""notify_dead_letters reports each new kind of failure, critical ones singly, without a flood."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import psycopg
import pytest

from signalbox.budget import Budget
from signalbox.dead_letters.letters import triage
from signalbox.errors import Unavailable
from signalbox.operate.filters import DeadLetterFilter
from signalbox.tasks import notify_dead_letters as notifying
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.sqs_events import undelivered
from signalbox.testing.stage import NOON, Stage
from tests.support.contexts import context_of
from tests.support.dead_letters import add_letter, job_of, redrive

TOPIC = "arn:aws:sns:us-east-1:123456789012:operators"
INSERT = """
INSERT INTO signalbox.dead_letter_jobs
    (job_type, payload, failure_reason, error_type, final_error_message, total_attempts, fingerprint, severity)
SELECT %(job_type)s, '{"secret": "s3cr3t"}', 'permanent', 'Permanent', %(text)s, 1, %(kind)s, %(severity)s
FROM generate_series(1, %(number)s)
"""


@pytest.fixture
def topic(invokes: AwsStandIn) -> AwsStandIn:
    return invokes


@pytest.fixture
def stage(stage: Stage) -> Stage:
    return stage.another(operators_topic_arn=TOPIC)


def add(db: psycopg.Connection, kind: str, severity: str = "warning", number: int = 1, **fields: Any) -> None:
    given = {"job_type": "sign_passport", "text": f"trouble with {kind}", "number": number}
    db.execute(INSERT, {**given, "kind": kind, "severity": severity, **fields})


def notify(stage: Stage, at: datetime = NOON) -> dict[str, Any]:
    return stage.run("notify_dead_letters", at, force=True)


def unreported(db: psycopg.Connection) -> int:
    [number] = db.execute("SELECT count(*) FROM signalbox.dead_letter_jobs WHERE notified_at IS NULL").fetchone() or (
        -1,
    )
    return int(number)


def test_kinds_of_one_severity_share_a_message(stage: Stage, db: psycopg.Connection, topic: AwsStandIn) -> None:
    add(db, "one", number=3)
    add(db, "two")
    assert notify(stage)["items"] == 4
    [message] = topic.published
    assert message["TopicArn"] == TOPIC
    assert message["Subject"] == "[signalbox] warning: 4 new dead letters, 2 kinds"
    assert message["MessageAttributes.entry.1.Value.StringValue"] == "warning"
    assert "- 3 × sign_passport, permanent: Permanent: trouble with one (fingerprint one)" in message["Message"]
    assert "- 1 × sign_passport, permanent: Permanent: trouble with two (fingerprint two)" in message["Message"]
    assert "s3cr3t" not in str(topic.published)
    assert unreported(db) == 0


def test_a_critical_kind_has_a_message_of_its_own_and_comes_first(
    stage: Stage, db: psycopg.Connection, topic: AwsStandIn
) -> None:
    for kind, severity in [("a", "info"), ("b", "critical"), ("c", "warning"), ("d", "critical")]:
        add(db, kind, severity)
    notify(stage)
    assert [message["Subject"] for message in topic.published] == [
        "[signalbox] critical: 1 new dead letter, sign_passport",
        "[signalbox] critical: 1 new dead letter, sign_passport",
        "[signalbox] warning: 1 new dead letter, sign_passport",
        "[signalbox] info: 1 new dead letter, sign_passport",
    ]


def test_nobody_is_notified_twice(stage: Stage, db: psycopg.Connection, topic: AwsStandIn) -> None:
    add(db, "one")
    notify(stage)
    assert notify(stage)["items"] == 0
    assert len(topic.published) == 1


def test_nothing_new_is_no_message(stage: Stage, topic: AwsStandIn) -> None:
    assert (notify(stage)["items"], len(topic.published)) == (0, 0)


@pytest.mark.parametrize("status", ["investigating", "resolved", "ignored", "redriven"])
def test_triaged_letters_are_not_reported(stage: Stage, db: psycopg.Connection, topic: AwsStandIn, status: str) -> None:
    add(db, "one")
    db.execute(
        "UPDATE signalbox.dead_letter_jobs SET status = %(status)s, "
        "resolved_at = CASE WHEN %(status)s IN ('resolved', 'ignored') THEN now() END",
        {"status": status},
    )
    assert (notify(stage)["items"], len(topic.published)) == (0, 0)


def test_many_critical_kinds_do_not_flood(stage: Stage, db: psycopg.Connection, topic: AwsStandIn) -> None:
    for number in range(notifying.MOST_ALONE + 30):
        add(db, f"kind-{number}", "critical")
    notify(stage)
    assert len(topic.published) == notifying.MOST_ALONE + 1
    last = topic.published[-1]
    assert last["Subject"] == "[signalbox] critical: 30 new dead letters, 30 kinds"
    assert last["Message"].count("sign_passport") == notifying.MOST_LINES
    assert "- and 10 more of 10 other kinds" in last["Message"]
    assert unreported(db) == 0


def test_letters_beyond_one_run_are_counted_and_sent_by_the_next(
    stage: Stage, db: psycopg.Connection, topic: AwsStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifying, "MOST_LETTERS", 5)
    add(db, "one", number=12)
    answer = notify(stage)
    assert (answer["items"], answer["more"]) == (5, True)
    assert "7 more follow in the next message" in topic.published[0]["Message"]
    stage.deliver()  # the continuations
    assert (len(topic.published), unreported(db)) == (3, 0)
    assert "more follow" not in topic.published[-1]["Message"]


def test_a_topic_that_takes_nothing_is_tried_again(stage: Stage, db: psycopg.Connection, topic: AwsStandIn) -> None:
    add(db, "one", "critical")
    add(db, "two", "warning")
    topic.takes = 1
    with pytest.raises(Unavailable, match="operators' topic"):
        notify(stage)
    assert unreported(db) == 1  # what was published is marked
    topic.takes = None
    notify(stage)
    assert (len(topic.published), unreported(db)) == (2, 0)


def test_crash_after_publishing_notifies_twice(stage: Stage, db: psycopg.Connection, topic: AwsStandIn) -> None:
    add(db, "one")
    topic.taken = stage.app.resources.database.close
    with pytest.raises(psycopg.OperationalError):
        notify(stage)
    assert unreported(db) == 1
    topic.taken = lambda: None
    notify(stage)
    assert (len(topic.published), unreported(db)) == (2, 0)


def test_letter_that_arrives_while_publishing_is_sent_next(
    stage: Stage, db: psycopg.Connection, topic: AwsStandIn
) -> None:
    add(db, "one")
    topic.taken = lambda: add(db, "one")
    assert notify(stage)["items"] == 1
    assert unreported(db) == 1


def test_without_a_topic_the_log_and_the_metric_report(
    stage: Stage,
    db: psycopg.Connection,
    topic: AwsStandIn,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    add(db, "one", "critical", number=2)
    stage = stage.another(operators_topic_arn="")
    assert notify(stage)["items"] == 2
    told = capsys.readouterr().out
    assert "dead_letters.noticed" in caplog.messages
    assert '"CriticalDeadLetters":[2.0]' in told
    assert '"severity":"critical"' in told
    assert "s3cr3t" not in told
    assert (len(topic.published), unreported(db)) == (0, 0)


def test_a_run_without_time_goes_on_in_another(stage: Stage, db: psycopg.Connection, topic: AwsStandIn) -> None:
    add(db, "one")
    context = replace(context_of(stage, "notify_dead_letters", NOON), budget=Budget.of(0))
    assert notifying.notify_dead_letters(context).more
    assert (len(topic.published), unreported(db)) == (0, 1)


def test_a_subject_is_one_that_sns_takes(stage: Stage, db: psycopg.Connection, topic: AwsStandIn) -> None:
    add(db, "one", job_type="größe\n" + "x" * 200, text="two\nlines")
    notify(stage)
    [subject] = [message["Subject"] for message in topic.published]
    assert (len(subject), subject.isascii(), "\n" in subject) == (100, True, False)
    assert "Permanent: two lines" in topic.published[0]["Message"]


def test_letter_that_fails_again_or_returns_is_sent_again(stage: Stage, topic: AwsStandIn) -> None:
    redriven = add_letter(stage)
    notify(stage)
    redrive(stage, redriven)
    stage.work(str(job_of(stage, redriven)["id"]))
    notify(stage)
    triage(stage.db, DeadLetterFilter(ids=[redriven]), "resolved", by="ada")
    add_letter(stage)
    assert notify(stage)["items"] == 2  # the new one, and the one that was thought to be mended
    assert len(topic.published) == 3


def test_lost_event_is_reported(stage: Stage, topic: AwsStandIn) -> None:
    stage.consume(undelivered())
    notify(stage)
    assert "prune_history, undelivered: THROTTLING: Rate exceeded" in topic.published[0]["Message"]
