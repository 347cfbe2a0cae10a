"""Jobs run to their end on the laptop's deployment, over the real lanes, mappings and workers."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from signalbox.jobs.job_message import JobMessage
from signalbox.jobs.retry_routing import LOST_AFTER
from signalbox.packs.job_type import Lane
from signalbox.submit.new_job import NewJob
from signalbox_laptop.aws import ACCOUNT, REGION, client
from signalbox_laptop.home import StackState
from signalbox_laptop.up import StackOptions, down, up
from tests.support.jobs_laptop import JobsLaptop, jobs_laptop
from tests.support.laptop import control
from tests.support.stand_ins import caller, calls_of, instruct
from tests.support.webhook_receiver import WebhookReceiver, answer, say

SECRET = "signalbox/webhooks/tests"
SENDER = "box@signalbox.example"
PARAMETERS = {
    "JobEvents": "all",
    "ForecastsPack": "off",
    "WebhookAllowHttp": "on",
    "WebhookPorts": "1024-65535",
    "WebhookAllowedNetworks": "127.0.0.0/8",
    "SenderIdentityArn": f"arn:aws:ses:{REGION}:{ACCOUNT}:identity/signalbox.example",
    "SenderAddress": SENDER,
}

EMPTY = {"visible": 0, "in_hand": 0, "delayed": 0}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackState]:
    home = tmp_path_factory.mktemp("stack")
    state = up(StackOptions(home=home, port=0, clock=False, durable=False, parameters=PARAMETERS), lambda _: None)
    client("secretsmanager", state.endpoint).create_secret(Name=SECRET, SecretString="a key to sign with")
    yield state
    down(home, lambda _: None)


@pytest.fixture
def laptop(stack: StackState) -> Iterator[JobsLaptop]:
    with jobs_laptop(stack) as laptop:
        yield laptop


def note(number: int = 0, **fields: Any) -> NewJob:
    """Return a job whose effect is a row that nothing doubles."""
    payload = {"channel": "in_app", "recipients": [f"reader-{number}"], "body": "all is well"}
    return NewJob(job_type="deliver_notification", payload=payload, **fields)


def call(receiver: WebhookReceiver, **fields: Any) -> NewJob:
    payload = {"url": receiver.url(), "event_type": "test.happened", "event": {"number": 1}, "secret": SECRET}
    return NewJob(job_type="deliver_webhook", payload=payload, **fields)


def test_a_job_is_done_once_its_message_has_come(laptop: JobsLaptop) -> None:
    (job,) = laptop.work_off(note())
    assert laptop.column("status", [job]) == ["completed"]
    assert laptop.hold("normal") == EMPTY
    found = laptop.db.execute("SELECT recipient FROM signalbox.notifications WHERE job_id = %s", (job.id,))
    assert found.fetchall() == [("reader-0",)]


def test_a_hundred_jobs_come_in_batches_and_each_is_done_once(laptop: JobsLaptop) -> None:
    jobs = laptop.work_off(*[note(number) for number in range(100)])
    assert laptop.statuses(jobs) == {"completed": 100}
    executions = laptop.executions(*jobs)
    assert len(executions) == 100
    batches = Counter(one["worker_id"] for one in executions)
    assert max(batches.values()) > 10, "a window gathers more than SQS gives at once"
    assert laptop.hold("normal") == EMPTY


@pytest.mark.parametrize(("priority", "lane"), [(1, Lane.HIGH), (5, Lane.NORMAL), (10, Lane.LOW)])
def test_each_light_lane_is_worked_on(laptop: JobsLaptop, priority: int, lane: Lane) -> None:
    (job,) = laptop.work_off(note(priority=priority))
    assert [(one["lane"], one["status"]) for one in laptop.executions(job)] == [(lane, "completed")]


def test_the_heavy_lane_is_worked_on_by_a_function_of_its_own(laptop: JobsLaptop) -> None:
    (job,) = laptop.submit(note())
    laptop.lanes.send([JobMessage(job.id, job.job_type, Lane.HEAVY)])
    laptop.wait_until_idle()
    (execution,) = laptop.executions(job)
    streams = client("logs", laptop.state.endpoint).describe_log_streams(
        logGroupName=f"/aws/lambda/{laptop.state.stack}-worker-heavy"
    )["logStreams"]
    assert execution["execution_node"] in [stream["logStreamName"] for stream in streams]
    assert execution["status"] == "completed"


def test_a_task_runs_as_a_job_in_the_worker(laptop: JobsLaptop) -> None:
    (job,) = laptop.work_off(NewJob(job_type="run_task", payload={"task": "prune_history"}))
    assert laptop.column("status", [job]) == ["completed"]
    (result,) = laptop.column("result", [job])
    assert (result["task"], result["status"]) == ("prune_history", "succeeded")
    runs = laptop.db.execute("SELECT status FROM signalbox.job_history WHERE id = %s", (result["run_id"],))
    assert runs.fetchall() == [("succeeded",)]


def test_retried_job_comes_back_after_its_messages_delay(laptop: JobsLaptop) -> None:
    with WebhookReceiver(answer(503), answer(200)) as receiver:
        (job,) = laptop.work_off(call(receiver))
        assert laptop.column("status", [job]) == ["pending"]
        assert laptop.hold("normal")["delayed"] == 1
        assert laptop.await_final(job) == "completed"
        assert [request.headers["webhook-id"] for request in receiver.received] == [job.id] * 2
    assert [one["status"] for one in laptop.executions(job)] == ["failed", "completed"]


def test_a_job_that_fails_for_good_has_a_dead_letter(laptop: JobsLaptop) -> None:
    with WebhookReceiver(answer(410)) as receiver:
        (job,) = laptop.work_off(call(receiver))
    assert laptop.column("status", [job]) == ["failed"]
    (letter,) = laptop.dead_letters(original_job_id=job.id)
    assert (letter["failure_reason"], letter["status"]) == ("permanent", "pending")
    assert laptop.hold("normal-dlq") == EMPTY


def test_mail_and_text_messages_reach_the_stand_ins(laptop: JobsLaptop) -> None:
    ses, sns = (laptop.state.stand_ins[name] for name in ("ses", "sns"))
    instruct(ses, "faults", [{"matching": "b@x.example", "status": 400}])
    recipients = {"email": ("a@x.example", "b@x.example"), "sms": ("+15550000001",)}
    jobs = laptop.work_off(*[
        NewJob(
            job_type="deliver_notification",
            payload={"channel": channel, "recipients": [one], "subject": "s", "body": "It is signed."},
        )
        for channel, named in recipients.items()
        for one in named
    ])  # fmt: skip
    assert laptop.column("status", jobs) == ["completed", "failed", "completed"]
    assert laptop.column("error_details", jobs)[1]["message"] == "SES: AWS refuses it, BadRequestException"
    mails = [call["request"] for call in calls_of(ses) if call["name"] == "SendEmail"]
    assert {mail["FromEmailAddress"] for mail in mails} == {SENDER}
    assert sorted(mail["Destination"]["ToAddresses"] for mail in mails) == [["a@x.example"], ["b@x.example"]]
    assert "+15550000001" in [call["request"].get("PhoneNumber") for call in calls_of(sns)]


def test_a_message_to_a_topic_reaches_its_subscribers_through_the_stand_in(stack: StackState) -> None:
    topic = client("sns", stack.endpoint).create_topic(Name="people")["TopicArn"]
    queue = client("sqs", stack.endpoint).create_queue(QueueName="subscriber")["QueueUrl"]
    arn = f"arn:aws:sqs:{REGION}:{ACCOUNT}:subscriber"
    client("sns", stack.endpoint).subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    sns = caller("sns", stack.stand_ins["sns"])
    sent = sns.publish(TopicArn=topic, Message="It is signed.")["MessageId"]
    [message] = client("sqs", stack.endpoint).receive_message(QueueUrl=queue)["Messages"]
    told = json.loads(message["Body"])
    assert (told["MessageId"], told["Message"]) == (sent, "It is signed.")
    assert sns.publish(TopicArn=f"{topic}-unknown", Message="m")["MessageId"]
    assert topic in [one["TopicArn"] for one in sns.list_topics()["Topics"]]


def test_a_message_that_comes_three_times_changes_nothing(laptop: JobsLaptop) -> None:
    (job,) = laptop.submit(note())
    laptop.lanes.send([JobMessage(job.id, job.job_type, job.lane)] * 3)
    laptop.wait_until_idle()
    assert [one["status"] for one in laptop.executions(job)] == ["completed"]


def test_a_job_whose_message_got_lost_is_sent_again_by_dispatch_jobs(laptop: JobsLaptop) -> None:
    (job,) = laptop.submit(note(), ago=LOST_AFTER * 2)
    laptop.wait_until_idle()
    assert laptop.column("status", [job]) == ["queued"]
    dispatch(laptop)
    assert laptop.column("status", [job]) == ["completed"]


def test_job_waits_until_due_and_dispatch_jobs_then_sends_it(laptop: JobsLaptop) -> None:
    hour = timedelta(hours=1)
    jobs = [laptop.submit(note(delay=hour), ago=ago)[0] for ago in (hour / 2, hour)]
    dispatch(laptop)
    assert laptop.column("status", jobs) == ["pending", "completed"]


def test_unreadable_message_is_dead_lettered_alone(laptop: JobsLaptop) -> None:
    sqs, url = client("sqs", laptop.state.endpoint), laptop.url_of("low")
    policy = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["RedrivePolicy"])["Attributes"]["RedrivePolicy"]
    twice = json.dumps({**json.loads(policy), "maxReceiveCount": "2"})
    with laptop.attributes("low", VisibilityTimeout="1", RedrivePolicy=twice):
        laptop.work_off(note(priority=9))  # by a receive that may still go by the old ones
        sqs.send_message(QueueUrl=url, MessageBody="no job of ours")
        (job,) = laptop.begin(note(priority=9))
        letter = laptop.await_dead_letter(source="message")
    assert (letter["failure_reason"], letter["original_job_id"]) == ("unreadable", None)
    assert laptop.column("status", [job]) == ["completed"]
    assert laptop.hold("low-dlq") == EMPTY


def test_what_rules_and_invocations_lose_ends_among_the_dead_letters(laptop: JobsLaptop) -> None:
    payload = {"task": "reconcile_slots", "params": {"lookback_hours": 0}}
    client("lambda", laptop.state.endpoint).invoke(
        FunctionName=f"{laptop.state.stack}-archiver",
        InvocationType="Event",
        Payload=json.dumps(payload).encode(),
    )
    laptop.wait_until_idle()
    (letter,) = laptop.dead_letters(source="invocation")
    assert letter["error_type"] == "ParamsRefused"
    assert laptop.hold("failed-invocations") == EMPTY


def test_changes_of_a_job_are_published_on_the_stacks_bus(laptop: JobsLaptop) -> None:
    sqs, events = client("sqs", laptop.state.endpoint), client("events", laptop.state.endpoint)
    url = sqs.create_queue(QueueName="told")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    pattern = json.dumps({"detail-type": ["Job Status Changed"]})
    events.put_rule(Name="follow", EventBusName=laptop.state.stack, EventPattern=pattern)
    events.put_targets(Rule="follow", EventBusName=laptop.state.stack, Targets=[{"Id": "told", "Arn": arn}])
    (job,) = laptop.work_off(note())
    told = [json.loads(body)["detail"] for body in drained(sqs, url)]
    assert [one["status"] for one in told if one["job_id"] == job.id] == ["running", "completed"]


def test_an_urgent_job_is_begun_while_a_long_one_is_at_work(laptop: JobsLaptop) -> None:
    with WebhookReceiver(say(b"", then_wait=True)) as receiver:
        (long,) = laptop.begin(call(receiver))
        until(lambda: len(receiver.received) == 1)
        (urgent,) = laptop.begin(note(priority=1))
        until(lambda: laptop.column("status", [urgent]) == ["completed"])
        assert laptop.column("status", [long]) == ["running"]
    assert control(laptop.state, "GET", "idle?timeout=50")["idle"] is True


def dispatch(laptop: JobsLaptop) -> None:
    """Run the task once more for this minute, and all that follows."""
    assert laptop.archive(task="dispatch_jobs", force=True)["status"] == "succeeded"
    laptop.wait_until_idle()


def drained(sqs: Any, url: str) -> Iterator[str]:
    while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        for message in messages:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            yield message["Body"]


def until(condition: Any, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not so within {seconds} s"
        time.sleep(0.02)
