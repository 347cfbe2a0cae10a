"""The status and code of an S3 error decide what a job raises."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from signalbox.aws.errors import s3_errors
from signalbox.packs.outcome import JobFailed, Permanent, RateLimited, Transient


def refusal(status: int, code: str) -> ClientError:
    answer = {"Error": {"Code": code, "Message": "words"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "GetObject")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (503, "SlowDown", RateLimited),
        (429, "TooManyRequests", RateLimited),
        (500, "InternalError", Transient),
        (408, "RequestTimeout", Transient),
        (400, "ExpiredToken", Transient),
        (403, "AccessDenied", Permanent),
        (404, "NoSuchKey", Permanent),
        (412, "PreconditionFailed", Permanent),
    ],
)
def test_refusal_is_classified_by_its_status_and_code(status: int, code: str, kind: type[JobFailed]) -> None:
    with (
        pytest.raises(kind, match=f"^object a can't be read: S3 answers {status} {code}"),
        s3_errors("object a can't be read"),
    ):
        raise refusal(status, code)


@pytest.mark.parametrize(("status", "code"), [(412, "PreconditionFailed"), (416, "InvalidRange")])
def test_an_object_that_has_changed_needs_a_new_job(status: int, code: str) -> None:
    with pytest.raises(Permanent, match=r"has changed .*; submit the job again"), s3_errors("object a"):
        raise refusal(status, code)


def test_no_answer_is_tried_again() -> None:
    with pytest.raises(Transient, match="S3 does not answer: EndpointConnectionError"), s3_errors("object a"):
        raise EndpointConnectionError(endpoint_url="http://127.0.0.1:1")


def test_an_error_of_the_job_itself_stays_what_it_is() -> None:
    with pytest.raises(KeyError), s3_errors("object a"):
        raise KeyError("a")
