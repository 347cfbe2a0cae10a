"""`explain_job` gives one reason for a job that does not run, and the engine agrees with it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from signalbox.errors import JobUnknown
from signalbox.jobs.dependency import Dependency
from signalbox.operate import caps
from signalbox.operate.audit import Actor
from signalbox.operate.caps import Cap, CapTarget
from signalbox.submit.new_job import NewJob
from signalbox.testing.rows import insert_job
from signalbox.testing.stage import Stage

JO = Actor("jo", "because")
NOBODY = "00000000-0000-7000-8000-000000000000"


def explain(stage: Stage, job_id: str) -> dict[str, Any]:
    found: dict[str, Any] = stage.operate("explain_job", id=job_id)["explanation"]
    return found


def reason(stage: Stage, job_id: str) -> tuple[str, str | None, str | None]:
    found = explain(stage, job_id)
    return found["reason"], found["kind"], found["key"]


def set_cap(stage: Stage, kind: caps.Kind, key: str, **cap: int) -> None:
    caps.set_cap(stage.db, stage.job_types, CapTarget(kind, key), Cap(**cap), by=JO)


def at_work(stage: Stage, **columns: Any) -> str:
    """Insert a job that another worker has."""
    columns = {"status": "running", "worker_id": "other", "lease_token": NOBODY, "job_type": "do_nothing"} | columns
    now = datetime.now(UTC)
    return insert_job(stage.db, columns | {"started_at": now, "lease_expires_at": now + timedelta(minutes=1)})


def test_job_at_work_and_one_that_has_ended_say_so(stage: Stage) -> None:
    assert reason(stage, at_work(stage)) == ("running", "worker", "other")
    job_id = stage.submit("do_nothing")
    stage.work(job_id)
    assert (reason(stage, job_id)[0], explain(stage, job_id)["detail"]) == ("ended", {"status": "completed"})
    with pytest.raises(JobUnknown, match=f"no job has the id {NOBODY}"):
        explain(stage, NOBODY)


def test_child_waits_for_a_parent_that_has_not_ended(stage: Stage) -> None:
    done, open_ = (stage.submit("do_nothing") for _ in range(2))
    child = stage.submit(NewJob("do_nothing", depends_on=[Dependency(done), Dependency(open_)]))
    assert explain(stage, child)["detail"]["unmet"] == 2
    stage.work(done)
    assert reason(stage, child) == ("parent", "job", open_)
    assert explain(stage, child)["detail"] == {"job_type": "do_nothing", "status": "queued", "unmet": 1}


def test_completion_job_waits_for_its_group(stage: Stage) -> None:
    stage.submit("do_nothing", group="night")
    stage.operate("seal_group", id="night", completion={"job_type": "do_nothing"})
    completion = stage.operate("show_group", id="night")["group"]["completion_job_id"]
    assert reason(stage, completion) == ("group", "group", "night")
    assert explain(stage, completion)["detail"] == {"left": 1, "total": 1}


def test_capped_job_says_how_many_run_and_wait_before_it(stage: Stage) -> None:
    set_cap(stage, "tenant", "acme", max_running=1)
    at_work(stage, tenant="acme")
    first, second = (stage.submit("do_nothing", tenant="acme") for _ in range(2))
    stage.work(first, second)
    assert reason(stage, second) == ("cap", "tenant", "acme")
    detail = explain(stage, second)["detail"]
    assert (detail["max_running"], detail["running"], detail["before"]) == (1, 1, 1)
    assert explain(stage, second)["text"] == "held by the cap of tenant 'acme': 1 of 1 at work, 1 held before it"
    caps.pause_target(stage.db, stage.job_types, CapTarget("tenant", "acme"), by=JO)
    assert reason(stage, second) == ("pause", "tenant", "acme")


def test_rated_job_says_when_the_next_may_begin(stage: Stage) -> None:
    set_cap(stage, "type", "do_nothing", rate=1, per_seconds=3600)
    first, second = (stage.submit("do_nothing") for _ in range(2))
    stage.work(first, second)
    found = explain(stage, second)
    assert (found["reason"], found["kind"], found["key"]) == ("rate", "type", "do_nothing")
    assert datetime.now(UTC) < datetime.fromisoformat(found["until"]) < datetime.now(UTC) + timedelta(hours=1)


def test_pause_of_a_job_and_of_its_type_say_who_did_it(stage: Stage) -> None:
    job_id = stage.submit("do_nothing")
    stage.operate("pause", kind="type", key="do_nothing", by="anna", reason="it burns")
    found = explain(stage, job_id)
    assert (found["reason"], found["detail"]) == ("pause", {"by": "anna", "reason": "it burns"})
    assert found["text"].startswith("type 'do_nothing' is paused by anna: it burns; ")
    stage.operate("pause", ids=[job_id], by="jo")
    assert (reason(stage, job_id)[0], explain(stage, job_id)["detail"]) == ("paused", {"by": "jo"})


def test_time_is_that_of_the_submit_or_of_a_retry(stage: Stage) -> None:
    later = stage.submit("do_nothing", delay=timedelta(hours=1))
    found = explain(stage, later)
    assert (found["reason"], found["detail"]["cause"]) == ("time", "submitted")
    failed = stage.submit("obey", payload={"word": "fail"})
    stage.work(failed)
    found = explain(stage, failed)
    assert (found["reason"], found["detail"]["cause"]) == ("time", "retry")
    assert found["until"] == stage.job(failed)["scheduled_for"].astimezone(UTC).isoformat()


def test_queued_job_waits_for_its_lane_or_for_a_worker(stage: Stage) -> None:
    second = [stage.submit("do_nothing") for _ in range(2)][1]
    assert reason(stage, second) == ("lane", "lane", "normal")
    stage.db.execute("UPDATE signalbox.jobs SET queued_at = now() - interval '5 min'")
    assert (reason(stage, second), explain(stage, second)["detail"]["before"]) == (("no_worker", "lane", "normal"), 1)
    at_work(stage, lane="normal")
    assert reason(stage, second) == ("lane", "lane", "normal")


def test_due_job_that_nobody_has_sent_waits_for_the_dispatcher(stage: Stage) -> None:
    job_id = stage.submit("do_nothing", delay=timedelta(hours=1))
    stage.db.execute("UPDATE signalbox.jobs SET scheduled_for = now(), send_at = now()")
    assert reason(stage, job_id) == ("dispatch", "task", "dispatch_jobs")


# ---- the engine agrees: the job does not run before what holds it is removed, and runs once all is


class Backlog:
    """Make jobs that are held in any number of ways at once, and remove what an explanation names."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage

    def make(self, holds: set[str]) -> str:
        stage, parents = self.stage, []
        if "parent" in holds:
            parents = [Dependency(stage.submit("do_nothing", tenant="free"))]
        delay = timedelta(hours=1) if "time" in holds else None
        job = NewJob("note_job", {"subject": "s"}, tenant="acme", depends_on=parents, delay=delay, cap_key="k")
        job_id = stage.submit(job)
        if "paused" in holds:
            stage.operate("pause", ids=[job_id], by="jo")
        if "pause" in holds:
            stage.operate("pause", kind="tenant", key="acme", by="jo")
        if "cap" in holds:
            set_cap(stage, "key", "k", max_running=0)
        if "rate" in holds:
            set_cap(stage, "type", "note_job", rate=1, per_seconds=3600)
            stage.db.execute("UPDATE signalbox.job_caps SET next_at = now() + interval '1 hour' WHERE kind = 'type'")
        stage.work(job_id)
        return job_id

    def remove(self, job_id: str, found: dict[str, Any]) -> None:
        stage = self.stage
        match found["reason"]:
            case "parent":
                stage.work(found["key"])
            case "time":
                stage.operate("retry_jobs", ids=[job_id])
            case "paused":
                stage.operate("resume", ids=[job_id])
            case "pause":
                stage.operate("resume", kind=found["kind"], key=found["key"])
            case "cap" | "rate":
                set_cap(stage, found["kind"], found["key"])
            case "dispatch":
                stage.run("dispatch_jobs", force=True, at=datetime.now(UTC))


@pytest.fixture
def backlog(stage: Stage) -> Backlog:
    return Backlog(stage)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(holds=st.sets(st.sampled_from(["parent", "time", "paused", "pause", "cap", "rate"])))
def test_job_runs_once_what_explanations_name_is_removed(backlog: Backlog, holds: set[str]) -> None:
    stage, job_id = backlog.stage, backlog.make(holds)
    named = []
    while stage.status(job_id) != "completed":
        stage.work(job_id)  # whatever messages come, it does not run while it has a reason not to
        if (found := explain(stage, job_id))["reason"] == "ended":
            break
        named.append(found["reason"])
        assert len(named) <= 3 * len(holds) + 3, named
        backlog.remove(job_id, found)
    assert holds <= set(named)
    for kind, key in (("key", "k"), ("type", "note_job")):
        set_cap(stage, kind, key)  # type: ignore[arg-type]
