"""Read and write whole objects of a bucket, for jobs whose files have room in memory."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from signalbox.aws.errors import code_of, s3_errors
from signalbox.packs.outcome import OutputFile

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_MISSING = frozenset({"NoSuchKey", "404"})


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Hold what S3 says of an object."""

    bytes: int
    content_type: str


@dataclass(frozen=True, slots=True)
class Bucket:
    """Reach a bucket. Errors name the object by its key, or as it is `called` where a key tells too much."""

    s3: S3Client
    name: str

    def read(self, key: str, most_bytes: int | None = None, called: str | None = None) -> bytes | None:
        """Return an object, or None where there is none; of a larger one no more than one byte above the bound."""
        with s3_errors(called or key):
            try:
                body = self.s3.get_object(Bucket=self.name, Key=key)["Body"]
                return body.read(None if most_bytes is None else most_bytes + 1)
            except Exception as error:
                if code_of(error) in _MISSING:
                    return None
                raise

    def facts(self, key: str, called: str | None = None) -> FileFacts | None:
        """Return an object's size and type, or None where there is none."""
        with s3_errors(called or key):
            try:
                head = self.s3.head_object(Bucket=self.name, Key=key)
            except Exception as error:
                if code_of(error) in _MISSING:
                    return None
                raise
        return FileFacts(head["ContentLength"], head["ContentType"])

    def write(self, key: str, data: bytes, content_type: str) -> OutputFile:
        """Write an object, and return what a job says of its files."""
        with s3_errors(key):
            self.s3.put_object(Bucket=self.name, Key=key, Body=data, ContentType=content_type)
        return OutputFile(key, hashlib.sha256(data).hexdigest(), len(data), content_type)
