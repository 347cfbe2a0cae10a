"""Caps and rates: exact, prompt, and held jobs cost nothing while they wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from signalbox.operate import caps, job_detail
from signalbox.operate.audit import Actor
from signalbox.operate.caps import Cap, CapTarget
from signalbox.packs.job_type import JobType, Lane
from signalbox.stats.statistics import count_live
from signalbox.worker.lease import LeaseClaim
from signalbox_cli.views.job_page import job_page
from tests.support.invoke_recorder import InvokeRecorder
from tests.support.jobs import TEST_JOB_TYPES
from tests.support.jobs.act import ACTS
from tests.support.lane_stand_in import LaneStandIn
from tests.support.stage import NOON, Stage
from tests.support.sweeps import Sweeps
from tests.support.workshop import Workshop

TYPES = (*TEST_JOB_TYPES, JobType("act", "waits", "tests.support.jobs.act", lanes=frozenset(Lane)))
MAIL = CapTarget("key", "mail")


@pytest.fixture
def workshop(stage: Stage, db: psycopg.Connection, lanes: LaneStandIn) -> Workshop:
    return Workshop(stage, db, TYPES)


@pytest.fixture
def sweeps(dsn: str, invokes: InvokeRecorder, lanes: LaneStandIn) -> Iterator[Sweeps]:
    with Sweeps(dsn, invokes) as sweeps:
        yield sweeps


def set_cap(workshop: Workshop, **cap: int) -> list[str]:
    """The jobs of which it sends a message."""
    sent = caps.set_cap(workshop.db, workshop.job_types, MAIL, Cap(**cap), by=Actor("jo", "tests"))
    return [notice.job_id for notice in sent]


def submit(workshop: Workshop, number: int, **fields: Any) -> list[str]:
    given = {"job_type": "act", "cap_key": "mail", "payload": {"name": "wait"}} | fields
    return [workshop.submit(**given).id for _ in range(number)]


def counts(workshop: Workshop) -> dict[str, int]:
    rows = workshop.db.execute("SELECT coalesce(held_by, status), count(*) FROM signalbox.jobs GROUP BY 1").fetchall()
    return dict(rows)


class Gauge:
    """What the act `wait` does: how many are at it, when each began, and which."""

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
def test_worker_keeps_a_cap_full_until_all_are_done(workshop: Workshop, gauge: Gauge, most: int) -> None:
    set_cap(workshop, max_running=most)
    workshop.work(*submit(workshop, 20))
    assert counts(workshop) == {"completed": 20}
    assert gauge.most == most


def test_held_jobs_begin_by_priority_and_then_by_age(workshop: Workshop, gauge: Gauge) -> None:
    set_cap(workshop, max_running=1)
    first, late, later, urgent = (submit(workshop, 1, priority=p)[0] for p in (5, 7, 7, 4))
    workshop.work(first, later, late, urgent)
    assert [id_ for _, id_ in gauge.begun] == [urgent, first, late, later]


def test_rate_gives_each_job_its_own_place_in_time(workshop: Workshop, gauge: Gauge) -> None:
    gauge.seconds = 0.0
    set_cap(workshop, rate=20, per_seconds=1)
    workshop.work(*submit(workshop, 30))
    assert counts(workshop) == {"completed": 30}
    times = [at for at, _ in gauge.begun]
    assert times[-1] - times[0] >= 29 / 20 - 0.3
    crowded = [1 for number, at in enumerate(times) if sum(at <= other < at + 0.5 for other in times[number:]) > 16]
    assert crowded == []
    assert all(later >= earlier for earlier, later in pairwise(times))


def test_job_that_a_cap_holds_has_no_message_and_no_time(workshop: Workshop, gauge: Gauge, lanes: LaneStandIn) -> None:
    set_cap(workshop, max_running=0)
    [held] = submit(workshop, 1)
    workshop.work(held)
    job = workshop.job(held)
    assert (job["status"], job["held_by"], job["send_at"], job["attempts"]) == ("pending", "key:mail", None, 0)
    assert job["held_since"] is not None
    workshop.work(held)
    assert (lanes.take(), workshop.job(held)["held_since"]) == ([], job["held_since"])


def test_raised_cap_sends_for_its_new_room_at_once(workshop: Workshop, gauge: Gauge) -> None:
    set_cap(workshop, max_running=0)
    ids = submit(workshop, 5)
    workshop.work(*ids)
    sent = set_cap(workshop, max_running=2)
    assert sent == ids[:2]
    workshop.work(*sent)
    assert (counts(workshop), gauge.most) == ({"completed": 5}, 2)


def test_lifted_cap_lets_all_go(workshop: Workshop, gauge: Gauge) -> None:
    set_cap(workshop, max_running=0)
    ids = submit(workshop, 3)
    workshop.work(*ids)
    assert sorted(set_cap(workshop)) == ids
    assert counts(workshop) == {"pending": 3}
    assert workshop.job(ids[0])["held_since"] is None


def test_cap_set_while_jobs_run_begins_no_other_until_they_end(workshop: Workshop, gauge: Gauge) -> None:
    ids = submit(workshop, 12)

    def lower(context: Any) -> None:
        if context.job.id == ids[0]:
            set_cap(workshop, max_running=1)
        gauge(context)

    ACTS["wait"] = lower
    workshop.work(*ids)
    assert counts(workshop) == {"completed": 12}
    assert gauge.now == 0


def test_job_under_two_caps_keeps_both(workshop: Workshop, gauge: Gauge) -> None:
    set_cap(workshop, max_running=3)
    acme = CapTarget("tenant", "acme")
    caps.set_cap(workshop.db, workshop.job_types, acme, Cap(max_running=2), by=Actor("jo", "tests"))
    workshop.work(*submit(workshop, 10, tenant="acme"))
    assert (counts(workshop), gauge.most) == ({"completed": 10}, 2)


def test_room_is_for_the_first_that_no_other_cap_holds(workshop: Workshop, gauge: Gauge) -> None:
    set_cap(workshop, max_running=0)
    workshop.work(*submit(workshop, 3, tenant="acme"), *submit(workshop, 1))
    acme = CapTarget("tenant", "acme")
    caps.set_cap(workshop.db, workshop.job_types, acme, Cap(max_running=0), by=Actor("jo", "tests"))
    workshop.work(*set_cap(workshop, max_running=1))
    assert counts(workshop) == {"completed": 1, "tenant:acme": 3}


def hold_in_lanes(workshop: Workshop, **lanes: int) -> dict[str, list[str]]:
    """So many jobs of each lane, which are held; a cap of one has room by now, and nobody was told."""
    set_cap(workshop, max_running=0)
    ids = {lane: submit(workshop, number, lane=lane) for lane, number in lanes.items()}
    workshop.work(*(id_ for some in ids.values() for id_ in some))
    workshop.db.execute("UPDATE signalbox.job_caps SET max_running = 1")
    return ids


def test_heavy_worker_begins_held_jobs_of_its_lane_one_by_one(workshop: Workshop, gauge: Gauge) -> None:
    ids = hold_in_lanes(workshop, normal=3, heavy=3)
    workshop.db.execute("UPDATE signalbox.job_caps SET max_running = 3")
    workshop.work(ids["heavy"][0], lane="heavy")
    assert sorted(id_ for _, id_ in gauge.begun) == ids["heavy"]
    assert gauge.most == 1


def test_heavy_worker_tells_others_of_a_held_light_job(workshop: Workshop, gauge: Gauge, lanes: LaneStandIn) -> None:
    ids = hold_in_lanes(workshop, heavy=1, normal=2)
    workshop.work(ids["heavy"][0], lane="heavy")
    assert counts(workshop) == {"completed": 1, "key:mail": 2}
    assert [notice["job_id"] for notice in lanes.take()] == ids["normal"][:1]


def test_worker_tells_of_a_held_heavy_job_while_it_works(workshop: Workshop, gauge: Gauge, lanes: LaneStandIn) -> None:
    ids = hold_in_lanes(workshop, normal=1, heavy=1)
    workshop.db.execute("UPDATE signalbox.job_caps SET max_running = 2")
    [long] = submit(workshop, 1, payload={"name": "long"})
    until = time.monotonic() + 20
    seen: list[str] = []

    def work_until_told(_: Any) -> None:
        while not seen and time.monotonic() < until:
            time.sleep(0.05)
            seen.extend(notice["job_id"] for notice in lanes.take())

    ACTS["long"] = work_until_told
    workshop.work(*ids["normal"], long, lane="normal")
    assert seen == ids["heavy"]
    assert lanes.take() == []


def test_other_tenants_do_not_wait_for_held_jobs(workshop: Workshop, gauge: Gauge) -> None:
    set_cap(workshop, max_running=0)
    held, free = submit(workshop, 40), submit(workshop, 3, cap_key=None, tenant="other")
    workshop.work(*held, *free)
    assert counts(workshop) == {"completed": 3, "key:mail": 40}


def test_sweep_begins_a_chain_that_broke(workshop: Workshop, gauge: Gauge, sweeps: Sweeps, lanes: LaneStandIn) -> None:
    """As when the worker that was to begin the next job died."""
    set_cap(workshop, max_running=0)
    ids = submit(workshop, 3)
    workshop.work(*ids)
    workshop.db.execute("UPDATE signalbox.job_caps SET max_running = 1")
    sweeps.invoke("dispatch_jobs", force=True)
    assert [notice["job_id"] for notice in lanes.take()] == ids[:1]


def test_suspect_is_not_held_but_looks_again(workshop: Workshop, gauge: Gauge) -> None:
    """It begins alone; a held job is begun beside others, but not in the place that it waits for."""
    set_cap(workshop, max_running=0)
    [suspect] = submit(workshop, 1)
    workshop.db.execute("""UPDATE signalbox.jobs SET error_details = '{"type": "WorkerLost"}'""")
    workshop.work(suspect)
    job = workshop.job(suspect)
    assert (job["status"], job["held_by"], job["attempts"]) == ("pending", None, 0)
    assert job["send_at"] == job["scheduled_for"]
    set_cap(workshop, max_running=1)
    [later] = submit(workshop, 1)
    workshop.work(later)
    assert counts(workshop) == {"pending": 1, "key:mail": 1}
    workshop.make_due(suspect)
    workshop.work(suspect)
    assert counts(workshop) == {"completed": 2}


def test_place_in_time_that_is_far_away_is_sent_for(workshop: Workshop, gauge: Gauge, lanes: LaneStandIn) -> None:
    set_cap(workshop, rate=1, per_seconds=60)
    ids = submit(workshop, 3)
    workshop.work(*ids)
    assert counts(workshop) == {"completed": 1, "key:mail": 2}
    assert [(notice["job_id"], 55 < notice["delay"] <= 60) for notice in lanes.take()] == [(ids[1], True)]


@pytest.mark.parametrize(("order", "status"), [("pause", "paused"), ("cancel_jobs", "cancelled")])
def test_held_job_can_be_ordered_about_like_any_other(
    workshop: Workshop, gauge: Gauge, order: str, status: str
) -> None:
    set_cap(workshop, max_running=0)
    [held] = submit(workshop, 1)
    workshop.work(held)
    params = {"ids": [held], "by": "jo"}
    workshop.engine.operate({"operation": order, "params": params}, Stage.invocation())
    assert (workshop.job(held)["status"], workshop.job(held)["held_by"]) == (status, None)


def test_job_says_what_holds_it_and_how_many_are_before_it(workshop: Workshop, gauge: Gauge) -> None:
    set_cap(workshop, max_running=0)
    ids = submit(workshop, 3)
    workshop.work(*ids)
    [hold] = job_detail.show_job(workshop.db, ids[2])["holds"]
    assert (hold["kind"], hold["key"], hold["max_running"], hold["running"], hold["before"]) == ("key", "mail", 0, 0, 2)
    [line] = [
        text.plain for text in job_page(job_detail.show_job(workshop.db, ids[2]), 80, NOON) if " held" in text.plain
    ]
    assert "by the cap of key 'mail' (at most 0 at once)" in line
    assert line.endswith("0 at work, 2 held before it")


def test_many_jobs_of_a_full_cap_are_held_by_few_statements(
    workshop: Workshop, gauge: Gauge, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims: list[int] = []
    begin = LeaseClaim.begin

    def count(claim: LeaseClaim, db: Any, ids: Any, **options: Any) -> Any:
        claims.append(len(ids))
        return begin(claim, db, ids, **options)

    monkeypatch.setattr(LeaseClaim, "begin", count)
    set_cap(workshop, max_running=0)
    held = submit(workshop, 300, tenant="held")
    free = submit(workshop, 5, cap_key=None)
    workshop.work(*held, *free)
    assert counts(workshop) == {"completed": 5, "key:mail": 300}
    assert len(claims) < 10


def test_held_jobs_are_counted_and_none_of_them_waits(workshop: Workshop, gauge: Gauge) -> None:
    set_cap(workshop, max_running=0)
    workshop.work(*submit(workshop, 3))
    live = [one for one in count_live(workshop.db, datetime.now(UTC)) if one.status == "pending"]
    assert [(one.number, one.waiting, one.oldest) for one in live] == [(3, 0, None)]
