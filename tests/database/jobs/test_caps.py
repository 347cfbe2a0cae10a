"""Caps and rates are exact and prompt, and held jobs cost nothing while they wait."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

from signalbox.operate import caps, job_detail
from signalbox.operate.audit import Actor
from signalbox.operate.caps import Cap, CapTarget
from signalbox.packs.job_type import JobType, Lane
from signalbox.stats.statistics import count_live
from signalbox.submit.new_job import NewJob
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.stage import NOON, Stage
from signalbox.worker.lease import LeaseClaim
from signalbox_cli.views.job_page import job_page
from tests.support.jobs.act import ACTS

MAIL = CapTarget("key", "mail")


@pytest.fixture
def stage(stage: Stage) -> Stage:
    return stage.with_job_types(JobType("act", "waits", "tests.support.jobs.act", lanes=frozenset(Lane)))


def set_cap(stage: Stage, **cap: int) -> list[str]:
    """Set the cap, and return the jobs that it sends."""
    sent = caps.set_cap(stage.db, stage.job_types, MAIL, Cap(**cap), by=Actor("jo", "tests"))
    return [message.job_id for message in sent]


def submit(stage: Stage, number: int, **fields: Any) -> list[str]:
    given = {"job_type": "act", "cap_key": "mail", "payload": {"name": "wait"}} | fields
    return [job.id for job in stage.submit_all([NewJob(**given)] * number)]


def counts(stage: Stage) -> dict[str, int]:
    rows = stage.db.execute("SELECT coalesce(held_by, status), count(*) FROM signalbox.jobs GROUP BY 1").fetchall()
    return dict(rows)


class Gauge:
    """Count who runs the act `wait`, and note when each job began."""

    def __init__(self, seconds: float = 0.02) -> None:
        self.seconds, self.now, self.most = seconds, 0, 0
        self.begun: list[tuple[float, str]] = []
        self._lock = threading.Lock()

    def __call__(self, context: Any) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.begun.append((time.monotonic(), context.job.id))
        time.sleep(self.seconds)
        with self._lock:
            self.now -= 1


@pytest.fixture
def gauge() -> Gauge:
    gauge = ACTS["wait"] = Gauge()
    return gauge


@pytest.mark.parametrize("most", [1, 3])
def test_worker_keeps_a_cap_full_until_all_are_done(stage: Stage, gauge: Gauge, most: int) -> None:
    set_cap(stage, max_running=most)
    stage.work(*submit(stage, 20))
    assert counts(stage) == {"completed": 20}
    assert gauge.most == most


def test_held_jobs_begin_by_priority_and_then_by_age(stage: Stage, gauge: Gauge) -> None:
    set_cap(stage, max_running=1)
    first, late, later, urgent = (submit(stage, 1, priority=p)[0] for p in (5, 7, 7, 4))
    stage.work(first, later, late, urgent)
    assert [id_ for _, id_ in gauge.begun] == [urgent, first, late, later]


def test_rate_gives_each_job_its_own_place_in_time(stage: Stage, gauge: Gauge) -> None:
    gauge.seconds = 0.0
    set_cap(stage, rate=20, per_seconds=1)
    stage.work(*submit(stage, 30))
    assert counts(stage) == {"completed": 30}
    times = [at for at, _ in gauge.begun]
    assert times[-1] - times[0] >= 29 / 20 - 0.3
    crowded = [1 for number, at in enumerate(times) if sum(at <= other < at + 0.5 for other in times[number:]) > 16]
    assert crowded == []
    assert all(later >= earlier for earlier, later in pairwise(times))


def test_job_that_a_cap_holds_has_no_message_and_no_time(stage: Stage, gauge: Gauge, lanes: AwsStandIn) -> None:
    set_cap(stage, max_running=0)
    [held] = submit(stage, 1)
    stage.work(held)
    job = stage.job(held)
    assert (job["status"], job["held_by"], job["send_at"], job["attempts"]) == ("pending", "key:mail", None, 0)
    assert job["held_since"] is not None
    stage.work(held)
    assert (lanes.take(), stage.job(held)["held_since"]) == ([], job["held_since"])


def test_raised_cap_sends_for_its_new_room_at_once(stage: Stage, gauge: Gauge) -> None:
    set_cap(stage, max_running=0)
    ids = submit(stage, 5)
    stage.work(*ids)
    sent = set_cap(stage, max_running=2)
    assert sent == ids[:2]
    stage.work(*sent)
    assert (counts(stage), gauge.most) == ({"completed": 5}, 2)


def test_lifted_cap_lets_all_go(stage: Stage, gauge: Gauge) -> None:
    set_cap(stage, max_running=0)
    ids = submit(stage, 3)
    stage.work(*ids)
    assert sorted(set_cap(stage)) == ids
    assert counts(stage) == {"pending": 3}
    assert stage.job(ids[0])["held_since"] is None


def test_cap_set_while_jobs_run_begins_no_other_until_they_end(stage: Stage, gauge: Gauge) -> None:
    ids = submit(stage, 12)

    def lower(context: Any) -> None:
        if context.job.id == ids[0]:
            set_cap(stage, max_running=1)
        gauge(context)

    ACTS["wait"] = lower
    stage.work(*ids)
    assert counts(stage) == {"completed": 12}
    assert gauge.now == 0


def test_job_under_two_caps_keeps_both(stage: Stage, gauge: Gauge) -> None:
    set_cap(stage, max_running=3)
    acme = CapTarget("tenant", "acme")
    caps.set_cap(stage.db, stage.job_types, acme, Cap(max_running=2), by=Actor("jo", "tests"))
    stage.work(*submit(stage, 10, tenant="acme"))
    assert (counts(stage), gauge.most) == ({"completed": 10}, 2)


def test_room_is_for_the_first_that_no_other_cap_holds(stage: Stage, gauge: Gauge) -> None:
    set_cap(stage, max_running=0)
    stage.work(*submit(stage, 3, tenant="acme"), *submit(stage, 1))
    acme = CapTarget("tenant", "acme")
    caps.set_cap(stage.db, stage.job_types, acme, Cap(max_running=0), by=Actor("jo", "tests"))
    stage.work(*set_cap(stage, max_running=1))
    assert counts(stage) == {"completed": 1, "tenant:acme": 3}


def hold_in_lanes(stage: Stage, **lanes: int) -> dict[str, list[str]]:
    """Hold that many jobs of each lane, then raise the cap to one without a message."""
    set_cap(stage, max_running=0)
    ids = {lane: submit(stage, number, lane=lane) for lane, number in lanes.items()}
    stage.work(*(id_ for some in ids.values() for id_ in some))
    stage.db.execute("UPDATE signalbox.job_caps SET max_running = 1")
    return ids


def test_heavy_worker_begins_held_jobs_of_its_lane_one_by_one(stage: Stage, gauge: Gauge) -> None:
    ids = hold_in_lanes(stage, normal=3, heavy=3)
    stage.db.execute("UPDATE signalbox.job_caps SET max_running = 3")
    stage.work(ids["heavy"][0], lane="heavy")
    assert sorted(id_ for _, id_ in gauge.begun) == ids["heavy"]
    assert gauge.most == 1


def test_heavy_worker_sends_a_held_light_job(stage: Stage, gauge: Gauge, lanes: AwsStandIn) -> None:
    ids = hold_in_lanes(stage, heavy=1, normal=2)
    stage.work(ids["heavy"][0], lane="heavy")
    assert counts(stage) == {"completed": 1, "key:mail": 2}
    assert [message["job_id"] for message in lanes.take()] == ids["normal"][:1]


def test_worker_sends_a_held_heavy_job_while_it_works(stage: Stage, gauge: Gauge, lanes: AwsStandIn) -> None:
    ids = hold_in_lanes(stage, normal=1, heavy=1)
    stage.db.execute("UPDATE signalbox.job_caps SET max_running = 2")
    [long] = submit(stage, 1, payload={"name": "long"})
    until = time.monotonic() + 20
    seen: list[str] = []

    def work_until_released(_: Any) -> None:
        while not seen and time.monotonic() < until:
            time.sleep(0.05)
            seen.extend(message["job_id"] for message in lanes.take())

    ACTS["long"] = work_until_released
    stage.work(*ids["normal"], long, lane="normal")
    assert seen == ids["heavy"]
    assert lanes.take() == []


def test_other_tenants_do_not_wait_for_held_jobs(stage: Stage, gauge: Gauge) -> None:
    set_cap(stage, max_running=0)
    held, free = submit(stage, 40), submit(stage, 3, cap_key=None, tenant="other")
    stage.work(*held, *free)
    assert counts(stage) == {"completed": 3, "key:mail": 40}


def test_sweep_begins_a_chain_that_broke(stage: Stage, gauge: Gauge, lanes: AwsStandIn) -> None:
    """A chain breaks when the worker that should begin the next job dies."""
    set_cap(stage, max_running=0)
    ids = submit(stage, 3)
    stage.work(*ids)
    stage.db.execute("UPDATE signalbox.job_caps SET max_running = 1")
    stage.run("dispatch_jobs", force=True)
    assert [message["job_id"] for message in lanes.take()] == ids[:1]


def test_suspect_is_not_held_but_looks_again(stage: Stage, gauge: Gauge) -> None:
    """A suspect begins alone, but held jobs begin beside others."""
    set_cap(stage, max_running=0)
    [suspect] = submit(stage, 1)
    stage.db.execute("""UPDATE signalbox.jobs SET error_details = '{"type": "WorkerLost"}'""")
    stage.work(suspect)
    job = stage.job(suspect)
    assert (job["status"], job["held_by"], job["attempts"]) == ("pending", None, 0)
    assert job["send_at"] == job["scheduled_for"]
    set_cap(stage, max_running=1)
    [later] = submit(stage, 1)
    stage.work(later)
    assert counts(stage) == {"pending": 1, "key:mail": 1}
    stage.make_due(suspect)
    stage.work(suspect)
    assert counts(stage) == {"completed": 2}


def test_place_in_time_that_is_far_away_is_sent_for(stage: Stage, gauge: Gauge, lanes: AwsStandIn) -> None:
    set_cap(stage, rate=1, per_seconds=60)
    ids = submit(stage, 3)
    stage.work(*ids)
    assert counts(stage) == {"completed": 1, "key:mail": 2}
    assert [(message["job_id"], 55 < message["delay"] <= 60) for message in lanes.take()] == [(ids[1], True)]


@pytest.mark.parametrize(("order", "status"), [("pause", "paused"), ("cancel_jobs", "cancelled")])
def test_held_job_can_be_ordered_about_like_any_other(stage: Stage, gauge: Gauge, order: str, status: str) -> None:
    set_cap(stage, max_running=0)
    [held] = submit(stage, 1)
    stage.work(held)
    stage.operate(order, ids=[held], by="jo")
    assert (stage.job(held)["status"], stage.job(held)["held_by"]) == (status, None)


def test_job_says_what_holds_it_and_how_many_are_before_it(stage: Stage, gauge: Gauge) -> None:
    set_cap(stage, max_running=0)
    ids = submit(stage, 3)
    stage.work(*ids)
    [hold] = job_detail.show_job(stage.db, ids[2])["holds"]
    assert (hold["kind"], hold["key"], hold["max_running"], hold["running"], hold["before"]) == ("key", "mail", 0, 0, 2)
    [line] = [
        text.plain for text in job_page(job_detail.show_job(stage.db, ids[2]), 80, NOON) if " waits" in text.plain
    ]
    assert "held by the cap of key 'mail': 0 of 0 at work, 2 held before it, since " in line


def test_many_jobs_of_a_full_cap_are_held_by_few_statements(
    stage: Stage, gauge: Gauge, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims: list[int] = []
    begin = LeaseClaim.begin

    def count(claim: LeaseClaim, db: Any, ids: Any, **options: Any) -> Any:
        claims.append(len(ids))
        return begin(claim, db, ids, **options)

    monkeypatch.setattr(LeaseClaim, "begin", count)
    set_cap(stage, max_running=0)
    held = submit(stage, 300, tenant="held")
    free = submit(stage, 5, cap_key=None)
    stage.work(*held, *free)
    assert counts(stage) == {"completed": 5, "key:mail": 300}
    assert len(claims) < 10


def test_held_jobs_are_counted_and_none_of_them_waits(stage: Stage, gauge: Gauge) -> None:
    set_cap(stage, max_running=0)
    stage.work(*submit(stage, 3))
    live = [one for one in count_live(stage.db, datetime.now(UTC)) if one.status == "pending"]
    assert [(one.number, one.waiting, one.oldest) for one in live] == [(3, 0, None)]
