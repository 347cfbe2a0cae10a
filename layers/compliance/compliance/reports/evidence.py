"""Compare the files of a pack with what their rows say of them, and copy them into the pack's archive on the way.

Each file is read once, in small pieces: a pack may hold more than a worker has memory.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import closing, nullcontext
from os import SEEK_END
from typing import IO, Any, Literal
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

from compliance.reports.pack_obligations import Evidence
from signalbox.aws.bucket import Bucket
from signalbox.aws.errors import code_of, s3_errors

Fault = Literal["MISSING", "METADATA_MISMATCH", "HASH_MISMATCH"]
_PIECE = 1 << 20
_LONGEST_KEY = 1024  # bytes that S3 takes
_LONGEST_NAME = 200
_UNSAFE = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]')  # in the name of a file


def check_file(files: Bucket, file: Evidence, archive: ZipFile | None) -> Fault | None:
    """Return the first fault of a file, if any; copy what there is of it into the archive."""
    path = file.path or ""
    if not 0 < len(path.encode()) <= _LONGEST_KEY:
        return "MISSING"
    with s3_errors(path):
        found = _open(files, path)
        if found is None:
            return "MISSING"
        with closing(found["Body"]) as body:
            differs = (found["ContentLength"], found["ContentType"]) != (file.bytes, file.mime_type)
            if archive is None and (differs or not file.sha256):
                return "METADATA_MISMATCH" if differs else None
            sha256 = _read(body, archive, _entry(file, found["ContentLength"]))
    if differs:
        return "METADATA_MISMATCH"
    return "HASH_MISMATCH" if file.sha256 and sha256 != file.sha256.lower() else None


def _open(files: Bucket, path: str) -> Any:
    try:
        return files.s3.get_object(Bucket=files.name, Key=path)
    except Exception as error:
        if code_of(error) == "NoSuchKey":
            return None
        raise


def _read(body: Any, archive: ZipFile | None, entry: ZipInfo) -> str:
    """Read a file to its end, into the archive if there is one, and return its hash."""
    digest = hashlib.sha256()
    with nullcontext() if archive is None else archive.open(entry, "w") as copy:
        for piece in body.iter_chunks(_PIECE):
            digest.update(piece)
            if copy is not None:
                copy.write(piece)
    return digest.hexdigest()


def _entry(file: Evidence, size: int) -> ZipInfo:
    """Describe a file's place in the archive. Most kinds of evidence are packed already, so it is stored as it is."""
    name = _UNSAFE.sub("_", file.file_name or "file")[-_LONGEST_NAME:]
    entry = _dateless(f"evidence/{file.id}-{name}", ZIP_STORED)
    entry.file_size = size  # from which zipfile chooses the format's variant for large files
    return entry


def add_report(archive: ZipFile, pdf: bytes) -> None:
    """Put the pack's report into the archive."""
    archive.writestr(_dateless("audit-pack.pdf", ZIP_DEFLATED), pdf)


def _dateless(name: str, compression: int) -> ZipInfo:
    """Name an entry without a date of its own, so that the same content gives the same bytes."""
    entry = ZipInfo(name)
    entry.compress_type = compression
    entry.create_system, entry.external_attr = 3, 0o644 << 16
    return entry


def write_file(files: Bucket, key: str, file: IO[bytes], content_type: str) -> tuple[str, int]:
    """Upload a file from the disk; return its hash and size."""
    size = file.seek(0, SEEK_END)
    file.seek(0)
    sha256 = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    file.seek(0)
    with s3_errors(key):
        files.s3.put_object(Bucket=files.name, Key=key, Body=file, ContentType=content_type)
    return sha256, size
