"""Store lines of JSON in S3's cold classes: compressed, with a checksum that S3 verifies, and never overwritten.

Objects in the cold classes can't be read. So the metadata holds a hash of the lines, apart from how they are
compressed: after a crash it shows whether an object that is already there is ours or something else.
"""

from __future__ import annotations

import gzip
import hashlib
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from signalbox.aws.errors import code_of, unavailable
from signalbox.errors import ArchiveRefused, ArchiveUnavailable

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.literals import StorageClassType

LINES_SHA256 = "lines-sha256"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """Describe an object as S3 reports it."""

    bytes: int
    sha256: str  # in Base64
    lines_sha256: str


@dataclass(frozen=True, slots=True)
class ColdStorage:
    """Store objects in one bucket and one storage class."""

    s3: S3Client
    bucket: str
    storage_class: StorageClassType

    def store(self, key: str, lines: Sequence[str]) -> StoredObject:
        """Store the lines, and return once they are there. The same lines under the same key are stored once."""
        content = "".join(f"{line}\n" for line in lines).encode()
        lines_sha256 = hashlib.sha256(content).hexdigest()
        if (found := self._find(key)) is None:
            return self._put(key, content, lines_sha256)
        if not found.sha256 or found.lines_sha256 != lines_sha256:
            raise ArchiveRefused(
                f"object {key} in bucket {self.bucket} holds other records than those planned for it: they were "
                "changed since, or another database wrote it; move it away, and run the task again"
            )
        return found

    def _put(self, key: str, content: bytes, lines_sha256: str) -> StoredObject:
        """Send the object, and ask S3 what has arrived."""
        # Omit the time of compression, which gzip would add.
        body = gzip.compress(content, mtime=0)
        sent = StoredObject(len(body), b64encode(hashlib.sha256(body).digest()).decode(), lines_sha256)
        self._send(key, body, sent)
        if (found := self._find(key)) != sent:
            raise ArchiveUnavailable(f"object {key} in bucket {self.bucket} is {found}, and was sent as {sent}")
        return sent

    def _send(self, key: str, body: bytes, sent: StoredObject) -> None:
        with unavailable(f"bucket {self.bucket} can't store object {key}", ArchiveUnavailable):
            self.s3.put_object(
                Bucket=self.bucket,
                Key=key,
                Body=body,
                StorageClass=self.storage_class,
                ContentType="application/gzip",
                # S3 refuses a body with another checksum.
                ChecksumAlgorithm="SHA256",
                ChecksumSHA256=sent.sha256,
                Metadata={LINES_SHA256: sent.lines_sha256},
            )

    def _find(self, key: str) -> StoredObject | None:
        try:
            head = self.s3.head_object(Bucket=self.bucket, Key=key, ChecksumMode="ENABLED")
        except Exception as error:
            if code_of(error) == "404":  # a HEAD has no body to say more
                return None
            with unavailable(f"bucket {self.bucket} can't describe object {key}", ArchiveUnavailable):
                raise
            raise  # an error of another kind
        return StoredObject(
            head["ContentLength"], head.get("ChecksumSHA256", ""), head["Metadata"].get(LINES_SHA256, "")
        )
