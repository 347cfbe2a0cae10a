"""The lanes carry no more than which job to look at, to the queue that its submit chose, by tenant."""

from __future__ import annotations

from datetime import timedelta

import pytest

from signalbox.errors import Unavailable
from signalbox.jobs.job_message import JobMessage
from signalbox.jobs.retry_routing import SQS_MAX_DELAY
from signalbox.packs.job_type import Lane
from signalbox.publish.lanes import Lanes
from signalbox.submit.new_job import NewJob
from tests.support.jobs_stage import JobsStage, sqs_event


@pytest.mark.parametrize(
    ("priority", "lane"), [(1, Lane.HIGH), (3, Lane.HIGH), (4, Lane.NORMAL), (7, Lane.NORMAL), (8, Lane.LOW)]
)
def test_a_job_is_sent_to_the_lane_of_its_priority(jobs_stage: JobsStage, priority: int, lane: Lane) -> None:
    submitted = jobs_stage.submit(NewJob(job_type="do_nothing", priority=priority))
    assert jobs_stage.send_jobs(submitted) == 1
    (message,) = jobs_stage.receive(lane)
    assert message["job_id"] == submitted[0].id


def test_a_message_holds_the_id_and_the_type_and_is_grouped_by_tenant(jobs_stage: JobsStage) -> None:
    submitted = jobs_stage.submit(NewJob(job_type="do_nothing", tenant="Ärzte am Markt", payload={"number": 7}))
    jobs_stage.send_jobs(submitted)
    assert jobs_stage.receive("normal") == [
        {"job_id": submitted[0].id, "job_type": "do_nothing", "group": "-rzte-am-Markt"}
    ]


def test_a_job_without_a_tenant_shares_one_group_with_the_others_like_it(jobs_stage: JobsStage) -> None:
    jobs_stage.send_jobs(jobs_stage.submit("do_nothing", "do_nothing"))
    assert [message["group"] for message in jobs_stage.receive("normal")] == ["-", "-"]


def test_many_jobs_are_sent_in_calls_of_ten_and_each_arrives_once(jobs_stage: JobsStage) -> None:
    submitted = jobs_stage.submit(*["do_nothing"] * 43)
    assert jobs_stage.send_jobs(submitted) == 43
    assert sorted(message["job_id"] for message in jobs_stage.receive("normal")) == sorted(one.id for one in submitted)


def test_what_waits_for_its_time_is_not_sent(jobs_stage: JobsStage) -> None:
    submitted = jobs_stage.submit(NewJob(job_type="do_nothing", delay=timedelta(minutes=1)))
    assert jobs_stage.send_jobs(submitted) == 0
    assert jobs_stage.lanes.depth("normal") == 0


def test_a_delay_beyond_what_sqs_knows_is_cut_to_that(jobs_stage: JobsStage) -> None:
    (job,) = jobs_stage.submit("do_nothing")
    notice = JobMessage(job.id, job.job_type, "low", delay=SQS_MAX_DELAY * 2)
    assert jobs_stage.lanes.send([notice]) == 1
    assert jobs_stage.delayed("low") == 1
    assert jobs_stage.lanes.depth("low") == 1


def test_a_lane_that_is_not_there_is_named(jobs_stage: JobsStage) -> None:
    elsewhere = Lanes(jobs_stage.engine.resources.clients, "nowhere")
    with pytest.raises(Unavailable, match="queue nowhere-normal takes no messages"):
        elsewhere.send([JobMessage("018f0000-0000-7000-8000-000000000000", "do_nothing", "normal")])
    with pytest.raises(Unavailable, match="lane 'high' does not say how deep it is"):
        elsewhere.depth("high")


def test_the_worker_completes_what_a_lane_brings(jobs_stage: JobsStage) -> None:
    jobs = jobs_stage.submit(*["do_nothing"] * 3)
    assert jobs_stage.work(sqs_event(jobs)) == {"batchItemFailures": []}
    assert {jobs_stage.status_of(job.id) for job in jobs} == {"completed"}


def test_a_retry_that_is_due_within_a_quarter_of_an_hour_goes_back_to_its_lane_delayed(jobs_stage: JobsStage) -> None:
    (job,) = jobs_stage.work_off(NewJob(job_type="obey", payload={"word": "fail", "seconds": 300}))
    assert jobs_stage.status_of(job.id) == "pending"
    assert jobs_stage.delayed("normal") == 1


def test_a_message_that_nobody_can_read_comes_back_alone(jobs_stage: JobsStage) -> None:
    jobs = jobs_stage.submit("do_nothing")
    event = sqs_event([*jobs, "not a job", '{"job_id": 7}'])
    failed = jobs_stage.work(event)["batchItemFailures"]
    assert [one["itemIdentifier"] for one in failed] == [record["messageId"] for record in event["Records"][1:]]
    assert jobs_stage.status_of(jobs[0].id) == "completed"
