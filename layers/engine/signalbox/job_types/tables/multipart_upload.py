"""Write an object of S3 as its content comes: in parts where it is larger than one, and whole or not at all."""

from __future__ import annotations

import hashlib
import zlib
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from signalbox.aws.errors import s3_errors
from signalbox.packs.outcome import JobFailed

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

PART = 8 << 20  # S3 takes 10,000 parts of at least 5 MiB
_PACK = 64 << 10
_GZIP = 31


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """Describe what has been written."""

    bytes: int
    parts: int
    sha256: str  # of the object's bytes, in hexadecimal


class Upload:
    """Own an upload between the beginning and the end of a `with` block; `stored` is there after it."""

    stored: UploadedFile

    def __init__(
        self, s3: S3Client, bucket: str, key: str, *, gzip: bool = False, part: int = PART, tags: str = ""
    ) -> None:
        self._s3, self._part = s3, part
        self._where: dict[str, Any] = {"Bucket": bucket, "Key": key}
        self._tags: dict[str, Any] = {"Tagging": tags} if tags else {}
        self._what = f"s3://{bucket}/{key} can't be written"
        # Omit the time from its header, so that the same rows make the same object.
        self._packer = zlib.compressobj(wbits=_GZIP) if gzip else None
        self._raw, self._ready = bytearray(), bytearray()
        self._hash, self._bytes = hashlib.sha256(), 0
        self._id: str | None = None
        self._parts: list[Any] = []

    def write(self, content: bytes) -> None:
        self._raw += content
        if len(self._raw) >= _PACK:
            self._pack()
            if len(self._ready) >= self._part:
                self._send_part()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        if kind is None:
            try:
                self.stored = self._finish()
            except BaseException:
                self._abort()
                raise
        else:
            self._abort()

    def _pack(self) -> None:
        self._ready += self._raw if self._packer is None else self._packer.compress(self._raw)
        self._raw.clear()

    def _take(self) -> bytes:
        content = bytes(self._ready)
        self._ready.clear()
        self._hash.update(content)
        self._bytes += len(content)
        return content

    def _send_part(self) -> None:
        with s3_errors(self._what):
            if self._id is None:
                self._id = self._s3.create_multipart_upload(**self._where, **self._tags)["UploadId"]
            number = len(self._parts) + 1
            answer = self._s3.upload_part(**self._where, UploadId=self._id, PartNumber=number, Body=self._take())
        self._parts.append({"PartNumber": number, "ETag": answer["ETag"]})

    def _finish(self) -> UploadedFile:
        self._pack()
        if self._packer is not None:
            self._ready += self._packer.flush()
        if self._id is None:
            with s3_errors(self._what):
                self._s3.put_object(**self._where, **self._tags, Body=self._take())
            return UploadedFile(self._bytes, 1, self._hash.hexdigest())
        if self._ready:
            self._send_part()
        with s3_errors(self._what):
            self._s3.complete_multipart_upload(**self._where, UploadId=self._id, MultipartUpload={"Parts": self._parts})
        return UploadedFile(self._bytes, len(self._parts), self._hash.hexdigest())

    def _abort(self) -> None:
        """Abort the upload. If that fails, the bucket's lifecycle rule removes its parts."""
        if self._id is not None:
            with suppress(JobFailed), s3_errors(self._what):
                self._s3.abort_multipart_upload(**self._where, UploadId=self._id)
