"""What the model makes of the template: each thing that costs is read from it, and moves the figure that it should."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from local.__main__ import main
from local.cost.load import Load, Work
from local.cost.stack import read_stack
from tests.support.cost import billed, spent_on, stack

RESOURCES = """
Parameters:
  Least: {Type: Number, Default: 0, MinValue: 0}
Globals:
  Function: {MemorySize: 1024, Tracing: Active}
Resources:
  OneFunction:
    Type: AWS::Serverless::Function
    Properties: {Architectures: [arm64]}
  OtherFunction:
    Type: AWS::Serverless::Function
    Properties: {MemorySize: 256, Tracing: PassThrough, Timeout: 7}
  HourlyRule:
    Type: AWS::Events::Rule
    Properties:
      Name: !Sub ${AWS::StackName}-hourly
      ScheduleExpression: cron(0 * * * ? *)
      Targets: [{Id: one, Arn: !Ref OneFunctionAliaslive}]
  NormalLane:
    Type: AWS::SQS::Queue
    Properties: {KmsMasterKeyId: !Ref Key, KmsDataKeyReusePeriodSeconds: 3600, VisibilityTimeout: 42}
  NormalMapping:
    Type: AWS::Lambda::EventSourceMapping
    Properties:
      EventSourceArn: !GetAtt NormalLane.Arn
      FunctionName: !Ref OneFunction.Alias
      BatchSize: 50
      ScalingConfig: {MaximumConcurrency: 3}
  Key: {Type: AWS::KMS::Key}
  Cluster:
    Type: AWS::RDS::DBCluster
    Properties:
      ManageMasterUserPassword: true
      ServerlessV2ScalingConfiguration: {MinCapacity: !Ref Least, MaxCapacity: 8}
  Writer: {Type: AWS::RDS::DBInstance}
  Proxy: {Type: AWS::RDS::DBProxy}
  Endpoint:
    Type: AWS::EC2::VPCEndpoint
    Properties: {VpcEndpointType: Interface, SubnetIds: [!Ref One, !Ref Two]}
  Gateway:
    Type: AWS::EC2::VPCEndpoint
    Properties: {VpcEndpointType: Gateway}
  Alarm: {Type: AWS::CloudWatch::Alarm, Properties: {MetricName: Errors}}
  Share:
    Type: AWS::CloudWatch::Alarm
    Properties: {Metrics: [{Id: a, MetricStat: {}}, {Id: b, MetricStat: {}}, {Id: c, Expression: a / b}]}
  Worst: {Type: AWS::CloudWatch::CompositeAlarm}
  Filter:
    Type: AWS::Logs::MetricFilter
    Properties: &same {MetricTransformations: [{MetricNamespace: Small, MetricName: Cries}]}
  AnotherFilter: {Type: AWS::Logs::MetricFilter, Properties: *same}
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "template.yaml"
    path.write_text(RESOURCES)
    return path


def cost(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["cost", *shlex.split(line)]) == 0
    return capsys.readouterr().out


def refused(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["cost", *shlex.split(line)]) != 0
    return capsys.readouterr().err


def test_what_costs_is_read_from_the_template(small: Path) -> None:
    found = read_stack(small, {"Least": "2"})
    one, other = found.functions["OneFunction"], found.functions["OtherFunction"]
    assert (one.memory_mb, one.architecture, one.traced) == (1024, "arm64", True)
    assert (other.memory_mb, other.architecture, other.traced, other.timeout_seconds) == (256, "x86_64", False, 7)
    assert [(rule.task, rule.function, rule.fires_a_day, rule.hours_a_day) for rule in found.rules] == [
        ("hourly", "OneFunction", 24, 24)
    ]
    assert found.lane("normal").batch_size == 50
    assert (found.lane("normal").function, found.lane("normal").concurrency) == ("OneFunction", 3)
    assert (found.queues["NormalLane"].reuse_seconds, found.queues["NormalLane"].visibility_seconds) == (3600, 42)
    assert (found.alarm_metrics, found.composite_alarms, found.metrics_from_logs, found.dashboards) == (3, 1, 1, 0)
    assert (found.keys, found.secrets, found.endpoint_zones, found.least_acu, found.proxied) == (1, 1, 2, 2.0, True)


def test_an_aurora_of_its_own_never_sleeps_while_rules_fire_and_its_proxy_has_a_least_price(small: Path) -> None:
    found = read_stack(small, {})
    awake, asleep = billed(0, found), billed(0, replace(found, rules=()))
    assert spent_on(awake, "Aurora capacity") == pytest.approx(0.5 * 730 * 0.12)
    assert spent_on(asleep, "Aurora capacity") == 0
    assert spent_on(billed(0, replace(found, instances=2)), "Aurora capacity") == pytest.approx(730 * 0.12)
    assert spent_on(awake, "RDS Proxy") == pytest.approx(8 * 730 * 0.015)
    assert spent_on(awake, "interface endpoints") == pytest.approx(2 * 730 * 0.01)
    assert spent_on(awake, "KMS requests") == pytest.approx(730 * 7 * 0.03 / 10_000)


def test_memory_and_architecture_of_the_worker_move_its_time(small: Path) -> None:
    load, found = Load(100_000, job_ms=100.0), read_stack(small, {})
    small_worker, large_worker = found.functions["OneFunction"], replace(found.functions["OneFunction"], memory_mb=2048)
    larger = replace(found, functions={**found.functions, "OneFunction": large_worker})
    times = [spent_on(billed(load.jobs_a_day, one, job_ms=100.0), "time: worker") for one in (found, larger)]
    assert times[1] == pytest.approx(times[0] * 2, rel=0.01)
    assert Work(load, larger).batch_ms < Work(load, found).batch_ms
    x86 = replace(found, functions={"OneFunction": replace(small_worker, architecture="x86_64")})
    assert spent_on(billed(1e5, x86, job_ms=100.0), "time: worker") > times[0]


def test_the_scheduled_tasks_are_counted_and_cost_nothing_where_no_rule_fires() -> None:
    assert len(stack().rules) == len({rule.task for rule in stack().rules})
    quiet, pack = stack(RuleState="DISABLED"), stack(ForecastsPack="on")
    assert [one.what for one in billed(0, quiet).items if one.group in ("Lambda", "X-Ray")] == []
    assert spent_on(billed(0, quiet), "metrics of") == 0
    fires = [sum(rule.fires_a_day for rule in found.rules) for found in (quiet, stack(), pack)]
    assert fires[0] == 0 < fires[1] < fires[2]
    assert spent_on(billed(0), "scheduled") < spent_on(billed(0, pack), "scheduled")


def test_telling_only_of_ends_costs_a_third_and_telling_nobody_nothing() -> None:
    costs = {
        events: spent_on(billed(1e6, stack(JobEvents=events)), "EventBridge") for events in ("all", "ends", "none")
    }
    assert costs["ends"] == pytest.approx(costs["all"] / 3)
    assert costs["none"] == 0


def test_many_at_once_and_larger_batches_cost_less() -> None:
    alone, together = billed(1e6), billed(1e6, submitted_at_once=100)
    assert spent_on(together, "messages sent") == pytest.approx(spent_on(alone, "messages sent") / 10)
    assert spent_on(together, "Lambda") < spent_on(alone, "Lambda")
    assert billed(1e7, stack(LaneBatchSize="10")).usd > billed(1e7, stack(LaneBatchSize="1000")).usd


def test_the_table_names_items_sums_movers_and_containers(capsys: pytest.CaptureFixture[str]) -> None:
    said = cost("--jobs-per-day 100,000", capsys)
    for words in (
        "100,000 jobs a day on the lane normal",
        "changes of jobs published",
        "$1.00 per million",
        "a month, of which",
        "per 1,000 jobs",
        "what moves the largest items:",
        "containers, Celery and Valkey",
        "list prices of us-east-1",
        "your database is not in the sum",
    ):
        assert words in said


def test_json_has_the_same_sum_as_its_items(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(cost("--jobs-per-day 1000000 --job-ms 20 --json", capsys))
    assert found["total"] == pytest.approx(sum(one["usd"] for one in found["items"]), abs=0.001)
    assert found["load"]["job_ms"] == 20
    assert found["per_1000_jobs"] == pytest.approx(found["total"] / (1e6 * 730 / 24) * 1000, rel=0.001)
    assert [one["name"] for one in found["beside"]] == [
        "containers, queue in Postgres",
        "containers, Celery and Valkey",
    ]


def test_a_lane_that_can_not_keep_up_is_said_so(capsys: pytest.CaptureFixture[str]) -> None:
    said = cost("--jobs-per-day 10000000 --job-ms 1000", capsys)
    assert "jobs would pile up; raise NormalLaneConcurrency" in said


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", "the following arguments are required: --jobs-per-day"),
        ("--jobs-per-day many", "'many' is not a number, such as 100000"),
        ("--jobs-per-day -1", "'-1' is not a number from 0"),
        ("--jobs-per-day nan", "'nan' is not a number from 0"),
        ("--jobs-per-day 1 --busy-hours 25", "'25' is not a number of hours up to 24"),
        ("--jobs-per-day 1 --at-once 0", "'0' is not a whole number from 1"),
        ("--jobs-per-day 1 --lane fast", "invalid choice: 'fast'"),
        ("--jobs-per-day 1 --proxy", "give --database aurora as well"),
        ("--jobs-per-day 1 --network made", "--network made comes with --database aurora"),
        ("--jobs-per-day 1 --parameter LaneBatch=5", "has no parameter LaneBatch; did you mean 'LaneBatchSize'?"),
        (
            "--jobs-per-day 1 --parameter LaneBatchSize=0",
            "LaneBatchSize can't be '0': it takes a number from 1 to 10000",
        ),
        ("--jobs-per-day 1 --parameter RuleState=OFF", "RuleState can't be 'OFF': it takes one of ENABLED, DISABLED"),
        ("--jobs-per-day 1 --template /nowhere.yaml", "template /nowhere.yaml can't be read"),
    ],
)
def test_bad_input_is_refused_with_what_next(line: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert words in refused(line, capsys)


def test_a_template_without_lanes_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump({"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}))
    assert "has no mapping for the lane normal" in refused(f"--jobs-per-day 1 --template {other}", capsys)
