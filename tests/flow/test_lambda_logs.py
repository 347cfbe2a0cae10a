"""Functions' logs reach CloudWatch Logs whole, and never delay an invocation."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from signalbox_laptop.lambda_runtime.log_writer import LogWriter
from signalbox_laptop.lambda_runtime.output import Frames, Lines
from tests.support.lambda_stand import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.lambda_stand import Stand

pytest_plugins = ["tests.support.lambda_stand"]


def test_an_invocation_is_logged_between_lambdas_own_records(stand: Stand) -> None:
    name = stand.deploy("writer", MemorySize=256)
    answer = stand.invoke(name, {"print": ["out"], "stderr": ["err"], "log": ["message"]})
    request_id = answer["ResponseMetadata"]["RequestId"]
    [initialised, started, *between, report] = stand.log(name)
    assert json.loads(initialised)["type"] == "platform.initStart"
    assert json.loads(started)["record"] == {"requestId": request_id, "version": "$LATEST"}
    assert {"out", "err"} < set(between)
    [message] = [json.loads(line) for line in between if line.startswith("{")]
    assert (message["level"], message["message"], message["requestId"]) == ("INFO", "message", request_id)
    record = json.loads(report)["record"]
    assert (record["requestId"], record["status"]) == (request_id, "success")
    assert (record["metrics"]["memorySizeMB"], record["metrics"]["maxMemoryUsedMB"] > 5) == (256, True)


def test_the_stream_is_the_environments_and_named_as_lambda_names_it(stand: Stand) -> None:
    name = stand.deploy("surroundings")
    environments = [stand.call(name)["environment"] for _ in range(2)]
    assert stand.service.idle(PATIENCE)
    streams = stand.client("logs").describe_log_streams(logGroupName=f"/aws/lambda/{name}")["logStreams"]
    [stream] = [stream["logStreamName"] for stream in streams]
    assert re.fullmatch(r"\d{4}/\d\d/\d\d/\[\$LATEST\][0-9a-f]{32}", stream)
    assert {environment["AWS_LAMBDA_LOG_STREAM_NAME"] for environment in environments} == {stream}


def test_a_group_of_its_own_is_used_and_keeps_its_retention(stand: Stand) -> None:
    logs, group = stand.client("logs"), stand.name("group")
    logs.create_log_group(logGroupName=group)
    logs.put_retention_policy(logGroupName=group, retentionInDays=14)
    name = stand.deploy("writer", LoggingConfig={"LogFormat": "JSON", "LogGroup": group})
    stand.call(name, {"print": ["found"]})
    assert stand.service.idle(PATIENCE)
    messages = [event["message"] for event in logs.filter_log_events(logGroupName=group)["events"]]
    assert "found" in messages
    [described] = logs.describe_log_groups(logGroupNamePrefix=group)["logGroups"]
    assert described["retentionInDays"] == 14


def test_an_error_is_logged_and_its_report_says_so(stand: Stand) -> None:
    name = stand.deploy("writer")
    stand.invoke(name, {"raise": "no luck"})
    [_, _, error, report] = [json.loads(line) for line in stand.log(name)]
    assert (error["level"], error["errorType"], error["errorMessage"]) == ("ERROR", "RuntimeError", "no luck")
    assert (report["record"]["status"], report["record"]["errorType"]) == ("error", "RuntimeError")
    assert sorted(report["record"]["metrics"]) == [
        "billedDurationMs", "durationMs", "initDurationMs", "maxMemoryUsedMB", "memorySizeMB",
    ]  # fmt: skip


def test_a_function_that_logs_as_text_is_refused(stand: Stand) -> None:
    name = stand.deploy("echo", LoggingConfig={"LogFormat": "Text"})
    with pytest.raises(ClientError, match="LogFormat: JSON"):
        stand.call(name)


def test_a_message_of_several_lines_is_one_event(stand: Stand) -> None:
    name = stand.deploy("writer")
    stand.call(name, {"log": ["first\nsecond"]})
    assert json.loads(stand.log(name)[2])["message"] == "first\nsecond"


def test_unended_line_is_in_the_log_and_its_invocations_tail(stand: Stand) -> None:
    name = stand.deploy("writer")
    answer = stand.invoke(name, {"unended": "no newline"}, LogType="Tail")
    assert base64.b64decode(answer["LogResult"]).decode().splitlines()[1] == "no newline"
    stand.call(name, {"print": ["next"]})
    assert {"no newline", "next"} < set(stand.log(name))


def test_a_flood_is_logged_whole_and_in_order(stand: Stand) -> None:
    name = stand.deploy("writer", Timeout=20)
    stand.call(name, {"flood": 9_000})
    lines = [line for line in stand.log(name) if line.startswith("line ")]
    assert lines == [f"line {number} of many" for number in range(9_000)]


def test_the_level_of_the_json_format_reaches_the_runtime(stand: Stand) -> None:
    level: Any = {"LogFormat": "JSON", "ApplicationLogLevel": "WARN"}
    environment = stand.call(stand.deploy("surroundings", LoggingConfig=level))["environment"]
    assert (environment["AWS_LAMBDA_LOG_FORMAT"], environment["AWS_LAMBDA_LOG_LEVEL"]) == ("JSON", "WARN")


def test_a_process_that_ended_says_so_in_its_log(stand: Stand) -> None:
    name = stand.deploy("dies_at_start")
    stand.fail(name)
    report = stand.platform_records(name)[-1]["record"]
    assert (report["status"], report["errorType"]) == ("error", "Runtime.ExitError")


def test_a_timed_out_invocation_says_so_in_its_log(stand: Stand) -> None:
    name = stand.deploy("puppet", Timeout=1)
    stand.fail(name)
    assert stand.platform_records(name)[-1]["record"]["status"] == "timeout"


class FakeExceptions:
    ResourceNotFoundException = KeyError
    ResourceAlreadyExistsException = LookupError


class Recorder:
    """Stand for CloudWatch Logs, as far as its limits go."""

    exceptions = FakeExceptions

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []

    def put_log_events(self, logEvents: list[Any], **_place: str) -> None:  # noqa: N803 (boto3's name)
        self.batches.append(logEvents)


def written(append: Callable[[LogWriter], None]) -> list[list[Any]]:
    recorder: Any = Recorder()
    writer = LogWriter(recorder)
    append(writer)
    writer.start()
    writer.stop()
    return list(recorder.batches)


def test_no_batch_is_over_the_limits_of_put_log_events() -> None:
    def append(writer: LogWriter) -> None:
        for number in range(25_000):
            writer.append("group", "stream", number, "x")
        for number in range(9):
            writer.append("group", "stream", 25_000 + number, "ü" * 400_000)

    batches = written(append)
    assert sum(len(batch) for batch in batches) == 25_009
    assert max(len(batch) for batch in batches) == 10_000
    assert max(sum(len(event["message"].encode()) + 26 for event in batch) for batch in batches) <= 1_048_576


def test_events_of_one_stream_are_in_order_of_time_and_streams_apart() -> None:
    def append(writer: LogWriter) -> None:
        for at_ms, stream in [(3, "a"), (1, "a"), (2, "b"), (2, "a")]:
            writer.append("group", stream, at_ms, f"{stream}{at_ms}")

    batches = written(append)
    assert [[event["message"] for event in batch] for batch in batches] == [["a1", "a2", "a3"], ["b2"]]


def test_what_can_not_be_kept_is_counted_in_the_log() -> None:
    def append(writer: LogWriter) -> None:
        for _ in range(200_007):
            writer.append("group", "stream", 1, "x")

    last = written(append)[-1][-1]["message"]
    assert json.loads(last) == {"type": "platform.logsDropped", "record": {"droppedRecords": 7}}


def test_lines_are_whole_however_the_bytes_arrive() -> None:
    lines = Lines()
    chunks = [b"one\ntw", b"o\n\xc3", b"\xbc\nca\rrri\r\nlast"]
    assert [line for chunk in chunks for line in lines.feed(chunk)] == ["one", "two", "ü", "ca\nrri"]
    assert list(lines.rest()) == ["last"]
    assert list(lines.rest()) == []


def test_a_line_that_never_ends_is_cut() -> None:
    lines = Lines()
    assert [len(line) for line in lines.feed(b"x" * 300_000)] == [300_000]


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_frames_are_whole_however_the_bytes_arrive(step: int) -> None:
    def frame(message: bytes, at_us: int) -> bytes:
        return b"\xa5\x5a\x00\x03" + len(message).to_bytes(4, "big") + at_us.to_bytes(8, "big") + message

    content = frame(b"one\ntwo\n", 5_000) + frame("ü".encode(), 6_999)
    frames = Frames()
    heard = [event for start in range(0, len(content), step) for event in frames.feed(content[start : start + step])]
    assert heard == [("one\ntwo", 5), ("ü", 6)]
