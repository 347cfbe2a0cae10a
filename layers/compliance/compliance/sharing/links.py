"""Open a shared link: send who has it to the pack's file, and count the view. There is no log-in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from compliance.settings import ComplianceSettings
from compliance.sharing.link_tokens import hash_of
from signalbox.api.errors import RouteUnknown
from signalbox.api.request import HttpRequest
from signalbox.api.response import HttpResponse
from signalbox.invocation import Invocation, Resources
from signalbox.postgres.queries import load_queries

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

SQL = load_queries(__file__)
_SECONDS = 300  # that the address of the file works
_HEADERS = {"cache-control": "no-store", "referrer-policy": "no-referrer"}


def open_pack(
    resources: Resources, request: HttpRequest, in_path: Mapping[str, str], invocation: Invocation
) -> HttpResponse:
    """Redirect to the file; the token is in no log and no answer."""
    values = {"token_hash": hash_of(in_path["token"])}
    db = resources.database.connection()
    if (row := db.execute(SQL["view"], values).fetchone()) is not None:
        return HttpResponse(302, "", {"location": _address(resources, row[0]), **_HEADERS})
    if db.execute(SQL["exists"], values).fetchone() is None:
        raise RouteUnknown("no pack is shared by this link")
    return _gone(invocation.request_id)


def _address(resources: Resources, key: str) -> str:
    bucket = resources.settings_of(ComplianceSettings).bucket
    return _presigner().generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": key}, ExpiresIn=_SECONDS)


@cache
def _presigner() -> S3Client:
    """Make a client that signs as encrypted buckets of every region want it, and names the bucket's own host."""
    import boto3
    from botocore.config import Config

    return boto3.client("s3", config=Config(signature_version="s3v4", s3={"addressing_style": "virtual"}))


def _gone(request_id: str) -> HttpResponse:
    problem = {
        "type": "urn:signalbox:LinkGone",
        "title": "LinkGone",
        "status": 410,
        "detail": "the link has expired or was revoked: ask its sender for a new one",
        "request_id": request_id,
    }
    return HttpResponse(410, json.dumps(problem), {"content-type": "application/problem+json", **_HEADERS})
