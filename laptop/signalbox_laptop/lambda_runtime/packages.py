"""Keep code and layers on disk: downloaded once from Lambda's location, unpacked below the stack's folder.

A folder has the content's hash in its name and appears whole or not at all. So it can be used unchecked, also by a
later start of the laptop.
"""

from __future__ import annotations

import base64
import io
import shutil
import threading
import uuid
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from signalbox_laptop.lambda_api.errors import LambdaFault

if TYPE_CHECKING:
    from signalbox_laptop.lambda_control.clients import LambdaClients
    from signalbox_laptop.lambda_control.function import Function


@dataclass(frozen=True, slots=True)
class Artefact:
    """Name what one process runs from: its task root (/var/task in Lambda) and its layers (/opt)."""

    task_root: Path
    layers: tuple[Path, ...]

    @property
    def python_path(self) -> list[str]:
        return [str(self.task_root), *(str(layer / "python") for layer in self.layers)]


class Artefacts:
    """Unpack code and layers below one stack's folder."""

    def __init__(self, clients: LambdaClients, home: Path) -> None:
        self._clients = clients
        self._home = home
        self._lock = threading.Lock()

    def of(self, function: Function) -> Artefact:
        # One lock for all: two environments that start at once must not unpack the same zip twice.
        with self._lock:
            return Artefact(self._code(function), tuple(self._layer(arn) for arn in function.package.layers))

    def _code(self, function: Function) -> Path:
        folder = self._home / "functions" / function.name / _short(function.package.sha256)
        return _unpacked(folder, lambda: self._download(f"function '{function.name}'", self._code_location(function)))

    def _code_location(self, function: Function) -> str:
        answer = self._clients.lambda_.get_function(FunctionName=function.name)
        return answer["Code"].get("Location", "")

    def _layer(self, arn: str) -> Path:
        layer_arn, _, version = arn.rpartition(":")
        name = layer_arn.rpartition(":")[2]
        content = self._clients.lambda_.get_layer_version(LayerName=name, VersionNumber=int(version))["Content"]
        # Moto restarts version numbers at each start of the laptop, so the number alone does not identify content.
        folder = self._home / "layers" / f"{name}-{version}-{_short(content['CodeSha256'])}"
        return _unpacked(folder, lambda: self._download(f"layer '{name}' version {version}", content["Location"]))

    def _download(self, what: str, location: str) -> bytes:
        place = urlsplit(location)
        bucket = (place.hostname or "").partition(".")[0]
        try:
            return self._clients.s3.get_object(Bucket=bucket, Key=place.path.lstrip("/"))["Body"].read()
        except ClientError as error:
            raise LambdaFault(
                f"the zip of {what} is not at {location or 'any location'}: {error}; was it deployed from an empty "
                "object, or by a moto without signalbox_laptop.moto.patch_functions?"
            ) from error


def _short(sha256: str) -> str:
    return base64.b64decode(sha256).hex()[:16]


def _unpacked(folder: Path, download: Callable[[], bytes]) -> Path:
    if folder.exists():
        return folder
    partial = folder.with_name(f".{folder.name}-{uuid.uuid4().hex}")
    try:
        _unpack(download(), partial)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def _unpack(content: bytes, folder: Path) -> None:
    folder.mkdir(parents=True)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for entry in archive.infolist():
            path = Path(archive.extract(entry, folder))
            mode = entry.external_attr >> 16 & 0o777
            if mode and path.is_file():
                path.chmod(mode | 0o400)
