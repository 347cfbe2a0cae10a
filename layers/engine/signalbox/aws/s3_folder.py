"""Empty a folder of a bucket: all versions of all objects whose keys begin with its name and a slash.

The slash matters: without it `runs/1` would also match `runs/10`. A folder without a name is refused, because it would
be the whole bucket.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from signalbox.aws.errors import unavailable
from signalbox.budget import Budget
from signalbox.errors import FolderKept, FolderRefused

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef

PAGE = 1000  # as many as S3 lists and deletes in one call


@dataclass(frozen=True, slots=True)
class Folder:
    """Name a folder, without the slash at its end."""

    name: str

    @staticmethod
    def of(prefix: str | None) -> Folder:
        name = (prefix or "").rstrip("/")
        if not name.strip():
            raise FolderRefused(f"storage_prefix {prefix!r} is not a folder: it would match the whole bucket")
        return Folder(name)

    @property
    def prefix(self) -> str:
        return f"{self.name}/"


def empty(s3: S3Client, bucket: str, folder: Folder, budget: Budget) -> bool:
    """Return True once S3 lists nothing more in the folder, and False where the budget ended first."""
    before: list[ObjectIdentifierTypeDef] = []
    while page := _list(s3, bucket, folder):
        if page == before:
            raise FolderKept(
                f"S3 reports that it has deleted {len(page)} objects in {folder.prefix}, and lists them still"
            )
        if budget.spent:
            return False
        _delete(s3, bucket, folder, page)
        before = page
    return True


def _list(s3: S3Client, bucket: str, folder: Folder) -> list[ObjectIdentifierTypeDef]:
    """Return one page of versions and delete markers. A bucket without versioning has one version of each object."""
    with unavailable(f"{folder.prefix} can't be listed", FolderKept):
        answer = s3.list_object_versions(Bucket=bucket, Prefix=folder.prefix, MaxKeys=PAGE)
    entries = [*answer.get("Versions", []), *answer.get("DeleteMarkers", [])]
    if strangers := [entry["Key"] for entry in entries if not entry["Key"].startswith(folder.prefix)]:
        raise FolderRefused(
            f"S3 lists {strangers[0]!r} in {folder.prefix}, where it does not belong: nothing was deleted"
        )
    return [{"Key": entry["Key"], "VersionId": entry["VersionId"]} for entry in entries]


def _delete(s3: S3Client, bucket: str, folder: Folder, page: Sequence[ObjectIdentifierTypeDef]) -> None:
    with unavailable(f"nothing in {folder.prefix} can be deleted", FolderKept):
        answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": page, "Quiet": True})
    if errors := answer.get("Errors", []):
        first = errors[0]
        raise FolderKept(
            f"{len(errors)} of {len(page)} objects in {folder.prefix} were not deleted, "
            f"the first, {first.get('Key')!r}, for {first.get('Code')}"
        )
