"""The poller makes runs of what upstream has, each triggered once, whatever goes wrong in between."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from forecasts.errors import MirrorsFailed, PollFailed, RunPodDenied, RunPodUnavailable, TriggerUnconfirmed
from forecasts.runs import store
from forecasts.runs.inference_payload import InferencePayload
from forecasts.settings import ForecastSettings
from forecasts.sources.gfs import MOST_LISTED
from forecasts.tasks.poll_data import LONGEST, Params, poll_data, since_of
from signalbox.errors import ParamsRefused, SettingsRefused
from signalbox.testing.rows import abandoned_run
from signalbox.testing.stage import NOON, Stage
from signalbox_laptop.stand_ins.faults import Fault
from stand_ins.runpod import RunPodStandIn
from tests.support.at_once import at_once
from tests.support.aws import Aws
from tests.support.contexts import context_of
from tests.support.forecast_rows import forecast_run
from tests.support.upstream import CHANNELS, BucketListing, Files, IndexPages

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
SIX = NOON - 6 * HOUR


class Crash(BaseException):
    """The process is gone: none of our code runs after it."""


@dataclass(frozen=True, slots=True)
class World:
    """Run a poller among its surroundings."""

    stage: Stage
    db: psycopg.Connection
    runpod: RunPodStandIn
    bucket: BucketListing
    monkeypatch: pytest.MonkeyPatch

    @property
    def files(self) -> Files:
        return self.bucket.files

    def poll(self, at: datetime = NOON, *, seconds: float = 60, **event: Any) -> dict[str, Any]:
        """Poll once by hand."""
        answer = self.stage.app.poll(event, Stage.invocation(at, seconds))
        assert answer["status"] == "succeeded"
        return answer

    def crash_at(self, name: str) -> None:
        """Poll in a process that dies where that is called; its lease has expired."""
        with self.monkeypatch.context() as broken:
            broken.setattr(name, crash)
            with pytest.raises(Crash):
                self.poll()
        self.db.execute("DELETE FROM signalbox.job_locks")

    def counts(self, model: str, at: datetime = NOON, **event: Any) -> dict[str, int]:
        counts: dict[str, int] = self.poll(at, **event)["detail"][model]
        return counts

    def rows(self, columns: str = "run_timestamp, status") -> list[Any]:
        rows = self.db.execute(f"SELECT {columns} FROM forecasts.forecast_runs ORDER BY model, run_timestamp")
        return [row[0] if len(row) == 1 else row for row in rows.fetchall()]

    def set(self, **values: Any) -> None:
        for name, value in values.items():
            text = value if isinstance(value, str) else json.dumps(value)
            self.monkeypatch.setenv(f"FORECASTS_{name.upper()}", text)

    @property
    def asked(self) -> list[InferencePayload]:
        return [InferencePayload.model_validate_json(json.dumps(given)) for given in self.runpod.inputs]


@pytest.fixture
def world(
    stage: Stage, db: psycopg.Connection, runpod: RunPodStandIn, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    monkeypatch.setattr("forecasts.runs.runpod.FIRST_BACKOFF", 0.01)
    with BucketListing(Files()) as bucket:
        world = World(stage, db, runpod, bucket, monkeypatch)
        world.set(**{f"{source}_mirrors": [bucket.mirror()] for source in ("gfs", "goes", "mrms")})
        yield world


# ---- What is found and triggered.


def test_a_whole_cycle_is_inserted_triggered_and_its_id_stored(world: World) -> None:
    world.files.add_cycle(SIX)
    answer = world.poll()

    assert (answer["status"], answer["items"]) == ("succeeded", 1)
    none = {"found": 0, "triggered": 0, "skipped": 0, "failed": 0, "left_over": 0}
    assert answer["detail"] == {"medium_range": none | {"found": 1, "triggered": 1}, "nowcast": none}
    [external_id] = world.runpod.jobs
    columns = "id::text, model, run_timestamp, status, external_id, retry_count, started_at, storage_prefix"
    [row] = world.rows(columns)
    assert row[1:] == ("medium_range", SIX, "running", external_id, 0, NOON, "medium_range/20260310T060000Z/")
    [payload] = world.asked
    assert (payload.task_type, payload.model, payload.run_timestamp) == ("forecast", "medium_range", SIX)
    assert (payload.forecast_run_id, payload.storage_prefix) == (row[0], row[7])
    reference = f"{world.bucket.url}/noaa/gfs.20260310/06/atmos/gfs.t06z.pgrb2.0p25.f"
    assert payload.input_config.references == (reference,)
    assert payload.input_config.calibration == {}


def test_nothing_upstream_is_nothing_to_do(world: World) -> None:
    answer = world.poll()
    assert (answer["status"], answer["items"], world.rows()) == ("succeeded", 0, [])
    assert not world.runpod.calls


def test_a_second_poll_triggers_nothing_twice(world: World) -> None:
    world.files.add_cycle(SIX)
    world.files.add_goes(NOON - 9 * MINUTE)
    world.files.add_mrms(NOON - 8 * MINUTE)
    assert [world.poll()["items"] for _ in range(3)] == [2, 0, 0]
    assert len(world.runpod.jobs) == 2


def test_a_cycle_that_is_not_complete_waits_for_a_later_poll(world: World) -> None:
    world.files.add_cycle(SIX, without=["f384.idx"])
    assert world.counts("medium_range") == {"found": 1, "triggered": 0, "skipped": 1, "failed": 0, "left_over": 0}
    world.files.add_cycle(SIX, empty=["f120"])
    assert world.counts("medium_range")["skipped"] == 1
    world.files.add_cycle(SIX)
    assert world.counts("medium_range")["triggered"] == 1


def test_late_older_cycle_is_not_hidden_by_a_newer_run(world: World) -> None:
    forecast_run(world.db, SIX, status="complete", external_id="x")
    world.files.add_cycle(SIX)
    world.files.add_cycle(SIX - 6 * HOUR)
    world.poll(at=NOON)
    assert [payload.run_timestamp for payload in world.asked] == [SIX - 6 * HOUR]


def test_gfs_next_version_is_a_setting(world: World) -> None:
    template = "gfs.{date}/{cycle}/products/atmos/grib2/0p25/gfs.t{cycle}z.pres_a.0p25.f{hour:03}.grib2"
    world.set(gfs_key_template=template)
    world.files.add_cycle(SIX)
    for key, size in list(world.files.sizes.items()):
        hour = key.removesuffix(".idx")[-3:]
        new = template.format(date="20260310", cycle="06", hour=int(hour)) + (".idx" if key.endswith(".idx") else "")
        world.files.sizes[new] = size
    world.poll()
    assert world.asked[0].input_config.references[0].endswith("/gfs.t06z.pres_a.0p25.f")


def test_a_nowcast_needs_both_sources_and_takes_all_tiles_calibration(world: World) -> None:
    for tile in ("a", "b"):
        row = (tile, Jsonb({"slope": 1.5, "tile": tile}))
        world.db.execute("INSERT INTO forecasts.calibration_coefficients (tile_id, coefficients) VALUES (%s, %s)", row)
    at = NOON - 20 * MINUTE + timedelta(milliseconds=300)
    world.files.add_goes(at, NOON - 10 * MINUTE)
    world.files.add_mrms(at.replace(microsecond=0) + 39 * SECOND, at.replace(microsecond=0) - 2 * MINUTE)
    assert world.counts("nowcast") == {"found": 2, "triggered": 1, "skipped": 1, "failed": 0, "left_over": 0}

    [payload] = world.asked
    assert payload.run_timestamp == at
    assert payload.input_config.calibration == {
        "a": {"slope": 1.5, "tile": "a"},
        "b": {"slope": 1.5, "tile": "b"},
    }
    assert [reference.rpartition("/")[2][:24] for reference in payload.input_config.references] == [
        *(f"OR_ABI-L2-CMIPF-M6C{channel:02}_G1" for channel in CHANNELS),
        "MRMS_PrecipRate_00.00_20",
    ]
    assert world.rows("radar_timestamp, storage_prefix") == [
        (NOON - 20 * MINUTE + 39 * SECOND, "nowcast/20260310T114000.3Z/")
    ]


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize(("apart", "triggered"), [(299, 1), (300, 1), (301, 0)])
def test_sources_five_minutes_apart_match_and_a_second_more_does_not(
    world: World, apart: int, triggered: int, side: int
) -> None:
    at = NOON - 30 * MINUTE
    world.files.add_goes(at)
    world.files.add_mrms(at + side * apart * SECOND)
    assert world.counts("nowcast")["triggered"] == triggered


def test_radar_instant_serves_one_run_even_if_a_nearer_comes_late(world: World) -> None:
    first, second = NOON - 20 * MINUTE, NOON - 13 * MINUTE
    world.files.add_goes(first)
    world.files.add_mrms(first + 3 * MINUTE)
    world.poll()
    world.files.add_goes(second)
    world.files.add_mrms(first + MINUTE)
    world.poll()
    assert world.rows("run_timestamp, radar_timestamp") == [(first, first + 3 * MINUTE)]
    world.files.add_mrms(second + MINUTE)
    world.poll()
    assert world.rows("run_timestamp, radar_timestamp")[1] == (second, second + MINUTE)


def test_an_instant_whose_nearest_radar_is_used_takes_the_next_one(world: World) -> None:
    first, second = NOON - 20 * MINUTE, NOON - 15 * MINUTE
    world.files.add_goes(first)
    world.files.add_mrms(first + 3 * MINUTE)
    world.poll()
    world.files.add_goes(second)
    world.files.add_mrms(first, second + 3 * MINUTE)
    world.poll()
    assert world.rows("run_timestamp, radar_timestamp")[1] == (second, second + 3 * MINUTE)


def test_run_without_radar_instant_keeps_its_nearest_from_others(world: World) -> None:
    first, second = NOON - 20 * MINUTE, NOON - 16 * MINUTE
    forecast_run(world.db, first, model="nowcast", external_id="x")
    world.files.add_goes(first, second)
    world.files.add_mrms(first + MINUTE)
    assert world.counts("nowcast") == {"found": 1, "triggered": 0, "skipped": 1, "failed": 0, "left_over": 0}


def test_empty_files_and_incomplete_instants_are_not_there_yet(world: World) -> None:
    world.set(goes_files_per_instant="2")
    at = NOON - 20 * MINUTE
    world.files.add_goes(at, channels=[13])
    world.files.add_mrms(at)
    world.files.add_goes(at, channels=[2], size=0)
    assert world.counts("nowcast")["triggered"] == 0
    world.files.add_goes(at, channels=[2])
    assert world.counts("nowcast")["triggered"] == 1


def test_a_nowcast_waits_for_the_files_of_all_channels(world: World) -> None:
    at = NOON - 20 * MINUTE
    world.files.add_goes(at, channels=CHANNELS[:3])
    world.files.add_mrms(at)
    assert world.counts("nowcast") == {"found": 0, "triggered": 0, "skipped": 0, "failed": 0, "left_over": 0}
    world.files.add_goes(at)
    assert world.counts("nowcast")["triggered"] == 1
    assert len(world.asked[0].input_config.references) == len(CHANNELS) + 1


# ---- The window.


def test_poll_begins_behind_newest_run_or_earlier_if_asked_or_owing() -> None:
    look, day, none = 2 * HOUR, 24 * HOUR, timedelta(0)
    assert since_of(NOON, None, None, look, none) == NOON - look
    assert since_of(NOON, NOON - HOUR, None, look, none) == NOON - 3 * HOUR
    assert since_of(NOON, NOON - HOUR, None, look, day) == NOON - day
    assert since_of(NOON, NOON - 3 * day, None, look, day) == NOON - 3 * day - look
    assert since_of(NOON, NOON, NOON - 5 * HOUR, look, none) < NOON - 5 * HOUR
    assert since_of(NOON, NOON - 100 * day, None, look, none) == NOON - LONGEST


@pytest.mark.parametrize(("seconds", "found"), [(-1, 1), (0, 0), (1, 0)])
def test_a_backfill_takes_what_is_newer_than_its_hours(world: World, seconds: int, found: int) -> None:
    world.files.add_cycle(NOON - 24 * HOUR)
    assert world.counts("medium_range", NOON + seconds * SECOND, backfill_hours=24)["triggered"] == found


def test_a_past_reference_time_takes_what_that_moment_would_have_seen(world: World) -> None:
    for hours in (0, 6, 12):
        world.files.add_cycle(SIX - hours * HOUR)
    world.files.add_goes(*(NOON - n * 10 * MINUTE for n in range(-5, 5)))
    world.files.add_mrms(*(NOON - n * 10 * MINUTE for n in range(-5, 5)))
    forecast_run(world.db, NOON + 24 * HOUR, status="complete")
    world.poll(at=NOON + 48 * HOUR, reference_time=(NOON - 5 * HOUR).isoformat())
    assert [payload.run_timestamp for payload in world.asked] == [SIX - 6 * HOUR, SIX]
    world.poll(at=NOON + 48 * HOUR, reference_time=(NOON + MINUTE).isoformat())
    assert max(payload.run_timestamp for payload in world.asked) == NOON
    live = world.db.execute("SELECT bool_and(triggered_at > now() - interval '1 minute') FROM forecasts.forecast_runs")
    assert live.fetchone() == (True,), "a job's real age is by the clock"


def test_the_limit_holds_over_both_models_oldest_first(world: World) -> None:
    world.files.add_cycle(SIX)
    world.files.add_cycle(SIX - 6 * HOUR)
    world.files.add_goes(*(NOON - n * 10 * MINUTE for n in range(1, 4)))
    world.files.add_mrms(*(NOON - n * 10 * MINUTE for n in range(1, 4)))
    answer = world.poll(limit=3, backfill_hours=24)
    assert (answer["items"], "more" in answer) == (3, False)
    assert answer["detail"]["medium_range"]["triggered"] == 2
    assert {name: answer["detail"]["nowcast"][name] for name in ("found", "triggered", "left_over")} == {
        "found": 3, "triggered": 1, "left_over": 2,
    }  # fmt: skip
    assert world.asked[-1].run_timestamp == NOON - 30 * MINUTE
    assert world.poll()["items"] == 2


def test_poll_stops_before_its_time_is_over_and_the_next_continues(world: World) -> None:
    world.files.add_cycle(SIX)
    answer = world.poll(seconds=10 + 12)
    assert (answer["items"], answer["detail"]["medium_range"]["left_over"], world.rows()) == (0, 1, [])
    assert world.poll()["items"] == 1


def test_a_months_backfill_lists_no_more_than_its_bound(world: World) -> None:
    world.files.add_cycle(NOON - 30 * 24 * HOUR)
    for days in range(20):
        world.files.sizes[f"gfs.{NOON - days * 24 * HOUR:%Y%m%d}/00/other"] = 1
    world.set(goes_mirrors=[], mrms_mirrors=[])
    with pytest.raises(SettingsRefused, match="FORECASTS_GOES_MIRRORS"):
        world.poll(backfill_hours=744)
    assert len(world.bucket.calls) <= 1 + MOST_LISTED
    assert len(world.runpod.jobs) == 1


@pytest.mark.parametrize("event", [{}, {"limit": 0}])
def test_cycles_beyond_the_bound_are_found_by_the_next_poll(world: World, event: dict[str, Any]) -> None:
    at = NOON.replace(hour=0)
    cycles = [at - n * 6 * HOUR for n in range(MOST_LISTED + 2)][::-1]
    for cycle in cycles:
        world.files.add_cycle(cycle)
    answer = world.poll(at, backfill_hours=(MOST_LISTED + 2) * 6, **event)
    assert (answer["items"], answer["detail"]["medium_range"]["left_over"], answer["more"]) == (MOST_LISTED, 2, True)
    assert [payload.run_timestamp for payload in world.asked] == cycles[:MOST_LISTED]
    [(function, payload)] = world.stage.aws.invoked
    assert function == "signalbox-poller"
    world.stage.app.poll(payload, Stage.invocation(at))
    assert [payload.run_timestamp for payload in world.asked] == cycles


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"force_retry": 1}, "'force_retry'"),
        ({"backfill_hours": -1}, "'backfill_hours'"),
        ({"backfill_hours": 745}, "'backfill_hours'"),
        ({"backfill_hours": "6"}, "'backfill_hours'"),
        ({"limit": -1}, "'limit'"),
        ({"limit": 1001}, "'limit'"),
        ({"limit": True}, "'limit'"),
        ({"params": {"limits": 1}}, "did you mean 'limit'"),
    ],
)
def test_bad_values_are_refused_by_name(world: World, event: dict[str, Any], words: str) -> None:
    with pytest.raises(ParamsRefused, match=words):
        world.poll(**event)


@pytest.mark.parametrize("limit", [None, 0])
def test_no_limit_may_be_said_as_null_or_zero(world: World, limit: int | None) -> None:
    world.files.add_cycle(SIX)
    assert world.poll(force_retry=False, backfill_hours=0, limit=limit)["items"] == 1


# ---- Mirrors.


def test_a_mirror_that_fails_is_logged_and_the_next_one_serves(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.files.add_cycle(SIX)
    with BucketListing(Files()) as refusing, IndexPages(Files()) as garbled, IndexPages(world.files) as pages:
        refusing.failing, garbled.garbled = 403, True
        nobody = {"kind": "https", "url": "http://127.0.0.1:9"}
        world.set(gfs_mirrors=[refusing.mirror(), nobody, garbled.mirror(), pages.mirror()])
        assert world.poll()["items"] == 1
        logged = [vars(record) for record in caplog.records if record.message == "mirror.failed"]
        assert [(line["source"], line["mirror"], line["why"]) for line in logged] == [
            ("gfs", f"{refusing.url}/noaa", "AccessDenied"),
            ("gfs", nobody["url"], "can't connect for /"),
            ("gfs", garbled.url, "what it shows for / is no index page"),
        ]
        assert world.asked[0].input_config.references[0].startswith(pages.url)


def test_all_failed_mirrors_are_named_and_other_model_has_its_runs(world: World) -> None:
    world.files.add_goes(NOON - 20 * MINUTE)
    world.files.add_mrms(NOON - 20 * MINUTE)
    with BucketListing(Files()) as refusing, IndexPages(Files()) as away:
        refusing.failing, away.failing = 403, 503
        world.set(gfs_mirrors=[refusing.mirror(), away.mirror()])
        with pytest.raises(MirrorsFailed) as caught:
            world.poll()
        assert str(caught.value) == (
            f"no mirror of gfs answers: {refusing.url}/noaa: AccessDenied; {away.url}: status 503 for /"
        )
    assert [payload.model for payload in world.asked] == ["nowcast"]


def test_when_both_models_fail_both_are_named(world: World) -> None:
    world.bucket.failing = 403
    with pytest.raises(PollFailed, match=r"medium_range: no mirror of gfs .*; nowcast: no mirror of goes"):
        world.poll()


def test_noaas_buckets_are_read_unsigned(world: World, aws: Aws) -> None:
    bucket = f"noaa-{id(world)}"
    aws.s3.create_bucket(Bucket=bucket)
    world.files.add_goes(NOON - 20 * MINUTE)
    world.files.add_mrms(NOON - 20 * MINUTE)
    for key in world.files.sizes:
        aws.s3.put_object(Bucket=bucket, Key=key, Body=b"data")
    mirror = [{"kind": "s3", "bucket": bucket}]
    world.set(goes_mirrors=mirror, mrms_mirrors=mirror, s3_endpoint_url=aws.endpoint)
    assert world.poll()["items"] == 1
    assert world.asked[0].input_config.references[-1].startswith(f"s3://{bucket}/CONUS/")
    assert not world.bucket.signed


@pytest.mark.parametrize("mirror", [{"kind": "ftp", "url": "x"}, {"kind": "s3"}, {"kind": "https", "bucket": "x"}, {}])
def test_a_mirror_of_an_unknown_kind_is_named_by_its_setting(world: World, mirror: dict[str, str]) -> None:
    world.set(gfs_mirrors=[mirror])
    with pytest.raises(SettingsRefused, match="FORECASTS_GFS_MIRRORS holds an unknown kind of mirror"):
        world.poll()


def test_a_months_nowcasts_cost_less_than_a_call_an_hour_and_source(world: World) -> None:
    instants = [NOON - n * 10 * MINUTE for n in range(1, 48 * 6)]
    world.files.add_goes(*instants)
    world.poll(limit=1, backfill_hours=48)
    listings = [call for call in world.bucket.calls if "CMIPF" in call or "PrecipRate" in call]
    assert len(listings) <= 2 * 48


# ---- RunPod.


def test_passing_trouble_is_waited_out(world: World) -> None:
    world.files.add_cycle(SIX)
    world.runpod.faults.add(Fault(matching="/run", times=1, status=429, retry_after="0"))
    world.runpod.faults.add(Fault(matching="/run", times=1, status=500))
    assert world.poll()["items"] == 1
    assert world.rows("status, external_id IS NULL") == [("running", False)]


def test_run_refused_by_runpod_is_triggered_by_the_next_poll(world: World) -> None:
    world.files.add_cycle(SIX)
    world.files.add_cycle(SIX - 6 * HOUR)
    world.runpod.faults.add(Fault(matching="/run", status=429, retry_after="600"))
    with pytest.raises(RunPodUnavailable):
        world.poll(backfill_hours=24)
    assert world.rows("status, failure_reason, external_id, retry_count") == [("failed", "TriggerRefused", None, 0)]
    assert len(world.runpod.calls) == 1, "where RunPod is away, one run asks for all"

    world.runpod.faults.replace([])
    assert world.poll()["items"] == 2
    assert world.rows("status, failure_reason") == [("running", None)] * 2
    assert len(world.runpod.jobs) == 2


def test_a_refused_run_is_taken_again_though_newer_runs_have_come(world: World) -> None:
    old = forecast_run(
        world.db, NOON - 20 * HOUR, model="nowcast", status="failed", failure_reason="TriggerRefused", retry_count=2
    )
    forecast_run(world.db, NOON - 25 * HOUR, model="nowcast", status="failed", failure_reason="TriggerRefused")
    forecast_run(world.db, NOON, model="nowcast", status="complete")
    for hours in (20, 25):
        world.files.add_goes(NOON - hours * HOUR)
        world.files.add_mrms(NOON - hours * HOUR)
    world.poll()
    assert [payload.forecast_run_id for payload in world.asked] == [str(old)]
    assert world.rows("retry_count")[1] == 2, "RunPod never had this attempt: it is no retry"


def test_one_run_that_runpod_refuses_stops_no_other(world: World) -> None:
    for hours in (0, 6, 12):
        world.files.add_cycle(SIX - hours * HOUR)
    world.runpod.faults.add(Fault(matching="medium_range/20260310T000000Z", status=400))
    with pytest.raises(Exception, match="RunPod refuses forecast of medium_range 2026-03-10T00:00:00Z: status 400"):
        world.poll(backfill_hours=24)
    assert world.rows("status") == ["running", "failed", "running"]


def test_run_that_runpod_may_have_taken_is_left_alone_risking_no_other(world: World) -> None:
    world.files.add_cycle(SIX)
    world.files.add_cycle(SIX - 6 * HOUR)
    world.runpod.faults.add(Fault(matching="/run", times=1, lost=True))
    with pytest.raises(TriggerUnconfirmed):
        world.poll(backfill_hours=24)
    assert world.rows("run_timestamp, status, external_id") == [(SIX - 6 * HOUR, "running", None)]
    world.poll()
    world.poll(force_retry=True)
    assert sorted(payload.run_timestamp for payload in world.asked) == [SIX - 6 * HOUR, SIX]


def test_a_wrong_key_leaves_the_runs_to_a_later_poll(world: World, aws: Aws) -> None:
    world.files.add_cycle(SIX)
    secrets = world.stage.app.resources.clients.secretsmanager
    arn = secrets.create_secret(Name=f"wrong-{id(world)}", SecretString="rpa_wrong")["ARN"]
    right = world.stage.app.resources.settings_of(ForecastSettings).runpod_secret
    world.set(runpod_secret=arn)
    with pytest.raises(RunPodDenied):
        world.poll()
    world.set(runpod_secret=right)
    assert world.poll()["items"] == 1


def test_without_an_endpoint_nothing_is_written_and_the_settings_are_named(world: World) -> None:
    world.files.add_cycle(SIX)
    world.monkeypatch.delenv("FORECASTS_RUNPOD_ENDPOINT_ID")
    with pytest.raises(SettingsRefused, match="set FORECASTS_RUNPOD_ENDPOINT_ID"):
        world.poll()
    assert world.rows() == []


# ---- Crashes and doubles.


def test_a_crash_before_the_call_leaves_a_row_that_reconciling_ends(world: World) -> None:
    world.files.add_cycle(SIX)
    world.crash_at("forecasts.runs.runpod.RunPod.trigger")
    assert world.rows("status, external_id") == [("running", None)]
    assert world.poll()["items"] == 0
    age(world.db, 4 * HOUR)
    world.stage.run("reconcile_forecasts", datetime.now(UTC))
    assert world.rows("status, failure_reason") == [("failed", "Unconfirmed")]
    assert world.poll()["items"] == 0, "RunPod may have had it: only a person may say that it is to run again"
    assert world.poll(force_retry=True)["items"] == 1


def test_a_crash_between_call_and_row_never_triggers_a_second_job(world: World) -> None:
    world.files.add_cycle(SIX)
    world.crash_at("forecasts.runs.store.confirm")
    for _ in range(3):
        world.poll()
    age(world.db, 4 * HOUR)
    world.stage.run("reconcile_forecasts", datetime.now(UTC))
    world.poll()
    assert len(world.runpod.jobs) == 1
    assert world.rows("status, failure_reason") == [("failed", "Unconfirmed")]


def test_an_id_is_stored_though_the_runs_connection_breaks(world: World) -> None:
    world.files.add_cycle(SIX)
    hang_up = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND datname = current_database()"
    )
    world.runpod.during = lambda: world.db.execute(hang_up)
    with pytest.raises(Exception, match="connection is closed"):
        world.poll()
    assert world.rows("status, external_id") == [("running", next(iter(world.runpod.jobs)))]


def test_an_id_may_be_stored_again_and_no_other_takes_its_place(world: World) -> None:
    attempt = store.open_run(world.db, store.RunCandidate("medium_range", SIX, ()), NOON)
    assert attempt is not None
    stored = [store.confirm(world.db, attempt, external_id) for external_id in ("one", "one", "other")]
    assert (stored, world.rows("external_id")) == ([True, True, False], ["one"])


def test_a_worker_that_completes_the_run_at_once_loses_no_id(world: World) -> None:
    world.files.add_cycle(SIX)
    done = "UPDATE forecasts.forecast_runs SET status = 'complete', completed_at = now()"
    world.runpod.during = lambda: world.db.execute(done)
    world.poll()
    assert world.rows("status, external_id") == [("complete", next(iter(world.runpod.jobs)))]


def test_a_job_whose_run_was_given_up_meanwhile_is_cancelled(world: World) -> None:
    world.files.add_cycle(SIX)
    given_up = "UPDATE forecasts.forecast_runs SET status = 'failed', failure_reason = 'Unconfirmed'"
    world.runpod.during = lambda: world.db.execute(given_up)
    world.poll()
    assert [job["status"] for job in world.runpod.jobs.values()] == ["CANCELLED"]


def test_pollers_at_once_trigger_each_run_once(world: World) -> None:
    world.files.add_cycle(SIX)
    world.files.add_goes(*(NOON - n * 10 * MINUTE for n in range(1, 11)))
    world.files.add_mrms(*(NOON - n * 10 * MINUTE + MINUTE for n in range(1, 11)))
    failed = forecast_run(world.db, SIX - 6 * HOUR, status="failed", failure_reason="FAILED", retry_count=3)
    world.files.add_cycle(SIX - 6 * HOUR)

    together(world, [{"force_retry": True, "backfill_hours": 24}] * 4)

    stamps = [(payload.model, payload.run_timestamp) for payload in world.asked]
    assert (len(stamps), len(set(stamps))) == (12, 12)
    assert world.rows("status") == ["running"] * 12
    assert len(set(world.rows("external_id"))) == 12
    retried = world.db.execute("SELECT retry_count FROM forecasts.forecast_runs WHERE id = %s", (failed,)).fetchone()
    assert retried == (0,)


def test_poller_with_other_radar_files_cannot_take_a_used_instant(world: World) -> None:
    first, second = NOON - 20 * MINUTE, NOON - 15 * MINUTE
    forecast_run(world.db, first, model="nowcast", radar_timestamp=second, external_id="x")
    candidate = store.RunCandidate("nowcast", second, ("a",), second)
    assert store.open_run(world.db, candidate, NOON) is None


def test_poll_by_hand_runs_though_its_slot_has_succeeded(world: World) -> None:
    def poll(**event: Any) -> str:
        answer = world.stage.app.poll(event, Stage.invocation(NOON + 5 * MINUTE))
        return str(answer["status"])

    assert poll(scheduled_time=NOON.isoformat()) == "succeeded"
    assert poll(force_retry=True, backfill_hours=48) == "succeeded"
    assert poll(reference_time=NOON.isoformat()) == "succeeded"
    assert poll(force=False) == "skipped"
    assert poll(scheduled_time=NOON.isoformat()) == "skipped"


@pytest.mark.parametrize("at_work", [NOON, NOON - 15 * MINUTE])
def test_poll_by_hand_says_that_another_is_at_work(world: World, at_work: datetime) -> None:
    abandoned_run(world.db, "poll_data", at_work, lease=HOUR, whole_task=True)
    answer = world.stage.app.poll({}, Stage.invocation(NOON))
    assert (answer["status"], answer["reason"].partition(": ")[2]) == (
        "skipped",
        "see `signalbox history --task poll_data --status running`",
    )


def test_force_retry_triggers_only_the_windows_failed_runs_again(world: World) -> None:
    inside = forecast_run(world.db, SIX, status="failed", failure_reason="Timeout", external_id="old", retry_count=3)
    forecast_run(world.db, SIX - 48 * HOUR, status="failed", failure_reason="Timeout", external_id="older")
    for hours in (0, 6, 48):
        world.files.add_cycle(SIX - hours * HOUR)
    forecast_run(world.db, SIX - 6 * HOUR, status="complete", external_id="done")
    assert world.poll(backfill_hours=24)["items"] == 0
    assert world.poll(backfill_hours=24, force_retry=True)["items"] == 1
    [payload] = world.asked
    assert payload.forecast_run_id == str(inside)
    columns = "status, failure_reason, external_id, retry_count, started_at"
    assert world.rows(columns)[2] == ("running", None, next(iter(world.runpod.jobs)), 0, NOON)


def crash(*_: object, **__: object) -> None:
    raise Crash


def age(db: psycopg.Connection, by: timedelta) -> None:
    """Make runs older by this much."""
    db.execute(
        "UPDATE forecasts.forecast_runs "
        "SET started_at = clock_timestamp() - %(by)s, triggered_at = triggered_at - %(by)s",
        {"by": by},
    )


def together(world: World, events: Sequence[dict[str, Any]]) -> None:
    """Run each event by a poller of its own, in slots of their own, at once."""
    # The task forbids overlap; here its own guard is tested, so no other poller is before any of them.
    contexts = [context_of(world.stage.another(), "poll_data", NOON, Params(**event)) for event in events]
    answers = at_once(*(partial(poll_data, context) for context in contexts))
    assert [answer for answer in answers if isinstance(answer, Exception)] == []
