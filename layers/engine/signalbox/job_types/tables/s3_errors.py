"""What an error of S3 means for a job: whether another attempt may get further. Told by status and code, not words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from signalbox.packs.outcome import JobFailed, Permanent, RateLimited, Transient

# Refusals that pass: credentials that are just being renewed, and a clock that is.
_PASSING = {"ExpiredToken", "ExpiredTokenException", "RequestTimeTooSkewed", "RequestExpired"}


@contextmanager
def s3_errors(what: str) -> Iterator[None]:
    """Raises what a job raises in the place of what the client does."""
    from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

    try:
        yield
    except ClientError as error:
        raise _judge(what, error.response) from None
    except ParamValidationError as error:
        raise Permanent(f"{what}: S3 takes no such name: {' '.join(str(error).split())}") from None
    except BotoCoreError as error:
        raise Transient(f"{what}: S3 does not answer: {type(error).__name__}") from None


def _judge(what: str, answer: Any) -> JobFailed:
    status, code = answer["ResponseMetadata"]["HTTPStatusCode"], answer["Error"].get("Code", "")
    told = f"{what}: S3 answers {status}" + (f" {code}" if code != str(status) else "")  # a HEAD's code is its status
    if code == "SlowDown" or status == 429:
        return RateLimited(told)
    if status >= 500 or status == 408 or code in _PASSING:
        return Transient(told)
    if status in (412, 416):
        return Permanent(f"{told}: the object has changed since the job began; submit the job anew")
    if status == 403:
        # A policy does not mend itself within the minutes of the retries; once it is mended, a redrive goes on.
        return Permanent(f"{told}: let the worker's role do it, then redrive the dead letter")
    if status == 404:
        return Permanent(f"{told}: there is no such object, or bucket")
    return Permanent(told)
