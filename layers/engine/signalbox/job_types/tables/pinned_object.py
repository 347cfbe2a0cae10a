"""Read an object of S3 as it was when the job began: every read names that version, and fails once it has changed.

Reads go in ranges and small blocks, so that neither a piece of work nor its memory grows with the object.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from signalbox.aws.errors import s3_errors

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

BLOCK = 64 << 10
# After the first range, which is the chunk, usually only the rest of one record is needed.
NEXT_RANGE = 1 << 20


@dataclass(frozen=True, slots=True)
class PinnedObject:
    """Name one content of one key."""

    bucket: str
    key: str
    etag: str
    size: int

    @staticmethod
    def find(s3: S3Client, bucket: str, key: str) -> PinnedObject:
        with s3_errors(f"s3://{bucket}/{key} can't be read"):
            head = s3.head_object(Bucket=bucket, Key=key)
        return PinnedObject(bucket, key, head["ETag"], head["ContentLength"])

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}/{self.key}"

    def read(self, s3: S3Client, offset: int = 0, first: int | None = None) -> Iterator[bytes]:
        """Return its bytes from the offset on. The first range has the length `first`, or reaches to the end."""
        length = self.size if first is None else first
        while offset < self.size:
            end = min(offset + length, self.size)
            yield from self._read_range(s3, offset, end)
            offset, length = end, NEXT_RANGE

    def _read_range(self, s3: S3Client, offset: int, end: int) -> Iterator[bytes]:
        with s3_errors(f"{self.url} can't be read"):
            answer = s3.get_object(
                Bucket=self.bucket, Key=self.key, IfMatch=self.etag, Range=f"bytes={offset}-{end - 1}"
            )
            with closing(answer["Body"]) as body:
                yield from body.iter_chunks(BLOCK)
