"""Make a bucket of the test's own in moto, behind a front that can fail."""

from __future__ import annotations

import uuid
from typing import Any

import boto3
from botocore.config import Config

from tests.support.s3_front import S3Front


class Bucket:
    """Own nothing: moto forgets the bucket when it ends."""

    def __init__(self, endpoint: str, front: S3Front) -> None:
        self.front, self.name = front, f"jobs-{uuid.uuid4().hex[:12]}"
        self.s3: Any = boto3.client("s3", endpoint_url=endpoint, config=Config(s3={"addressing_style": "path"}))
        self.s3.create_bucket(Bucket=self.name)

    def put(self, content: bytes | str, key: str = "") -> str:
        """Store an object; return its key."""
        key = key or f"in/{uuid.uuid4().hex}"
        self.s3.put_object(Bucket=self.name, Key=key, Body=content.encode() if isinstance(content, str) else content)
        return key

    def get(self, key: str) -> bytes:
        content: bytes = self.s3.get_object(Bucket=self.name, Key=key)["Body"].read()
        return content

    def keys(self) -> list[str]:
        return [entry["Key"] for entry in self.s3.list_objects_v2(Bucket=self.name).get("Contents", [])]
