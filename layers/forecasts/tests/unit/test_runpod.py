"""RunPod's client runs against its stand-in, over a socket: what it retries, and what it must not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from forecasts.errors import RunPodDenied, RunPodRefused, RunPodUnavailable, TriggerUnconfirmed
from forecasts.runs import runpod as client
from forecasts.runs.inference_payload import InferencePayload
from forecasts.runs.runpod import RunPod, RunPodState
from signalbox.budget import Budget
from signalbox.http.client import HttpClient
from signalbox.runtime.log import make_logger
from signalbox_laptop.lambda_api.http_server import HttpServer, Response
from signalbox_laptop.stand_ins.faults import Fault
from stand_ins.runpod import KEY, RunPodStandIn

TIME_OUT = timedelta(minutes=20)
PAYLOAD = InferencePayload(
    task_type="forecast", model="nowcast", run_timestamp=datetime(2026, 3, 10, 12, tzinfo=UTC), forecast_run_id="r1"
)


@pytest.fixture
def stand_in() -> Iterator[RunPodStandIn]:
    server = RunPodStandIn()
    server.start()
    yield server
    server.stop()


class Asked:
    """Make a client that notes its waits instead of waiting."""

    def __init__(self, url: str, *, key: str = KEY, seconds: float = 100, read_seconds: float = 5) -> None:
        self.waits: list[float] = []
        self.runpod = RunPod(HttpClient(read_seconds), url, key, Budget.of(seconds), make_logger("tests"))
        self.runpod.sleep = self.waits.append


def asked(stand_in: RunPodStandIn, **given: float) -> Asked:
    return Asked(f"{stand_in.url}/{stand_in.endpoint}", **given)  # type: ignore[arg-type]


def runs(stand_in: RunPodStandIn) -> int:
    return sum(name == "run" for name, _ in stand_in.calls)


def test_job_runs_with_payload_and_a_ttl_longer_than_its_timeout(stand_in: RunPodStandIn) -> None:
    external_id = asked(stand_in).runpod.trigger(PAYLOAD, TIME_OUT)
    job = stand_in.jobs[external_id]
    assert InferencePayload.model_validate_json(json.dumps(job["input"])) == PAYLOAD
    life = 1000 * int((TIME_OUT + client.GRACE).total_seconds())
    assert job["policy"] == {"executionTimeout": life, "ttl": life}
    assert timedelta(hours=1) < client.GRACE, "an hourly look must find a hung job still there"


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_runpod_did_not_take_is_sent_again_and_taken_once(stand_in: RunPodStandIn, status: int) -> None:
    stand_in.faults.add(Fault(matching="/run", times=2, status=status))
    one = asked(stand_in)
    one.runpod.trigger(PAYLOAD, TIME_OUT)
    assert (len(stand_in.jobs), runs(stand_in), len(one.waits)) == (1, 3, 2)
    assert all(0 <= wait <= client.FIRST_BACKOFF * 2**n for n, wait in enumerate(one.waits))


def test_runpods_own_words_with_a_gateways_status_count_as_a_refusal(stand_in: RunPodStandIn) -> None:
    stand_in.faults.add(Fault(matching="/run", times=1, status=502))
    asked(stand_in).runpod.trigger(PAYLOAD, TIME_OUT)
    assert runs(stand_in) == 2


def test_retry_after_is_honoured(stand_in: RunPodStandIn) -> None:
    stand_in.faults.add(Fault(matching="/run", times=1, status=429, retry_after="17"))
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    stand_in.faults.add(Fault(matching="/run", times=1, status=503, retry_after=soon))
    passed = format_datetime(datetime.now(UTC) - timedelta(seconds=30), usegmt=True)
    stand_in.faults.add(Fault(matching="/run", times=1, status=503, retry_after=passed))
    one = asked(stand_in)
    one.runpod.trigger(PAYLOAD, TIME_OUT)
    assert one.waits[0] == 17
    assert one.waits[1] == pytest.approx(30, abs=2)
    assert one.waits[2] == 0


def test_a_wait_beyond_the_budget_is_not_begun(stand_in: RunPodStandIn) -> None:
    stand_in.faults.add(Fault(matching="/run", status=429, retry_after="60"))
    one = asked(stand_in, seconds=50)
    with pytest.raises(RunPodUnavailable, match="no time to try again: status 429"):
        one.runpod.trigger(PAYLOAD, TIME_OUT)
    assert (runs(stand_in), one.waits) == (1, [])


def test_trouble_that_lasts_is_given_up(stand_in: RunPodStandIn) -> None:
    stand_in.faults.add(Fault(matching="/run", status=500))
    with pytest.raises(RunPodUnavailable, match="still fails after 4 tries: status 500"):
        asked(stand_in).runpod.trigger(PAYLOAD, TIME_OUT)
    assert runs(stand_in) == client.TRIES


def test_a_run_whose_answer_is_lost_is_never_sent_again(stand_in: RunPodStandIn) -> None:
    stand_in.faults.add(Fault(matching="/run", lost=True))
    with pytest.raises(TriggerUnconfirmed, match="the connection broke"):
        asked(stand_in).runpod.trigger(PAYLOAD, TIME_OUT)
    assert (len(stand_in.jobs), runs(stand_in)) == (1, 1)


def test_a_run_that_is_not_answered_in_time_is_never_sent_again(stand_in: RunPodStandIn) -> None:
    stand_in.faults.add(Fault(matching="/run", hang_seconds=60))
    with pytest.raises(TriggerUnconfirmed, match="no answer in time"):
        asked(stand_in, read_seconds=0.2).runpod.trigger(PAYLOAD, TIME_OUT)
    assert runs(stand_in) == 1


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (Response(502, b"<html>Bad gateway</html>"), TriggerUnconfirmed),
        (Response(504), TriggerUnconfirmed),
        (Response(524), TriggerUnconfirmed),
        (Response(500, b'{"id": "taken-all-the-same"}'), TriggerUnconfirmed),
        (Response(200, b'{"status": "IN_QUEUE"}'), TriggerUnconfirmed),
        (Response(200, b"<html>"), TriggerUnconfirmed),
        (Response(200, b'{"id": 7}'), TriggerUnconfirmed),
        (Response(500), RunPodUnavailable),
        (Response(503, b"<html>"), RunPodUnavailable),
        (Response(400, b'{"error": "bad input"}'), RunPodRefused),
        (Response(413), RunPodRefused),
        (Response(301, headers=[("Location", "https://elsewhere.example")]), RunPodRefused),
        (Response(401), RunPodDenied),
        (Response(403), RunPodDenied),
        (Response(404), RunPodDenied),
    ],
)
def test_an_answer_to_run_says_whether_the_run_was_taken(response: Response, error: type[Exception]) -> None:
    server = HttpServer(0, lambda _: response)
    server.start()
    try:
        with pytest.raises(error):
            Asked(f"http://{server.address}/v2/laptop").runpod.trigger(PAYLOAD, TIME_OUT)
    finally:
        server.stop()


def test_a_server_that_is_not_there_has_taken_nothing(stand_in: RunPodStandIn) -> None:
    one = asked(stand_in)
    stand_in.stop()
    with pytest.raises(RunPodUnavailable, match="after 4 tries: can't connect"):
        one.runpod.trigger(PAYLOAD, TIME_OUT)


@pytest.mark.parametrize(
    ("told", "state"),
    [
        ("IN_QUEUE", RunPodState.UNFINISHED),
        ("IN_PROGRESS", RunPodState.UNFINISHED),
        ("RUNNING", RunPodState.UNFINISHED),
        ("A_NEW_ONE", RunPodState.UNFINISHED),
        ("LOST_AND_FOUND", RunPodState.UNFINISHED),
        ("COMPLETED", RunPodState.COMPLETED),
        ("FAILED", RunPodState.FAILED),
        ("CANCELLED", RunPodState.CANCELLED),
        ("TIMED_OUT", RunPodState.TIMED_OUT),
    ],
)
def test_states_are_runpods_and_unknown_ones_are_not_final(
    stand_in: RunPodStandIn, told: str, state: RunPodState
) -> None:
    assert asked(stand_in).runpod.status(stand_in.add(told)).state is state


def test_failed_jobs_error_is_reported_and_cut(stand_in: RunPodStandIn) -> None:
    job = asked(stand_in).runpod.status(stand_in.add("FAILED", error="out of memory" + "!" * 1000))
    assert job.error.startswith("out of memory!")
    assert len(job.error) == client.LONGEST_REASON


def test_a_job_that_runpod_does_not_know_is_lost(stand_in: RunPodStandIn) -> None:
    assert asked(stand_in).runpod.status("gone/../health").state is RunPodState.LOST


def test_asking_and_cancelling_are_repeated_after_any_error(stand_in: RunPodStandIn) -> None:
    job = stand_in.add()
    stand_in.faults.add(Fault(matching="/status", times=1, lost=True))
    stand_in.faults.add(Fault(matching="/cancel", times=1, lost=True))
    one = asked(stand_in)
    assert one.runpod.status(job).state is RunPodState.UNFINISHED
    one.runpod.cancel(job)
    one.runpod.cancel("gone")
    assert stand_in.jobs[job]["status"] == "CANCELLED"


def test_a_status_that_is_none_leaves_the_job_alone() -> None:
    for response in (Response(200, b"<html>"), Response(200, b"{}"), Response(400), Response(500)):
        server = HttpServer(0, lambda _, response=response: response)  # type: ignore[misc]
        server.start()
        with pytest.raises(RunPodUnavailable):
            Asked(f"http://{server.address}/v2/laptop").runpod.status("j")
        server.stop()


def test_a_wrong_key_is_named_by_its_setting_and_never_shown(stand_in: RunPodStandIn) -> None:
    with pytest.raises(RunPodDenied, match="FORECASTS_RUNPOD_SECRET") as caught:
        Asked(f"{stand_in.url}/laptop", key="rpa_secret").runpod.status("j")
    assert "rpa_secret" not in str(caught.value)


def test_stand_in_forgets_a_job_when_its_ttl_is_over() -> None:
    now = [0.0]
    stand_in = RunPodStandIn(clock=lambda: now[0])
    stand_in.start()
    runpod = asked(stand_in).runpod
    job = runpod.trigger(PAYLOAD, TIME_OUT)
    now[0] = (TIME_OUT + client.GRACE).total_seconds()
    assert runpod.status(job).state is RunPodState.UNFINISHED
    now[0] += 1
    assert runpod.status(job).state is RunPodState.LOST
    stand_in.stop()


def test_stand_in_takes_the_status_of_jobs_from_outside(stand_in: RunPodStandIn) -> None:
    web, root = HttpClient(5), stand_in.url.removesuffix("/v2")
    web.send("PUT", f"{root}/_stand_in/jobs/j", b'{"status": "FAILED", "error": "no luck"}')
    assert asked(stand_in).runpod.status("j").error == "no luck"
    health = web.send("GET", f"{stand_in.url}/laptop/health", headers={"Authorization": f"Bearer {KEY}"})
    assert health.fields()["jobs"]["failed"] == 1
    web.send("DELETE", f"{root}/_stand_in/jobs/j")
    assert web.send("GET", f"{root}/_stand_in/jobs").fields() == {"jobs": []}
    web.send("PUT", f"{root}/_stand_in/faults", b'[{"matching": "/status", "status": 418}]')
    with pytest.raises(RunPodUnavailable, match="status 418"):
        asked(stand_in).runpod.status("j")
    assert web.send("PUT", f"{root}/_stand_in/nonsense", b"[]").status == 400
