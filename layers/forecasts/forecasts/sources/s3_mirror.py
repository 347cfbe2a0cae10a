"""List a bucket that anybody may read: NOAA's on AWS, or one of another service that speaks S3 (Google's, by endpoint).

Requests are not signed, so that it needs no permission. A listing costs a call per thousand keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from forecasts.errors import MirrorFailed
from forecasts.sources.mirror import LISTINGS_AT_ONCE, Entry, Span
from signalbox.http.client import CONNECT_SECONDS

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

REGION = "us-east-1"  # where all of NOAA's buckets are


class S3Mirror:
    """List one bucket."""

    def __init__(self, client: S3Client, bucket: str, endpoint: str | None = None) -> None:
        self._client, self._bucket = client, bucket
        # An endpoint is part of the address: without it a worker would look for the bucket at AWS.
        self._root = f"{endpoint.rstrip('/')}/{bucket}" if endpoint else f"s3://{bucket}"

    @property
    def name(self) -> str:
        return self._root

    def list_keys(self, span: Span) -> list[Entry]:
        entries = []
        for page in self._pages(Prefix=span.prefix, StartAfter=span.after):
            found = [Entry(one["Key"], one["Size"]) for one in page.get("Contents", ())]
            entries += [entry for entry in found if entry.key <= span.last]
            if found and found[-1].key > span.last:
                break
        return entries

    def list_folders(self, prefix: str, after: str) -> list[str]:
        pages = self._pages(Prefix=prefix, Delimiter="/", StartAfter=after)
        return [one["Prefix"].rstrip("/") for page in pages for one in page.get("CommonPrefixes", ())]

    def has_data(self, key: str) -> bool:
        """Say whether the file has data; unused, since these listings give sizes."""
        return any(entry.key == key and entry.size for entry in self.list_keys(Span(key)))

    def reference(self, key: str) -> str:
        return f"{self._root}/{key}"

    def _pages(self, **asked: str) -> Iterator[Any]:
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError

        given: dict[str, Any] = {name: value for name, value in asked.items() if value}
        try:
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, **given):
                # Any XML passes for an empty listing; every real listing has this field.
                if "IsTruncated" not in page:
                    raise MirrorFailed("what it answers is no listing")
                yield page
        except ClientError as error:
            raise MirrorFailed(str(error.response["Error"].get("Code", "refused"))) from None
        except (BotoCoreError, ResponseParserError) as error:
            raise MirrorFailed(type(error).__name__) from None


def connect(endpoint: str | None, read_seconds: float) -> S3Client:
    """Return a client that signs nothing; each run makes one, since that costs less than a listing."""
    import boto3
    from botocore import UNSIGNED
    from botocore.config import Config

    config = Config(
        signature_version=UNSIGNED,
        connect_timeout=CONNECT_SECONDS,
        read_timeout=read_seconds,
        retries={"mode": "standard", "total_max_attempts": 2},
        max_pool_connections=LISTINGS_AT_ONCE,
    )
    client: S3Client = boto3.client("s3", endpoint_url=endpoint, region_name=REGION, config=config)
    return client
