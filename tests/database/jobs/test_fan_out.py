"""A task submits a job for each tenant, and a job its children: each once, however often it is tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from signalbox.batches import fan_out
from signalbox.budget import Budget
from signalbox.packs.job_type import JobType
from signalbox.packs.outcome import Completed, Transient
from signalbox.packs.task import Task
from signalbox.submit.new_job import NewJob
from signalbox.testing.rows import select
from signalbox.testing.stage import Stage
from tests.support.jobs.act import ACTS
from tests.support.tasks.greet_companies import ASKED, COMPANIES

MODULE = "tests.support.jobs.act"
TASK = Task("greet_companies", "greets", "tests.support.tasks.greet_companies", schedule="cron(0 * * * ? *)")
TYPES = (
    JobType("greet_company", "greets one", "tests.support.jobs.greet_company"),
    JobType("act", "acts", MODULE),
    JobType("act_within", "acts within a transaction", MODULE, transactional=True),
    JobType("act_async", "acts on the loop", MODULE),
)


@pytest.fixture
def stage(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Stage:
    ASKED.clear()
    # The task is no pack's, so that no list of rights has its calls.
    monkeypatch.setattr("signalbox.publish.lanes.Lanes.send", lambda _, messages: len(list(messages)))
    return stage.with_tasks(TASK).with_job_types(*TYPES)


def jobs(stage: Stage, job_type: str) -> list[dict[str, Any]]:
    return select(stage.db, "SELECT * FROM signalbox.jobs WHERE job_type = %s ORDER BY tenant, id", job_type)


# ---- of a task


def test_each_tenant_gets_one_job_for_a_slot_and_one_for_the_next(stage: Stage) -> None:
    assert stage.run("greet_companies")["items"] == 250
    found = jobs(stage, "greet_company")
    assert [job["tenant"] for job in found] == COMPANIES
    assert found[0]["payload"] == {"company": "company-000", "slot": "2026-03-10T12:00:00Z"}
    assert found[0]["idempotency_key"] == "greet_company:company-000:2026-03-10T12:00:00+00:00"
    assert found[0]["created_by"] == "greet_companies"
    assert stage.run("greet_companies", force=True)["items"] == 0, "the same slot again"
    assert stage.run("greet_companies", reference_time="2026-03-10T11:00:00Z")["items"] == 250


def test_job_knows_its_slot(stage: Stage) -> None:
    stage.run("greet_companies", reference_time="2026-03-09T07:00:00Z")
    job_id = str(jobs(stage, "greet_company")[0]["id"])
    stage.work(job_id)
    assert stage.job(job_id)["result"] == {"hour": 7}


def test_fan_out_goes_on_after_its_last_page_in_the_next_run(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as within:
        looks = iter([False])
        within.setattr(Budget, "spent", property(lambda _: next(looks, True)))
        within.setattr(fan_out, "LEAST", 100)
        first = stage.run("greet_companies")
    assert (first["items"], first["more"]) == (100, True)
    ASKED.clear()
    assert [answer["items"] for answer in stage.deliver()] == [150]
    assert (ASKED[0], len(jobs(stage, "greet_company"))) == (COMPANIES[99], 250)


# ---- of a job


def run(stage: Stage, act: Callable[[Any], Any], job_type: str = "act") -> str:
    name = f"{act.__name__}-{id(act)}"
    ACTS[name] = act
    job_id = stage.submit(job_type, payload={"name": name})
    stage.work(job_id)
    return job_id


def children(number: int) -> list[NewJob]:
    return [NewJob("do_nothing", name=str(place)) for place in range(number)]


THEN = NewJob("do_nothing", name="then")


@pytest.mark.parametrize("job_type", ["act", "act_within", "act_async"])
def test_last_job_begins_once_all_children_have_ended(stage: Stage, job_type: str) -> None:
    async def on_loop(context: Any) -> None:
        await context.fan_out(children(3), THEN)

    parent = run(
        stage, on_loop if job_type == "act_async" else lambda c: c.fan_out(children(3), THEN) and None, job_type
    )
    *made, last = sorted(jobs(stage, "do_nothing"), key=lambda job: job["job_name"])
    assert [(str(job["parent_job_id"]), job["job_group"]) for job in made] == [(parent, f"{parent}:children")] * 3
    assert (last["status"], last["unmet_dependencies"], str(last["parent_job_id"])) == ("pending", 1, parent)
    stage.work(*[str(job["id"]) for job in made])
    assert stage.status(str(last["id"])) == "pending"
    assert stage.job(str(last["id"]))["config"]["group"]["completed"] == 3
    stage.work(str(last["id"]))
    assert stage.status(str(last["id"])) == "completed"


def test_fan_out_that_is_repeated_makes_no_second_children(stage: Stage) -> None:
    def twice(context: Any) -> Completed:
        found = context.fan_out(children(3), THEN)
        if len(stage.attempts(context.job.id)) < 1:
            raise Transient("after the children")
        return Completed([one.created for one in found])

    job_id = run(stage, twice)
    stage.make_due(job_id)
    stage.work(job_id)
    assert (stage.job(job_id)["result"], len(jobs(stage, "do_nothing"))) == ([False] * 3, 4)


def test_job_has_several_fan_outs_by_name_and_one_without_children_goes_on_at_once(stage: Stage) -> None:
    def both(context: Any) -> None:
        context.fan_out(children(1), name="first")
        context.fan_out([], THEN, name="second")

    run(stage, both)
    child, last = sorted(jobs(stage, "do_nothing"), key=lambda job: job["job_name"])
    assert (child["status"], last["unmet_dependencies"]) == ("queued", 0)
