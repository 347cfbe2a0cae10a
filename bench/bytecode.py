"""(d) What the layers' bytecode saves: the imports of a function, from layers built as `make build` builds them but for
this machine's interpreter, with their hash-based bytecode and without.
"""

from __future__ import annotations

import compileall
import os
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.function_process import ROOT, bare_environment
from bench.ratio import Ratio, alternate, timed

ROUNDS = 15
IMPORTS = "import signalbox.engine, signalbox.tasks.sweep_runs"
# As SAM dates each file in a layer: ordinary bytecode, which is checked by date, would never be valid.
SAM_EPOCH = 315532800


def measure(_: str) -> list[Ratio]:
    with TemporaryDirectory(prefix="signalbox-bench-") as folder:
        with_bytecode, without = Path(folder) / "with", Path(folder) / "without"
        _build(without)
        shutil.copytree(without, with_bytecode)
        compileall.compile_dir(
            with_bytecode, quiet=1, workers=0, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
        )
        ours, floor = alternate(ROUNDS, timed(lambda: _import(with_bytecode)), timed(lambda: _import(without)))
    return [Ratio("(d) the layers' imports with their bytecode", "without it", ours, floor)]


def _build(target: Path) -> None:
    """The dependencies for this interpreter, and the engine, without any bytecode."""
    requirements = ROOT / "layers" / "dependencies" / "requirements.txt"
    uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", "-q", "--require-hashes", "--no-deps"]
    where = ["--only-binary", ":all:", "--python", sys.executable, "--target", str(target)]
    subprocess.run([*uv, *where, "-r", str(requirements)], check=True)
    shutil.copytree(ROOT / "layers" / "engine" / "signalbox", target / "signalbox")
    for cache in target.rglob("__pycache__"):
        shutil.rmtree(cache)
    for path in target.rglob("*"):
        os.utime(path, (SAM_EPOCH, SAM_EPOCH))


def _import(layer: Path) -> None:
    # -S: nothing of the virtual environment; -B: a layer is read-only in Lambda, so no bytecode can be added there.
    environ = bare_environment() | {"PYTHONPATH": str(layer)}
    subprocess.run([sys.executable, "-S", "-B", "-c", IMPORTS], env=environ, check=True)
