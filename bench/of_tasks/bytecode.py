"""(d) Measure what the layers' bytecode saves: the imports of a function, from layers as they are built for this
machine, with their hash-based bytecode and without.
"""

from __future__ import annotations

import shutil
import subprocess

from bench.ratio import Ratio, alternate, timed
from bench.stage.function_process import bare_environment
from bench.stage.packages import built, folder, laid_out

ROUNDS = 15
IMPORTS = "import sys; sys.path[:0] = sys.argv[1:]; import signalbox.app, signalbox.tasks.sweep_runs"


def measure(_: str) -> list[Ratio]:
    (opt,) = laid_out("ArchiverFunction").layers
    without = folder() / "without-bytecode"
    shutil.copytree(opt, without, ignore=shutil.ignore_patterns("__pycache__"))
    ours, floor = alternate(ROUNDS, timed(lambda: _import(str(opt))), timed(lambda: _import(str(without))))
    return [Ratio("(d) the layers' imports with their bytecode", "without it", ours, floor)]


def _import(opt: str) -> None:
    subprocess.run([*built().python, "-c", IMPORTS, f"{opt}/python"], env=bare_environment(), check=True)
