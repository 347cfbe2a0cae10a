"""Find the packs of this repository, and what each brings for the laptop. `stand_ins/<pack>.py` has an Outside, for the
services that its tasks call; `samples/<pack>` has load_story and a query for what came of it, for `signalbox demo`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import signalbox_laptop
from signalbox_laptop.aws import client
from signalbox_laptop.home import StackState
from signalbox_laptop.project import ROOT
from signalbox_laptop.stand_ins.aws_services import AwsServices

if TYPE_CHECKING:
    import psycopg
    from mypy_boto3_cloudformation import CloudFormationClient

NAMES = sorted(path.parent.name for path in ROOT.glob("layers/*/*/pack.py"))
_ON = "on"


class OutsideOfPack(Protocol):
    """Declare what a pack finds outside of the stack."""

    addresses: Mapping[str, str]  # where each service takes instructions
    environment: Mapping[str, str]  # variables that lead the functions there and not to the real services

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def furnish(self, stack: str, moto: str) -> Mapping[str, str]:
        """Make what exists before the stack; return the parameters that name it."""


class StandIns:
    """Own the stand-ins of all packs, and those of AWS's services that packs share."""

    def __init__(self, moto: str) -> None:
        self._services = AwsServices(moto)
        self._packs: dict[str, OutsideOfPack] = {
            name: import_module(f"stand_ins.{name}").Outside() for name in NAMES if _brings("stand_ins", name)
        }

    def start(self) -> None:
        for one in self._all:
            one.start()

    def stop(self) -> None:
        for one in self._all:
            one.stop()

    @property
    def addresses(self) -> dict[str, str]:
        return {name: address for one in self._all for name, address in one.addresses.items()}

    @property
    def environment(self) -> dict[str, str]:
        return {name: value for one in self._all for name, value in one.environment.items()}

    def furnish(self, stack: str, moto: str, declared: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, str]:
        """Return the parameters of the template's packs; each pack is on unless the person says otherwise."""
        parameters: dict[str, str] = {}
        for name in NAMES:
            switch = f"{name.title().replace('_', '')}Pack"
            if switch in declared and given.get(switch, _ON) == _ON:
                furnished = self._packs[name].furnish(stack, moto) if name in self._packs else {}
                parameters |= {switch: _ON, **furnished}
        return parameters

    @property
    def _all(self) -> list[AwsServices | OutsideOfPack]:
        return [self._services, *self._packs.values()]


def load_stories(state: StackState, at: datetime) -> list[str]:
    """Load the sample data of each pack that the stack runs, and return the packs."""
    with_samples = [name for name in NAMES if _brings("samples", name)]
    return [name for name in with_samples if import_module(f"samples.{name}").load_story(state, at)]


def read_stories(connection: psycopg.Connection, packs: Iterable[str]) -> dict[str, list[str]]:
    """Return in a few lines what came of the sample data of the engine and of each of the packs."""
    places = {"signalbox": Path(signalbox_laptop.__file__).parent / "samples"}
    places |= {pack: ROOT / "layers" / pack / "samples" / pack for pack in packs}
    return {
        name: [line for (line,) in connection.execute((place / "story.sql").read_bytes())]
        for name, place in places.items()
    }


def outputs_of(stack: StackState) -> dict[str, str]:
    """Return the outputs of a stack that is up, for sample data to find its buckets."""
    cloudformation: CloudFormationClient = client("cloudformation", stack.endpoint)
    [described] = cloudformation.describe_stacks(StackName=stack.stack)["Stacks"]
    return {output["OutputKey"]: output["OutputValue"] for output in described.get("Outputs", [])}


def _brings(kind: str, pack: str) -> bool:
    """Say whether a pack has a module of this kind: one that calls nobody needs no stand-ins."""
    return (ROOT / "layers" / pack / kind).is_dir()
