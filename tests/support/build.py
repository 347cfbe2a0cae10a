"""Run `make build` for this machine: the same recipes with another platform, so that their results run here.

The interpreter is of the runtime's own version where this machine has one, and else the one that runs this: the layers
are built for it then. What SAM does between recipes and upload (dates of 1980, layers merged below /opt) is done here
by `lay_out`.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from signalbox_laptop.deploy.template import read_template
from signalbox_laptop.errors import DeployFailed
from signalbox_laptop.lambda_runtime.packages import Artefact
from tests.support import lambda_runtime

ROOT = Path(__file__).resolve().parents[2]
_MAKEFILE = ROOT / "layers" / "Makefile"
_BIN = Path(sys.executable).parent
# As SAM dates each file in a zip: bytecode that is checked by date would never be valid.
_SAM_EPOCH = 315532800
_PLATFORMS = {
    ("Linux", "x86_64"): "x86_64-manylinux_2_28",
    ("Linux", "aarch64"): "aarch64-manylinux_2_28",
    ("Darwin", "arm64"): "aarch64-apple-darwin",
    ("Darwin", "x86_64"): "x86_64-apple-darwin",
}


@dataclass(frozen=True, slots=True)
class Interpreter:
    """Name the Python that runs a package here, and its version as far as wheels care."""

    path: Path
    version: str

    @staticmethod
    def like_lambdas() -> Interpreter:
        """Return a Python of the runtime's version if this machine has one; else the current one."""
        wanted = runtime_version()
        asked = [str(_BIN / "uv"), "python", "find", "--no-project", "--no-python-downloads", f"cpython@{wanted}"]
        # The variable is for pyenv, whose shims run nothing while no version is named.
        environ = {**os.environ, "PYENV_VERSION": wanted}
        found = subprocess.run(asked, env=environ, capture_output=True, text=True, check=False)
        if found.returncode == 0:
            return Interpreter(Path(found.stdout.strip()), wanted)
        return Interpreter(Path(sys.executable), f"{sys.version_info.major}.{sys.version_info.minor}")


@dataclass(frozen=True, slots=True)
class Built:
    """Hold a folder for each function and layer, by logical id, and one with what the runtime itself brings."""

    folder: Path
    interpreter: Interpreter

    @property
    def runtime(self) -> Path:
        return self.folder / "LambdaRuntime" / "python"

    def lay_out(self, function: str, layers: tuple[str, ...], into: Path) -> Artefact:
        """Unpack the function as Lambda does, its layers in order. Those with the same layers share one /opt. Link
        rather than copy: nothing is ever written there."""
        task, opt = into / function, into / "-".join(("opt", *layers))
        _unpack(self.folder / function, task)
        if not opt.exists():
            for layer in layers:
                _unpack(self.folder / layer, opt)
        return Artefact(task, (opt,))

    def command(self, artefact: Artefact) -> tuple[str, ...]:
        """Return the command that starts the function; its handler is to follow."""
        (opt,) = artefact.layers
        bootstrap = Path(lambda_runtime.__file__).with_name("bootstrap.py")
        return (*self.python, str(bootstrap), str(artefact.task_root), str(opt), str(self.runtime))

    @property
    def python(self) -> tuple[str, ...]:
        """Return a Python that finds only its standard library, and nothing installed beside it or named around it.
        It writes no bytecode, since in Lambda it could not."""
        return (str(self.interpreter.path), "-I", "-S", "-B")


def build(folder: Path) -> Built:
    """Run the recipe of each function and layer of the template, and that of the runtime, a few at a time."""
    interpreter = Interpreter.like_lambdas()
    template = read_template(ROOT / "template.yaml")["Resources"]
    recipes = {name: recipe for name, resource in template.items() if (recipe := _recipe(resource))}
    recipes["LambdaRuntime"] = (Path(lambda_runtime.__file__).parent, _MAKEFILE)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = [pool.submit(_make, name, *recipe, folder, interpreter.version) for name, recipe in recipes.items()]
        for one in made:
            one.result()
    return Built(folder, interpreter)


def runtime_version() -> str:
    """Return the recipes' version of Python."""
    found = re.search(r"^RUNTIME := (.+)$", _MAKEFILE.read_text(), re.MULTILINE)
    if found is None:
        raise DeployFailed(f"{_MAKEFILE} does not say which Python it builds for: RUNTIME := 3.13")
    return found[1]


def layers_of(resources: Mapping[str, Any], function: str) -> tuple[str, ...]:
    """Return a function's layers by their logical ids in the template, without the hash that SAM added."""
    layers = resources[function]["Properties"].get("Layers", [])
    return tuple(re.sub(r"[0-9a-f]{10}$", "", layer["Ref"]) for layer in layers)


def _recipe(resource: Mapping[str, Any]) -> tuple[Path, Path] | None:
    """Return the folder to build, and the Makefile that does it."""
    metadata, properties = resource.get("Metadata", {}), resource.get("Properties", {})
    if metadata.get("BuildMethod") != "makefile":
        return None
    source = properties.get("CodeUri") or properties["ContentUri"]
    return ROOT / source, ROOT / metadata["ContextPath"] / "Makefile"


def _make(name: str, source: Path, makefile: Path, folder: Path, version: str) -> None:
    """Build in a copy, as SAM does: recipes may tidy up where they work."""
    scratch, target = folder / ".scratch" / name, folder / name
    shutil.copytree(source, scratch)
    target.mkdir(parents=True)
    told = [f"ARTIFACTS_DIR={target}", f"RUNTIME={version}", f"PLATFORM={_platform()}"]
    # Nothing of a make around this one.
    around = {"MAKELEVEL": "0", "MAKEFLAGS": ""}
    environ = {**os.environ, **around, "PATH": f"{_BIN}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    done = subprocess.run(
        ["make", "-f", makefile, f"build-{name}", *told],
        cwd=scratch,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise DeployFailed(f"{name} can't be built: {done.stderr.strip()}")


def _platform() -> str:
    here = (platform.system(), platform.machine())
    if here not in _PLATFORMS:
        raise DeployFailed(f"layers can't be built for {' '.join(here)}: name its wheels in tests/support/build.py")
    return _PLATFORMS[here]


def _unpack(built: Path, into: Path) -> None:
    shutil.copytree(built, into, copy_function=_link, dirs_exist_ok=True)


def _link(source: str, target: str) -> None:
    Path(target).unlink(missing_ok=True)  # a later layer's file takes the place of an earlier one's
    os.utime(source, (_SAM_EPOCH, _SAM_EPOCH))
    os.link(source, target)
