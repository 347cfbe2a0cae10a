"""Each alarm, tried: it is quiet while the stack is, and rings in bounded time for the fault that it is there for."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.support.alarms import MINUTE, Properties, Series, metrics_of, seconds_to_alarm, state_of, window_of
from tests.support.watched import Alarm, alarms

HOUR, DAY = 3600, 86400
Measured = Mapping[str, tuple[int, float]]  # by name: every so many seconds, this much

# A stack with nothing to do: its rules fire, and what they look at is empty.
QUIET: Measured = {
    "RunsSucceeded": (MINUTE, 5),
    "Invocations": (MINUTE, 6),
    "Errors": (MINUTE, 0),
    "Throttles": (MINUTE, 0),
    "Duration": (MINUTE, 400),
    "Lateness": (MINUTE, 20),
    "JobsWaiting": (5 * MINUTE, 0),
    "WorkersSilent": (5 * MINUTE, 0),
    "LanesStanding": (5 * MINUTE, 0),
    "PlaneHealth": (5 * MINUTE, 0),
    "DeadLettersPending": (5 * MINUTE, 0),
    "DayFailureRate": (5 * MINUTE, 0),
    "DayDurationP95": (5 * MINUTE, 0),
    "StartWaitP95": (5 * MINUTE, 900),
    "DayFailedJobs": (5 * MINUTE, 0),
    "DatabaseConnectionsShare": (5 * MINUTE, 4),
    "DatabaseUnavailable": (MINUTE, 0),
    "ApproximateNumberOfMessagesVisible": (MINUTE, 0),
    "ApproximateNumberOfMessagesNotVisible": (MINUTE, 0),
    "ACUUtilization": (MINUTE, 12),
    "CPUUtilization": (MINUTE, 10),
    "VolumeBytesUsed": (HOUR, 5e8),
    "DatabaseConnectionsBorrowLatency": (MINUTE, 900),
    "ForecastsTriggered": (HOUR, 1),
}
# What goes wrong from one moment on, and after how many minutes at most the alarm must ring.
FAULTS: Mapping[str, tuple[Measured, int]] = {
    "high-queue-depth": ({"JobsWaiting": (300, 1001)}, 15),
    "critical-queue-depth": ({"JobsWaiting": (300, 5001)}, 15),
    "worker-down": ({"WorkersSilent": (300, 1)}, 15),
    "high-failure-rate": ({"AttemptsFailed": (MINUTE, 2), "JobsCompleted": (MINUTE, 8)}, 60),
    "dlq-accumulation": ({"DeadLettersPending": (300, 51)}, 15),
    "slow-jobs": ({"DayDurationP95": (300, 61_000)}, 15),
    "slow-starts": ({"StartWaitP95": (300, 5_500)}, 15),
    "failed-jobs": ({"DayFailedJobs": (300, 1.5)}, 15),
    "failing-jobs": ({"DayFailedJobs": (300, 6)}, 15),
    "health-degraded": ({"PlaneHealth": (300, 1)}, 20),
    "health-unhealthy": ({"PlaneHealth": (300, 2)}, 15),
    "critical-dead-letters": ({"DeadLettersNew": (300, 1)}, 5),
    "stack-silent": ({"JobsWaiting": (DAY, 0)}, 30),
    "missed-slots": ({"MissedSlots": (15 * MINUTE, 1)}, 5),
    "late-runs": ({"Lateness": (MINUTE, 400)}, 20),
    "failed-invocations": ({"NumberOfMessagesSent": (DAY, 1)}, 5),
    "unread-dead-letters": ({"ApproximateNumberOfMessagesNotVisible": (MINUTE, 1)}, 20),
    "archiver-errors": ({"Errors": (MINUTE, 1)}, 5),
    "poller-errors": ({"Errors": (5 * MINUTE, 1), "Invocations": (5 * MINUTE, 1)}, 20),
    "worker-errors": ({"Errors": (MINUTE, 3), "Invocations": (MINUTE, 100)}, 10),
    "worker-heavy-errors": ({"Errors": (MINUTE, 1), "Invocations": (MINUTE, 2)}, 10),
    "dead-letter-errors": ({"Errors": (5 * MINUTE, 1), "Invocations": (5 * MINUTE, 1)}, 20),
    "throttles": ({"Throttles": (MINUTE, 1)}, 15),
    "slow-functions": ({"Duration": (MINUTE, 290_000)}, 60),
    "database-unreachable": ({"DatabaseUnavailable": (MINUTE, 4)}, 5),
    "database-connections": ({"DatabaseConnectionsShare": (300, 81)}, 15),
    "database-capacity": ({"ACUUtilization": (MINUTE, 97)}, 35),
    "database-cpu": ({"CPUUtilization": (MINUTE, 97)}, 35),
    "database-storage": ({"VolumeBytesUsed": (HOUR, 101 * 2**30)}, 120),
    "proxy-waits": ({"DatabaseConnectionsBorrowLatency": (MINUTE, 2_000_000)}, 20),
    "forecasts-without-data": ({"MirrorsFailed": (15 * MINUTE, 1)}, 75),
    "forecasts-standing": ({"ForecastsTriggered": (30 * DAY, 1)}, 9 * 60),
    "forecasts-in-doubt": ({"TriggersUnconfirmed": (DAY, 1)}, 5),
    "forecasts-failing": ({"ForecastsFailed": (HOUR, 1), "ForecastsTimedOut": (HOUR, 1)}, 6 * 60),
    "runpod-unreachable": ({"ForecastsUnreachable": (HOUR, 1)}, 4 * 60),
    "billing-drift": ({"BillingStateDrift": (DAY, 11)}, 2 * 60),
    "canary-silent": ({"CanaryMismatch": (DAY, 1)}, 2 * 60),
    "deletions-refused": ({"DeletionsRefused": (DAY, 1)}, 2 * 60),
    "forecasts-kept": ({"ForecastsKept": (DAY, 1)}, 3 * 24 * 60),
    "verifications-unanswered": ({"VerificationsUnanswered": (DAY, 1)}, 3 * 24 * 60),
    "calibration-waiting": ({"CalibrationCandidatesWaiting": (7 * DAY, 1)}, 2 * 60),
    "forecasts-dead-letters": ({"ApproximateNumberOfMessagesVisible": (MINUTE, 1)}, 10),
}
# What one sees now and then in a stack that is well, and that must wake nobody.
BLIPS: Mapping[str, Measured] = {
    "high-queue-depth": {"JobsWaiting": (DAY, 3000)},  # a bulk that is gone at the next look
    "worker-down": {"WorkersSilent": (DAY, 1)},
    "health-degraded": {"PlaneHealth": (DAY, 1)},
    "late-runs": {"Lateness": (DAY, 900)},
    "high-failure-rate": {"AttemptsFailed": (MINUTE, 1)},  # one job a minute, and it fails: below a hundred
    "archiver-errors": {"Errors": (15 * MINUTE, 2)},
    "poller-errors": {"Errors": (15 * MINUTE, 2), "Invocations": (5 * MINUTE, 1)},
    "worker-errors": {"Errors": (15 * MINUTE, 2), "Invocations": (MINUTE, 100)},
    "throttles": {"Throttles": (HOUR, 9)},
    "slow-functions": {"Duration": (30 * MINUTE, 290_000)},  # a task with much to do, and nothing else
    "database-unreachable": {"DatabaseUnavailable": (10 * MINUTE, 9)},  # a failover
    "forecasts-without-data": {"MirrorsFailed": (40 * MINUTE, 1)},
    "forecasts-failing": {"ForecastsFailed": (3 * HOUR, 1)},
    "billing-drift": {"BillingStateDrift": (DAY, 10)},
    "verifications-unanswered": {"VerificationsUnanswered": (4 * DAY, 1)},  # the next try had a result
}
each_alarm = pytest.mark.parametrize("alarm", alarms().values(), ids=lambda alarm: alarm.name)


def series_of(alarm: Alarm, fault: Measured, until: int) -> Series:
    """Quiet until second 0, and with the fault from then on."""
    series = Series()
    begins = -2 * window_of(alarm.properties)
    for metric in metrics_of(alarm.properties):
        every, value = QUIET.get(metric.name, (0, 0))
        broken = metric.name in fault
        for at in range(begins, 0 if broken else until, every) if every else ():
            series.put(metric, at, value)
        if broken:
            every, value = fault[metric.name]
            for at in range(30, until, every):
                series.put(metric, at, value)
    return series


def decided(alarm: Alarm) -> Properties:
    """With the parameter's default."""
    properties = dict(alarm.properties)
    if isinstance(properties["Threshold"], dict):
        assert properties["Threshold"] == {"Ref": "DatabaseStorageAlarmGiB"}
        properties["Threshold"] = 100
    return properties


def test_every_alarm_is_tried() -> None:
    assert set(FAULTS) == set(alarms())


@each_alarm
def test_an_alarm_is_quiet_while_the_stack_is(alarm: Alarm) -> None:
    window = window_of(alarm.properties)
    assert seconds_to_alarm(decided(alarm), series_of(alarm, {}, window), most=window) is None


@each_alarm
def test_only_one_alarm_rings_where_nothing_is_measured(alarm: Alarm) -> None:
    assert state_of(decided(alarm), Series(), now=0) == ("ALARM" if alarm.name == "stack-silent" else "OK")


@each_alarm
def test_an_alarm_rings_for_its_fault_and_stops_when_it_is_mended(alarm: Alarm) -> None:
    fault, minutes = FAULTS[alarm.name]
    most = (minutes + 1) * MINUTE
    series = series_of(alarm, fault, most)
    after = seconds_to_alarm(decided(alarm), series, most)
    assert after is not None, f"{alarm.name} never rings"
    assert after <= minutes * MINUTE

    window = window_of(alarm.properties)
    mended = series_of(alarm, {}, most + 2 * window)
    assert state_of(decided(alarm), mended, most + 2 * window - MINUTE) == "OK"


@pytest.mark.parametrize("name", BLIPS)
def test_an_alarm_does_not_ring_for_what_passes(name: str) -> None:
    alarm = alarms()[name]
    until = 3 * window_of(alarm.properties)
    assert seconds_to_alarm(decided(alarm), series_of(alarm, BLIPS[name], until), until) is None
