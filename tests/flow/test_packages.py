"""Each function runs from its build and nothing else: no site-packages, no repository, the runtime's boto3.

The interpreter is of the runtime's version where this machine has one; the tests' summary names it. The database is
empty at first: the migrator migrates it, from its own package.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from samples.forecasts import load_story
from signalbox.engine_pack import registry_of
from signalbox.testing.aws import AwsStandIn
from signalbox.testing.databases import new_database
from signalbox.testing.stage import as_url
from signalbox_laptop.aws import REGION, client
from signalbox_laptop.home import StackState
from signalbox_laptop.lambda_control.clients import connect
from signalbox_laptop.lambda_control.functions import Functions
from signalbox_laptop.lambda_control.settings import ServiceSettings
from signalbox_laptop.lambda_runtime.packages import Artefact
from signalbox_laptop.lambda_runtime.variables import Sandbox, variables_of
from stand_ins.forecasts import Outside
from tests.contract.test_late_imports import COMPLIANCE, ENGINE, FORECASTS, PASSPORTS
from tests.support.build import Built, layers_of
from tests.support.deployed import deploy_to, moto
from tests.support.events import EVENTS, function_of
from tests.support.packaged_function import PackagedFunction
from tests.support.template import FUNCTION, PACKS, ROOT, VARIANTS, deployed, source

pytest_plugins = ["tests.support.packages"]

VARIANT, STACK = "everything", "signalbox"
FUNCTIONS = list(deployed(VARIANT).of(FUNCTION))
REGISTRY = registry_of(PACKS)
LATE = [names for room in (ENGINE, COMPLIANCE, FORECASTS, PASSPORTS) for names in room.values()]
# The story's instant: there is something to do then for each task.
AT = datetime(2026, 1, 5, 2, 30, tzinfo=UTC)
MIGRATOR, MIGRATE = "MigratorFunction", EVENTS["migrate_apply"]
# Imports everything in the packages of the functions' own, and what they import late; prints where each module is from.
# What runs a Django project's tasks needs Django, which comes with the project's own pack.
IMPORT_ALL = """
import json, sys
from importlib import import_module
from pathlib import Path
opt, runtime, *late = sys.argv[1:]
sys.path[:0] = [f"{opt}/python", runtime]
for package in ("signalbox", *sorted(path.parent.name for path in Path(opt, "python").glob("*/pack.py"))):
    for path in sorted(Path(opt, "python", package).rglob("*.py")):
        if path.parent.name == "django":
            continue
        import_module(".".join(path.relative_to(f"{opt}/python").with_suffix("").parts).removesuffix(".__init__"))
for name in late:
    import_module(name)
print(json.dumps({name: module.__file__ for name, module in sys.modules.items() if getattr(module, "__file__", None)}))
"""


@dataclass(frozen=True)
class World:
    """Hold what is around the functions: AWS's stand-in with the deployed template, outside services, a database."""

    built: Built
    home: Path
    settings: ServiceSettings

    def lay_out(self, function: str) -> Artefact:
        return self.built.lay_out(function, layers_of(deployed(VARIANT).resources, function), self.home)

    def start(self, function: str) -> PackagedFunction:
        artefact, folder = self.lay_out(function), self.home / f"{function}-tmp"
        folder.mkdir()
        name = deployed(VARIANT).of(FUNCTION)[function]["FunctionName"]["Fn::Sub"].replace("${AWS::StackName}", STACK)
        known = Functions(connect(self.settings), self.settings).function(name)
        variables = variables_of(known, Sandbox(artefact=artefact, log_stream="one", folder=folder), self.settings)
        return PackagedFunction(self.built.command(artefact), artefact.task_root, variables)


@pytest.fixture(scope="module")
def world(server: str, built_here: Built, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    home, outside = tmp_path_factory.mktemp("packages"), Outside()
    outside.start()
    with moto(home) as endpoint, new_database(server) as dsn, AwsStandIn() as invokes:
        secret = client("secretsmanager", endpoint).create_secret(Name="database", SecretString=as_url(dsn))["ARN"]
        log_ins = dict.fromkeys(("DatabaseSecretArn", "WriterSecretArn", "ReaderSecretArn"), secret)
        given = {**VARIANTS[VARIANT], **outside.furnish(STACK, endpoint), **log_ins, "MakeLogIns": "off"}
        deploy_to(endpoint, ROOT / "template.yaml", given)
        # What one function hands to another is kept, and not run.
        around = {"AWS_ENDPOINT_URL_LAMBDA": invokes.url, **outside.environment}
        settings = ServiceSettings(
            moto_endpoint=endpoint, public_endpoint=endpoint, home=home, extra_environment=around
        )
        world = World(built_here, home, settings)
        migrator = world.start(MIGRATOR)
        assert migrator.fault_of(MIGRATE) is None
        migrator.close()
        state = StackState(STACK, endpoint, dsn, REGION, None, None, 0, "", outside.addresses)
        assert load_story(state, AT)
        yield world
    outside.stop()


def events_of(function: str) -> list[str]:
    folder = Path(source()["Resources"][function]["Properties"]["CodeUri"]).name
    return [name for name, event in EVENTS.items() if function_of(event, REGISTRY) == folder]


@pytest.mark.parametrize("function", [name for name in FUNCTIONS if name != MIGRATOR])
def test_a_function_serves_each_of_its_events_from_its_package_alone(world: World, function: str) -> None:
    running = world.start(function)
    faults = {name: running.fault_of(EVENTS[name]) for name in events_of(function)}
    running.close()

    assert faults
    assert {name: fault for name, fault in faults.items() if fault} == {}


def test_every_import_comes_from_the_layers_or_the_runtime(world: World) -> None:
    artefact = world.lay_out("ApiFunction")  # which alone has every layer
    (opt,), late = artefact.layers, sorted(set().union(*LATE))
    done = subprocess.run(
        [*world.built.python, "-c", IMPORT_ALL, opt, world.built.runtime, *late],
        env={},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    files = json.loads(done.stdout)
    standard = Path(files["json"]).parents[1]
    ours = (str(opt), str(world.built.runtime))

    assert {"signalbox.app", "forecasts.pack", "stripe", "boto3", "jwt", "cryptography"} <= set(files)
    assert [name for name, file in files.items() if not file.startswith(ours) and "site-packages" in file] == []
    assert [name for name, file in files.items() if not file.startswith((*ours, str(standard)))] == []
