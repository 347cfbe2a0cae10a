"""The archiver answers the command line's operations about jobs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from signalbox.errors import (
    CapRefused,
    IdRefused,
    JobRefused,
    JobTypeUnknown,
    JobUnknown,
    PayloadRefused,
    ScheduleRefused,
    ScheduleUnknown,
    TransitionRefused,
)
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.sqs_events import PRUNING, failed_invocation
from signalbox.testing.stage import Stage
from tests.support.attempts import claim

NOBODY = "00000000-0000-7000-8000-000000000000"


def submit(stage: Stage, *jobs: dict[str, Any], **params: Any) -> dict[str, Any]:
    return stage.operate("submit_jobs", jobs=[{"job_type": "do_nothing"} | job for job in jobs], **params)


def ids_of(answer: dict[str, Any]) -> list[str]:
    return [job["id"] for job in answer["jobs"]]


# ---- submit


def test_a_submitted_job_is_stored_and_sent(stage: Stage, lanes: AwsStandIn) -> None:
    answer = submit(stage, {"tenant": "acme", "priority": 2}, by="jo")
    [job] = answer["jobs"]
    assert (job["lane"], job["status"], job["created"], answer["created"], answer["sent"]) == (
        "high",
        "queued",
        True,
        1,
        1,
    )
    assert lanes.take() == [{"job_id": job["id"], "lane": "high", "delay": 0, "group": "acme"}]
    shown = stage.operate("show_job", id=job["id"])["job"]
    assert (shown["created_by"], shown["tenant"], shown["priority"]) == ("jo", "acme", 2)


def test_second_submit_with_one_key_returns_first_job_and_sends_nothing(stage: Stage) -> None:
    first, second = (submit(stage, {"idempotency_key": "k"}) for _ in range(2))
    assert ids_of(first) == ids_of(second)
    assert (second["created"], second["sent"], second["jobs"][0]["created"]) == (0, 0, False)


def test_jobs_of_one_call_may_wait_for_each_other_by_their_refs(stage: Stage) -> None:
    waits = {"depends_on": ["a", {"job": "b", "type": "completion"}]}
    answer = submit(stage, {"ref": "a"}, {"ref": "b"}, waits)
    one, two, last = ids_of(answer)
    assert answer["sent"] == 2
    shown = stage.operate("show_job", id=last)
    assert [(parent["id"], parent["dependency_type"]) for parent in shown["depends_on"]] == [
        (one, "success"),
        (two, "completion"),
    ]
    assert [child["id"] for child in stage.operate("show_job", id=one)["dependents"]] == [last]


def test_a_dry_run_checks_everything_and_stores_nothing(stage: Stage, db: psycopg.Connection) -> None:
    assert submit(stage, {}, {}, dry_run=True) == {
        "operation": "submit_jobs",
        "dry_run": {"jobs": 2, "created": 2},
    }
    with pytest.raises(JobRefused, match="job 2 of 2"):
        submit(stage, {}, {"payload": {"number": "x"}}, dry_run=True)
    assert db.execute("SELECT count(*) FROM signalbox.jobs").fetchone() == (0,)


@pytest.mark.parametrize(
    ("job", "error", "words"),
    [
        ({"job_type": "do_nothin"}, JobTypeUnknown, "did you mean 'do_nothing'"),
        ({"payload": {"numbr": 1}}, JobRefused, "field 'numbr' is not known; did you mean 'number'"),
        ({"lane": "heavy"}, JobRefused, "may not run in lane 'heavy'"),
        ({"priority": 11}, JobRefused, "priority 11 is not between 1"),
        ({"delay": 5}, PayloadRefused, "field 'jobs.0.delay' is not known; did you mean 'delay_seconds'"),
        (
            {"depends_on": [{"jobb": "a"}]},
            PayloadRefused,
            "'jobs.0.depends_on.0.job' is missing; field 'jobs.0.depends_on.0.jobb' is not known; did you mean 'job'",
        ),
        ({"depends_on": [5]}, PayloadRefused, "field 'jobs.0.depends_on.0': Input should be"),
        ({"at": "2026-01-01T00:00"}, PayloadRefused, "no time zone"),
        ({"depends_on": ["nobody"]}, JobRefused, "ids of jobs"),
        ({"depends_on": [NOBODY]}, JobRefused, NOBODY),
        ({"ref": "a", "depends_on": ["a"]}, JobRefused, "itself"),
        ({"timeout_seconds": 800}, JobRefused, "time-out"),
        ({"name": "nul \0"}, PayloadRefused, "NUL"),
    ],
    ids=str,
)
def test_a_job_that_can_not_be_is_refused_with_the_reason(
    stage: Stage, db: psycopg.Connection, job: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        submit(stage, job)
    assert db.execute("SELECT count(*) FROM signalbox.jobs").fetchone() == (0,)


def test_two_jobs_of_a_call_may_not_have_the_same_ref(stage: Stage) -> None:
    with pytest.raises(JobRefused, match="two jobs of this call have the ref 'a'"):
        submit(stage, {"ref": "a"}, {"ref": "a"})


def test_jobs_that_can_not_be_sent_are_stored_all_the_same(stage: Stage, lanes: AwsStandIn) -> None:
    lanes.away.add("normal")
    answer = submit(stage, {})
    assert (answer["sent"], stage.status(ids_of(answer)[0])) == (0, "queued")


# ---- list and show


def test_jobs_are_listed_newest_first_page_by_page(stage: Stage) -> None:
    ids = ids_of(submit(stage, *[{} for _ in range(5)]))
    first = stage.operate("list_jobs", limit=3)
    second = stage.operate("list_jobs", limit=3, before_id=first["next"])
    assert [job["id"] for job in first["jobs"] + second["jobs"]] == sorted(ids, reverse=True)
    assert second["next"] is None


def test_a_list_takes_a_filter_and_refuses_one_that_is_none(stage: Stage) -> None:
    submit(stage, {"tenant": "acme"}, {"tenant": "other"})
    [job] = stage.operate("list_jobs", tenant="acme", status="queued")["jobs"]
    assert job["tenant"] == "acme"
    assert stage.operate("list_jobs", tenant="nobody")["jobs"] == []
    with pytest.raises(JobTypeUnknown, match="did you mean 'obey'"):
        stage.operate("list_jobs", job_type="obei")
    with pytest.raises(PayloadRefused, match="'status'"):
        stage.operate("list_jobs", status="done")
    with pytest.raises(IdRefused, match="not the id"):
        stage.operate("list_jobs", before_id="7")


@pytest.mark.parametrize("operation", ["list_jobs", "list_schedules", "list_dead_letters"])
@pytest.mark.parametrize("limit", [0, 1001])
def test_page_has_between_one_and_a_thousand_rows(stage: Stage, operation: str, limit: int) -> None:
    with pytest.raises(PayloadRefused, match="'limit'"):
        stage.operate(operation, limit=limit)


def test_a_job_is_shown_with_its_attempts_group_children_and_orders(stage: Stage) -> None:
    job = {"job_type": "obey", "payload": {"word": "fail_for_good"}, "group": "night"}
    [job_id] = ids_of(submit(stage, job))
    stage.operate("pause", ids=[job_id], by="jo", reason="not now")
    stage.operate("resume", ids=[job_id], by="jo")
    stage.work(job_id)
    shown = stage.operate("show_job", id=job_id)
    [attempt] = shown["executions"]
    assert (shown["job"]["status"], shown["job"]["payload"]) == ("failed", {"word": "fail_for_good", "seconds": 0})
    assert (attempt["status"], attempt["error_code"]) == ("failed", "Permanent")
    assert (shown["group"]["total"], shown["group"]["failed"]) == (1, 1)
    assert (shown["dead_letter"]["failure_reason"], shown["dead_letter"]["status"]) == ("permanent", "pending")
    assert [order["action"] for order in shown["orders"]] == ["job.resume", "job.pause"]
    assert "lease_token" not in shown["job"]


def test_a_job_that_is_not_there_is_refused(stage: Stage) -> None:
    with pytest.raises(JobUnknown, match=f"no job has the id {NOBODY}"):
        stage.operate("show_job", id=NOBODY)


def test_refusal_is_an_answer_of_the_function_and_is_logged(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    event = {"operation": "show_job", "params": {"id": NOBODY}}
    refused = stage.app.operate(event, stage.invocation())["refused"]
    assert (refused["errorType"], NOBODY in refused["errorMessage"]) == ("JobUnknown", True)
    assert "operation.refused" in caplog.messages


# ---- orders


def test_an_order_is_previewed_and_then_carried_out_on_what_was_seen(stage: Stage) -> None:
    submit(stage, {"tenant": "acme"}, {"tenant": "acme", "delay_seconds": 60})
    seen = stage.operate("cancel_jobs", tenant="acme", dry_run=True)["dry_run"]
    assert seen["counts"] == {"pending": 1, "queued": 1}
    assert len(seen["sample"]) == 2
    submit(stage, {"tenant": "acme"})
    answer = stage.operate("cancel_jobs", tenant="acme", until=seen["as_of"], by="jo")
    assert (answer["cancelled"], answer["requested"], answer["more"]) == (2, 0, False)


def test_ended_jobs_among_named_ones_are_reported(stage: Stage) -> None:
    over, waits = ids_of(submit(stage, {}, {"delay_seconds": 600}))
    stage.work(over)
    answer = stage.operate("cancel_jobs", ids=[over, waits])
    assert (answer["cancelled"], answer["refused"]) == (1, [{"id": over, "status": "completed"}])
    with pytest.raises(TransitionRefused, match="is completed"):
        stage.operate("cancel_jobs", ids=[over])


def test_a_retry_is_sent_at_once(stage: Stage, lanes: AwsStandIn) -> None:
    [job_id] = ids_of(submit(stage, {"at": (datetime.now(UTC) + timedelta(hours=1)).isoformat()}))
    assert lanes.take() == []
    answer = stage.operate("retry_jobs", ids=[job_id])
    assert (answer["hastened"], answer["sent"]) == (1, 1)
    stage.work(*(message["job_id"] for message in lanes.take()))
    assert stage.status(job_id) == "completed"


def test_a_type_is_paused_and_resumed_with_its_jobs(stage: Stage, lanes: AwsStandIn) -> None:
    [job_id] = ids_of(submit(stage, {}))
    paused = stage.operate("pause", kind="type", key="do_nothing", by="jo", reason="it burns")
    assert (paused["control"]["paused"], paused["control"]["changed_by"]) == (True, "jo")
    stage.work(job_id)
    assert stage.status(job_id) == "paused"
    [control] = stage.operate("list_controls")["controls"]
    assert (control["key"], control["held"], control["running"], control["reason"]) == ("do_nothing", 1, 0, "it burns")
    lanes.take()
    answer = stage.operate("resume", kind="type", key="do_nothing")
    assert (answer["resumed"], answer["held"], answer["sent"], answer["control"]) == (1, 0, 1, None)
    assert len(lanes.take()) == 1


@pytest.mark.parametrize(
    ("operation", "params"),
    [("show_job", {"id": "123"})] + [(name, {"ids": ["123"]}) for name in ("cancel_jobs", "retry_jobs", "pause")],
)
def test_what_is_no_id_is_refused(stage: Stage, operation: str, params: dict[str, Any]) -> None:
    with pytest.raises(IdRefused, match="'123' is not the id of a job, which is a UUID"):
        stage.operate(operation, **params)


@pytest.mark.parametrize(
    ("kind", "key"), [("type", "do_nothing"), ("lane", "low"), ("tenant", "acme"), ("key", "printer")]
)
def test_second_pause_of_a_kind_replaces_author_time_and_reason(stage: Stage, kind: str, key: str) -> None:
    first = stage.operate("pause", kind=kind, key=key, by="anna", reason="it burns")["control"]
    second = stage.operate("pause", kind=kind, key=key, by="jo", reason="audit")["control"]
    assert (second["changed_by"], second["reason"]) == ("jo", "audit")
    assert second["changed_at"] > first["changed_at"]


def test_pause_says_whether_any_job_of_it_is_known(stage: Stage) -> None:
    submit(stage, {"tenant": "acme"})
    assert stage.operate("pause", kind="tenant", key="acme")["known"] is True
    assert stage.operate("pause", kind="tenant", key="acmee")["known"] is False
    assert stage.operate("pause", kind="lane", key="low")["known"] is True


@pytest.mark.parametrize("operation", ["list_dead_letters", "triage_dead_letters", "redrive"])
def test_dead_letters_of_a_misspelt_type_are_refused(stage: Stage, operation: str) -> None:
    decision: dict[str, Any] = {"decision": "ignored"} if operation == "triage_dead_letters" else {}
    with pytest.raises(JobTypeUnknown, match="did you mean 'do_nothing'"):
        stage.operate(operation, job_type="do_nothin", **decision)


def test_dead_letters_of_a_type_that_is_gone_are_found(stage: Stage, lanes: AwsStandIn, db: psycopg.Connection) -> None:
    submit(stage, {"job_type": "obey", "payload": {"word": "fail_for_good"}})
    stage.work(*(message["job_id"] for message in lanes.take()))
    db.execute("UPDATE signalbox.dead_letter_jobs SET job_type = 'obay'")
    assert len(stage.operate("list_dead_letters", job_type="obay")["dead_letters"]) == 1


def test_unknown_type_among_many_jobs_is_named_with_its_place(stage: Stage) -> None:
    with pytest.raises(JobTypeUnknown, match="job 2 of 3: job type 'do_nothin' is not registered"):
        submit(stage, {}, {"job_type": "do_nothin"}, {})


@pytest.mark.parametrize(
    ("operation", "params", "error", "words"),
    [
        ("pause", {"kind": "type", "key": "do_nothin"}, JobTypeUnknown, "did you mean 'do_nothing'"),
        ("pause", {"kind": "lane", "key": "fast"}, CapRefused, "the lanes are high, normal, low, heavy"),
        ("pause", {"kind": "tenant"}, CapRefused, "needs both"),
        ("pause", {"kind": "tenant", "key": ""}, CapRefused, "1 to 200 characters"),
        ("pause", {"kind": "tenant", "key": "a", "tag": "b"}, CapRefused, "not both"),
        ("pause", {}, JobRefused, "every job"),
        ("resume", {"kind": "tenant", "key": "acme"}, CapRefused, "tenant 'acme' is not paused"),
        ("set_cap", {"kind": "lane", "key": "fast", "max_running": 1}, CapRefused, "no lane 'fast'"),
        ("set_cap", {"kind": "tenant", "key": "a", "rate": 5}, CapRefused, "give both"),
        ("set_cap", {"kind": "tenant", "key": "a", "max_running": -1}, PayloadRefused, "'max_running'"),
        ("cancel_jobs", {"ids": []}, PayloadRefused, "'ids'"),
        ("cancel_jobs", {"tenantt": "a"}, PayloadRefused, "did you mean 'tenant'"),
        ("cancel_jobs", {"tenant": "a", "by": ""}, PayloadRefused, "'by'"),
    ],
)
def test_an_order_that_makes_no_sense_is_refused_with_the_reason(
    stage: Stage, operation: str, params: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        stage.operate(operation, **params)
    assert stage.operate("list_controls")["controls"] == []


def test_a_cap_is_set_changed_and_lifted(stage: Stage, db: psycopg.Connection) -> None:
    cap: Any = {"kind": "tenant", "key": "acme"}
    stage.operate("set_cap", **cap, max_running=1, by="jo", reason="too loud")
    ids = ids_of(submit(stage, {"tenant": "acme"}, {"tenant": "acme"}))
    claim(stage.db, *ids)
    assert sorted(stage.statuses(*ids)) == ["pending", "running"]
    changed = stage.operate("set_cap", **cap, rate=10, per_seconds=60)["control"]
    assert (changed["max_running"], changed["rate"], changed["per_seconds"]) == (None, 10, 60)
    assert stage.operate("set_cap", **cap)["control"] is None
    actions = db.execute("SELECT action, entity_type, entity_id FROM signalbox.audit_log").fetchall()
    assert actions == [("tenant.cap", "tenant", "acme")] * 3


def test_new_rate_begins_at_once_and_the_same_rate_goes_on(stage: Stage, db: psycopg.Connection) -> None:
    cap: Any = {"kind": "type", "key": "do_nothing", "per_seconds": 3600}
    stage.operate("set_cap", **cap, rate=2)
    stage.work(*ids_of(submit(stage, {}, {})))
    stage.operate("set_cap", **cap, rate=2, max_running=5)
    waits = "SELECT next_at - now() FROM signalbox.job_caps"
    [(wait,)] = db.execute(waits).fetchall()
    assert wait > timedelta(minutes=29)
    stage.operate("set_cap", **cap, rate=3)
    assert db.execute(waits).fetchone() == (None,)


# ---- dead letters


def test_a_dead_letter_is_found_triaged_and_redriven(stage: Stage) -> None:
    job = {"job_type": "obey", "payload": {"word": "fail_for_good"}}
    [job_id] = ids_of(submit(stage, job))
    stage.work(job_id)
    [letter] = stage.operate("list_dead_letters", status="pending")["dead_letters"]
    [kind] = stage.operate("list_dead_letters", by_kind=True)["kinds"]
    assert kind["fingerprint"] == letter["fingerprint"]
    order: Any = {"fingerprint": letter["fingerprint"], "by": "jo"}
    assert stage.operate("triage_dead_letters", **order, decision="investigating")["changed"] == 1
    assert stage.operate("show_dead_letter", id=letter["id"])["dead_letter"]["status"] == "investigating"
    assert stage.operate("redrive", **order, dry_run=True)["count"] == 1
    assert stage.status(job_id) == "failed"
    assert stage.operate("redrive", ids=[letter["id"]], payload={"word": "complete"}, by="jo")["redriven"] == 1
    assert stage.status(job_id) == "pending"


def test_an_invocation_that_was_given_up_is_made_again(stage: Stage, invokes: AwsStandIn) -> None:
    archiver = f"{stage.app.resources.settings.stack}-archiver"
    assert stage.consume(failed_invocation(archiver)) == []
    [letter] = stage.operate("list_dead_letters", source="invocation")["dead_letters"]
    assert stage.operate("redrive", ids=[letter["id"]], by="jo")["redriven"] == 1
    assert invokes.payloads == [PRUNING]


# ---- schedules and figures


def test_a_schedule_is_made_listed_held_and_deleted(stage: Stage, db: psycopg.Connection) -> None:
    given: Any = {"name": "nightly", "job_type": "do_nothing", "cron": "15 2 * * *", "timezone": "Europe/Berlin"}
    made = stage.operate("create_schedule", **given, by="jo", reason="they asked")["schedule"]
    assert (made["status"], made["next_run_at"]) == ("active", "2026-03-11T01:15:00+00:00")
    with pytest.raises(ScheduleRefused, match="already"):
        stage.operate("create_schedule", **given)
    changed = stage.operate("create_schedule", **given | {"cron": None, "every_seconds": 600}, replacing=True)
    assert (changed["schedule"]["id"], changed["schedule"]["interval_ms"]) == (made["id"], 600_000)
    [listed] = stage.operate("list_schedules", limit=1)["schedules"]
    assert listed["name"] == "nightly"
    assert stage.operate("pause_schedule", id="nightly", reason="wait")["schedule"]["status"] == "paused"
    assert stage.operate("resume_schedule", id=made["id"])["schedule"]["status"] == "active"
    stage.operate("delete_schedule", id="nightly", by="jo")
    assert stage.operate("list_schedules") == {"operation": "list_schedules", "schedules": [], "next": None}
    actions = db.execute("SELECT action FROM signalbox.audit_log ORDER BY id").fetchall()
    assert [action for (action,) in actions] == [
        f"schedule.{step}" for step in ("create", "replace", "pause", "resume", "delete")
    ]


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        ({"cron": "* * * * *", "every_seconds": 60.0}, ScheduleRefused, "one of cron, every and at"),
        ({"cron": "61 * * * *"}, ScheduleRefused, "61"),
        ({"every_seconds": 60.0, "job_type": "do_nothin"}, JobTypeUnknown, "did you mean 'do_nothing'"),
        ({"every_seconds": 60.0, "options": {"priorty": 1}}, ScheduleRefused, "did you mean 'priority'"),
        ({"every_seconds": 0}, PayloadRefused, "'every_seconds'"),
        ({"every_seconds": 60.0, "expires_at": "2026-03-12T00:00"}, PayloadRefused, "no time zone"),
    ],
)
def test_a_schedule_that_can_not_be_is_refused(
    stage: Stage, params: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        stage.operate("create_schedule", **{"name": "a", "job_type": "do_nothing"} | params)
    with pytest.raises(ScheduleUnknown, match="'a'"):
        stage.operate("pause_schedule", id="a")


def test_figures_and_health_are_returned(stage: Stage) -> None:
    submit(stage, {}, {})
    figures = stage.operate("show_statistics", hours=1)
    assert figures["by_status"]["queued"] == 2
    assert stage.operate("show_health")["status"] == "healthy"
    with pytest.raises(JobTypeUnknown, match="did you mean 'obey'"):
        stage.operate("show_statistics", job_type="obei")


def test_each_change_is_published_on_the_bus_after_its_commit(stage: Stage, invokes: AwsStandIn) -> None:
    stage = stage.another(event_bus="changes")
    ids = ids_of(submit(stage, *[{"tenant": "acme"}] * 12))
    stage.operate("cancel_jobs", tenant="acme")
    invokes.away |= {"bus", "normal"}
    [last] = ids_of(submit(stage, {}))
    assert stage.status(last) == "queued", "an unavailable bus does not delay a job"
    told = {(change["job_id"], change["status"]) for change in invokes.details}
    assert told == {(id_, status) for id_ in ids for status in ("queued", "cancelled")}
    assert {event["EventBusName"] for event in invokes.events} == {"changes"}


def test_a_group_is_shown_and_sealed_with_what_is_to_follow(stage: Stage, db: psycopg.Connection) -> None:
    operate = stage.operate
    jobs = [{"job_type": "do_nothing", "group": "import-7"}] * 2
    operate("submit_jobs", jobs=jobs)
    group = operate("show_group", id="import-7")["group"]
    assert (group["total"], group["left"], group["percent"], group["sealed"]) == (2, 2, 0, False)
    sealed = operate("seal_group", id="import-7", completion={"job_type": "do_nothing"}, by="warden", reason="all in")
    assert sealed["group"]["sealed"] is True
    assert operate("seal_group", id="import-7", by="jo")["group"] == sealed["group"]
    follower = operate("show_job", id=sealed["group"]["completion_job_id"])["job"]
    assert follower["status"] == "pending"
    audit = db.execute("SELECT actor, action, entity_type, entity_id, detail FROM signalbox.audit_log").fetchall()
    assert audit == [("warden", "group.seal", "group", "import-7", {"reason": "all in"})]
    with pytest.raises(JobRefused, match="is sealed"):
        operate("submit_jobs", jobs=jobs)


def test_seal_of_a_group_that_has_ended_sends_its_completion_job(stage: Stage, lanes: AwsStandIn) -> None:
    stage.work(stage.submit("do_nothing", group="import-7"))
    sealed = stage.operate("seal_group", id="import-7", completion={"job_type": "do_nothing"})["group"]
    assert [message["job_id"] for message in lanes.take()] == [sealed["completion_job_id"]]
