"""Install the wheel in a fresh environment, with what it declares and nothing else.

No index is asked: the packages that the wheel declares, and those that these declare, are linked from the environment
that runs the tests.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement

from tests.support.template import ROOT

_UV = Path(sys.executable).with_name("uv")
_PACKAGES = Path(sysconfig.get_path("purelib"))


def build_wheel(folder: Path) -> Path:
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
    [wheel] = folder.glob("*.whl")
    return wheel


def install(wheel: Path, folder: Path, *extras: str, beside: Iterable[str] = ()) -> Path:
    """Return the folder of the new environment's commands. `beside` names packages that an application has."""
    _run(_UV, "venv", "-q", "--offline", "--python", sys.executable, folder)
    _run(_UV, "pip", "install", "-q", "--offline", "--no-deps", "--python", folder / "bin" / "python", wheel)
    [packages] = folder.glob("lib/python*/site-packages")
    [installed] = (one for one in distributions(path=[str(packages)]) if one.name == "signalbox")
    for one in _needed([*_required(installed, extras), *map(Requirement, beside)]):
        _link(one, packages)
    return folder / "bin"


def _needed(wanted: list[Requirement]) -> Iterable[Distribution]:
    found: dict[tuple[str, frozenset[str]], Distribution] = {}
    while wanted:
        requirement = wanted.pop()
        key = (requirement.name, frozenset(requirement.extras))
        if requirement.name != "signalbox" and key not in found:
            found[key] = distribution(requirement.name)
            wanted += _required(found[key], requirement.extras)
    return found.values()


def _required(package: Distribution, extras: Iterable[str]) -> list[Requirement]:
    asked = [{"extra": extra} for extra in ("", *extras)]
    given = map(Requirement, package.requires or [])
    return [one for one in given if one.marker is None or any(map(one.marker.evaluate, asked))]


def _link(package: Distribution, packages: Path) -> None:
    for name in {file.parts[0] for file in package.files or []} - {"..", "__pycache__"}:
        if not (packages / name).exists():
            (packages / name).symlink_to(_PACKAGES / name)


def _run(*words: object) -> None:
    done = subprocess.run(list(map(str, words)), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
