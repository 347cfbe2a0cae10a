"""Package what a deploy uploads: a zip of each function's folder and of each layer's packages.

The same files give the same bytes and so the same key in the bucket: unchanged code keeps its name.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from signalbox_laptop.errors import DeployFailed

BUCKET = "signalbox-artifacts"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can hold
_SKIPPED = ("__pycache__",)


@dataclass(frozen=True, slots=True)
class Artifact:
    """Describe one zip, ready to be uploaded."""

    content: bytes

    @property
    def key(self) -> str:
        return f"{hashlib.sha256(self.content).hexdigest()}.zip"

    @property
    def uri(self) -> str:
        return f"s3://{BUCKET}/{self.key}"


def package_function(folder: Path) -> Artifact:
    """Zip a function's folder as it is; its imports come with its layers."""
    _require_folder(folder)
    return _zip((str(path.relative_to(folder)), path) for path in _files(folder))


def package_layer(folder: Path) -> Artifact:
    """Zip each Python package in the layer's folder, with its SQL, below `python/`; for all layers, the packs'
    packages.

    The layer of third-party dependencies has no packages and stays empty: on the laptop they are installed beside the
    interpreter that runs the functions, for its system and version rather than for Lambda's.
    """
    _require_folder(folder)
    packages = sorted(path.parent for pattern in ("*/__init__.py", "*/*/pack.py") for path in folder.glob(pattern))
    return _zip(
        (f"python/{path.relative_to(package.parent)}", path) for package in packages for path in _files(package)
    )


def _require_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise DeployFailed(f"the template names the folder {folder}, which does not exist: mend CodeUri or ContentUri")


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not any(part in _SKIPPED for part in path.parts):
            yield path


def _zip(files: Iterator[tuple[str, Path]]) -> Artifact:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, path in files:
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())
    return Artifact(content.getvalue())
