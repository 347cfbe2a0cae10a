"""Declare the engine's own pack, and load the packs that a stack names beside it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from signalbox.errors import SettingsRefused
from signalbox.job_types import JOB_TYPES
from signalbox.packs.pack import Pack
from signalbox.packs.registries import TaskRegistry
from signalbox.tasks import TASKS

ENGINE = Pack("signalbox", TASKS, Path(__file__).parent / "migrations", JOB_TYPES)


def load_packs(names: Sequence[str]) -> tuple[Pack, ...]:
    """Return the engine's pack and the named ones, in the order in which they migrate."""
    return (ENGINE, *(_load(name) for name in names))


def registry_of(names: Sequence[str]) -> TaskRegistry:
    """Return the tasks of the engine and of the named packs."""
    return TaskRegistry(task for pack in load_packs(names) for task in pack.tasks)


def _load(name: str) -> Pack:
    try:
        pack = import_module(f"{name}.pack").PACK
    except ModuleNotFoundError as error:
        if error.name not in (name, f"{name}.pack"):
            raise
        raise SettingsRefused(
            f"pack '{name}' is named in SIGNALBOX_PACKS but its layer is not attached to this function: "
            "attach the layer, or take the name out"
        ) from None
    if not isinstance(pack, Pack):
        raise SettingsRefused(f"pack '{name}': {name}.pack.PACK is not a signalbox.packs.pack.Pack")
    return pack
