"""Build the functions' packages once for all benchmarks of a run, and lay them out as Lambda unpacks them."""

from __future__ import annotations

import atexit
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from signalbox_laptop.deploy.conditions import Decided
from signalbox_laptop.deploy.template import package, parameters_of, read_template, transform
from signalbox_laptop.lambda_runtime.packages import Artefact
from tests.support.build import ROOT, Built, build, layers_of

_SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:database"


@cache
def built() -> Built:
    """Build the packages in a folder that is removed with the process."""
    return build(folder() / "built")


@cache
def laid_out(function: str) -> Artefact:
    """Lay out a function of the template, by its logical id, with its layers; no pack is switched on."""
    template = read_template(ROOT / "template.yaml")
    package(template, ROOT)
    parameters = parameters_of(template, {"DatabaseSecretArn": _SECRET})
    resources = Decided(transform(template, parameters), parameters).resources()
    return built().lay_out(function, layers_of(resources, function), folder() / "laid-out")


@cache
def folder() -> Path:
    """Make a folder for what benchmarks write, removed with the process."""
    made = Path(mkdtemp(prefix="signalbox-bench-"))
    atexit.register(rmtree, made, ignore_errors=True)
    return made
