"""Decide what becomes of a job after an attempt, from what its function returned or raised, without any I/O.

It distinguishes errors by their type, never by their words.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import psycopg
from pydantic import ValidationError

from signalbox.aws.errors import is_denied
from signalbox.errors import Refused
from signalbox.jobs.job import ClaimedJob
from signalbox.packs.job_type import JobType
from signalbox.packs.outcome import (
    Cancelled,
    Completed,
    Failed,
    JobCancelled,
    JobTimedOut,
    More,
    OutputFile,
    Permanent,
    RateLimited,
    Snooze,
    Transient,
    Wait,
)
from signalbox.packs.retry_policy import next_delay, throttle_delay
from signalbox.postgres.error_details import describe
from signalbox.postgres.pg_text import clean, fault_of_json

# What differs between two failures of one kind: ids, numbers, quoted values.
_VARYING = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|0x[0-9a-fA-F]+|\d+|'[^']*'|\"[^\"]*\"")
_SHA256 = re.compile(r"[0-9a-f]{64}")
# The same job would meet these again.
_PERMANENT = (Permanent, Refused, NotImplementedError, PermissionError, ValidationError, psycopg.DataError,
              psycopg.ProgrammingError)  # fmt: skip
PARK = timedelta(minutes=5)
LONGEST_KEY = 200  # of a signal
LONGEST_WAIT = timedelta(days=366)  # as for a submit's delay


class Failure(NamedTuple):
    """Describe a permanent failure, as the dead letter has it."""

    reason: str
    fingerprint: str
    severity: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """Describe an attempt's end as the database takes it, without what was measured."""

    status: str  # of the job: completed, pending, failed or cancelled
    execution: str  # of the attempt
    charge: str | None = None  # 'refund': no attempt is spent; 'reset': all attempts are free again
    delay: timedelta = timedelta(0)
    result: Any = None
    output_files: tuple[str, ...] | None = None
    files: tuple[dict[str, Any], ...] | None = None  # what is known of those
    cursor: Any = None
    error: dict[str, Any] | None = None
    failure: Failure | None = None  # of a failed job
    percent: int | None = None
    message: str | None = None
    wait_key: str | None = None
    wait_until: str | None = None


COMPLETED = Verdict("completed", "completed")
CANCELLED = Verdict("cancelled", "cancelled")
# The worker's time was over before the job's own. Not at once: another worker with as little time would break it off,
# too.
BROKEN_OFF = Verdict("pending", "released", charge="refund", delay=timedelta(seconds=10))


def of_answer(job_type: JobType, answer: Any) -> Verdict:
    """Return the verdict for what the function returned.

    Raise Permanent for what could not be recorded: it would be the same each time, and the ends of the whole batch are
    recorded together.
    """
    match answer:
        case None:
            return COMPLETED
        case Completed():
            return Verdict("completed", "completed", result=_json("result", answer.result),
                           output_files=_names(answer.output_files), files=_files(answer.output_files))  # fmt: skip
        case Cancelled():
            return Verdict("cancelled", "cancelled", error={"type": "Cancelled", "message": _text(answer.reason)})
        case Failed():
            return _failed(job_type, {"type": "Failed", "message": _text(answer.reason)}, "permanent", "failed")
        case More() | Snooze() | Wait():
            return _not_yet(answer)
    kind = type(answer).__name__
    raise Permanent(
        f"a job returned a {kind}: Completed, More, Snooze, Wait, Cancelled, Failed or nothing was expected"
    )


def _not_yet(answer: More | Snooze | Wait) -> Verdict:
    cursor = _json("cursor", answer.cursor)
    match answer:
        case More():
            return Verdict("pending", "continued", charge="reset", cursor=cursor, percent=_share(answer.percent),
                           message=_text(answer.message), delay=_delay(answer.delay))  # fmt: skip
        case Snooze():
            return Verdict("pending", "snoozed", charge="refund", cursor=cursor, delay=_delay(answer.delay),
                           message=_text(answer.reason))  # fmt: skip
        case Wait():
            return _waiting(answer, cursor)


def _waiting(wait: Wait, cursor: Any) -> Verdict:
    """Return the verdict for a wait, whose time `end_waiting` sets."""
    key: Any = wait.key
    if not (isinstance(key, str) and 1 <= len(key) <= LONGEST_KEY and key == clean(key)):
        raise Permanent(
            f"a job returned Wait with a key that is not a text of 1 to {LONGEST_KEY} characters without NUL"
        )
    if not _has_zone(wait.until):
        raise Permanent("a job returned Wait with an `until` that is not a datetime with a zone")
    return Verdict(
        "pending", "snoozed", charge="refund", delay=LONGEST_WAIT, cursor=cursor,
        message=f"waits for the signal {key}", wait_key=key, wait_until=wait.until.isoformat(),
    )  # fmt: skip


def _json(what: str, value: Any) -> Any:
    if value is not None and (fault := fault_of_json(value)):
        raise Permanent(f"a job returned a {what} that PostgreSQL can't store as JSON: {fault}")
    return value


def _names(files: Any) -> tuple[str, ...] | None:
    names = None if isinstance(files, str) else [getattr(file, "key", file) for file in files or ()]
    if names is None or not all(isinstance(name, str) for name in names):
        raise Permanent("a job returned output_files that are not a sequence of texts or OutputFiles")
    return tuple(map(clean, names)) or None


def _files(files: Any) -> tuple[dict[str, Any], ...] | None:
    """Return what is known of the files."""
    return tuple(_described(file) for file in files or () if isinstance(file, OutputFile)) or None


def _described(file: OutputFile) -> dict[str, Any]:
    number, until, words = file.bytes, file.kept_until, f"{file.sha256}{file.content_type}"
    if not _SHA256.fullmatch(str(file.sha256)) or type(number) is not int or number < 0 or words != clean(words):
        raise Permanent(f"a job returned the output file '{file.key[:200]}' without its SHA-256 in hex, bytes and type")
    if until is not None and not _has_zone(until):
        raise Permanent(
            f"a job returned the output file '{file.key[:200]}' with a kept_until that is no datetime with a zone"
        )
    return {**asdict(file), "key": clean(file.key), "kept_until": until and until.isoformat()}


def _has_zone(instant: Any) -> bool:
    return isinstance(instant, datetime) and instant.utcoffset() is not None


def _share(percent: Any) -> int | None:
    return None if percent is None else min(100, max(0, int(percent)))


def _text(words: Any) -> str | None:
    return None if words is None else clean(str(words))


def _delay(delay: Any) -> timedelta:
    if not isinstance(delay, timedelta):
        raise Permanent(f"a job returned a delay that is a {type(delay).__name__}: a timedelta was expected")
    return _bounded(delay)


def _bounded(delay: timedelta) -> timedelta:
    return min(LONGEST_WAIT, max(timedelta(0), delay))


def check_pieces(job_type: JobType, job: ClaimedJob, answer: Any, now: datetime) -> None:
    """Refuse a further piece to a job that has reached its type's limit of pieces or of time."""
    if not isinstance(answer, More):
        return
    taken = now - (job.first_started_at or now)
    if job.pieces + 1 >= job_type.max_pieces or taken > job_type.pieces_at_most:
        raise Permanent(
            f"work is left after {job.pieces + 1} pieces in {_spoken(taken)}: job type '{job_type.name}' allows "
            f"{job_type.max_pieces} in {_spoken(job_type.pieces_at_most)} (max_pieces, pieces_at_most); "
            "a redrive continues from its cursor"
        )


def of_error(job_type: JobType, job: ClaimedJob, error: BaseException, chance: float, now: datetime) -> Verdict:
    """Return the verdict for what the function raised."""
    details = describe(error)
    match error:
        case JobCancelled():
            return Verdict("cancelled", "cancelled", error=details)
        case RateLimited():
            return _throttled(job_type, job, error, details, now)
        case _ if _is_permanent(job_type, error):
            return _failed(job_type, details, "permanent", "failed")
    timed_out = isinstance(error, JobTimedOut)
    execution = "timeout" if timed_out else "failed"
    if job.attempt >= job.max_attempts:
        return _failed(job_type, details, "timeout" if timed_out else "exhausted", execution)
    delay = next_delay(job_type.retry, job.attempt, chance)
    if isinstance(error, Transient):
        delay = max(delay, _wait(error.retry_after) or delay)
    return Verdict("pending", execution, delay=delay, error=details)


def _is_permanent(job_type: JobType, error: BaseException) -> bool:
    if not job_type.transient.isdisjoint(kind.__name__ for kind in type(error).__mro__):
        return False
    return isinstance(error, _PERMANENT) or is_denied(error)


def _throttled(
    job_type: JobType, job: ClaimedJob, error: RateLimited, details: dict[str, Any], now: datetime
) -> Verdict:
    count, lasted = job.throttles + 1, now - (job.throttled_since or now)
    if count >= job_type.retry.max_throttles or lasted > job_type.retry.throttled_at_most:
        words = f"{details['message']} (rate-limited {count} times in {_spoken(lasted)})"
        return _failed(job_type, details | {"message": words}, "exhausted", "throttled")
    asked = _wait(error.retry_after)
    delay = throttle_delay(job.throttles) if asked is None else asked
    return Verdict("pending", "throttled", charge="refund", delay=delay, error=details)


def _spoken(time: timedelta) -> str:
    return str(timedelta(seconds=max(0, round(time.total_seconds()))))


def _wait(asked: Any) -> timedelta | None:
    """Return how long an error asks to wait. Other values mean None, as they must not hide the job's failure."""
    if isinstance(asked, int | float) and 0 <= asked <= LONGEST_WAIT.total_seconds():
        return timedelta(seconds=asked)  # as Retry-After has it
    return _bounded(asked) if isinstance(asked, timedelta) else None


def parked(error: BaseException) -> Verdict:
    """Return the verdict for a job of newer code, or of a missing pack: it waits for code that knows it."""
    return Verdict(
        "pending", "snoozed", charge="refund", delay=PARK, error=describe(error), message="parked: " + str(error)
    )


def _failed(job_type: JobType, details: dict[str, Any], reason: str, execution: str) -> Verdict:
    failure = Failure(reason, fingerprint(job_type.name, details), job_type.severity)
    return Verdict("failed", execution, error=details, failure=failure)


def fingerprint(job_type: str, error: dict[str, Any]) -> str:
    """Return one hash for failures of a kind: by job type, error type, place and words, without what varies."""
    from hashlib import md5

    words = _VARYING.sub("#", error.get("message") or "")[:200]
    return md5("\n".join([job_type, error["type"], error.get("at", ""), words]).encode()).hexdigest()  # noqa: S324
