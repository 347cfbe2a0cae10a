"""A pack is one folder, and few lines elsewhere name it."""

from __future__ import annotations

import re
import tomllib
from configparser import ConfigParser

import pytest

from signalbox.engine_pack import load_packs
from tests.support.template import PACKS, ROOT, source

each_pack = pytest.mark.parametrize("pack", PACKS)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]


@each_pack
def test_a_pack_has_its_template_its_page_its_events_and_its_tests(pack: str) -> None:
    events = {"events"} if load_packs([pack])[1].tasks else set()
    wanted = {pack, "template.yaml", "README.md", "tests"} | events
    assert wanted <= {path.name for path in (ROOT / "layers" / pack).iterdir()}


@each_pack
def test_the_tools_know_where_its_package_lies(pack: str) -> None:
    folder, package = f"layers/{pack}", f"layers/{pack}/{pack}"
    wheel = PROJECT["hatch"]["build"]["targets"]["wheel"]
    assert folder in wheel["dev-mode-dirs"]
    assert package not in wheel["packages"]  # it is deployed as a layer
    assert package in PROJECT["mypy"]["files"]
    assert folder in PROJECT["mypy"]["mypy_path"]
    assert folder in PROJECT["pytest"]["ini_options"]["pythonpath"]


@each_pack
def test_a_pack_imports_no_other_and_no_laptop(pack: str) -> None:
    rules = ConfigParser()
    rules.read(ROOT / ".importlinter")
    assert pack in rules["importlinter"]["root_packages"].split()
    assert f"({pack})" in rules["importlinter:contract:direction"]["layers"]


@each_pack
def test_root_names_each_pack_in_few_and_equal_lines(pack: str) -> None:
    text = (ROOT / "template.yaml").read_text("utf-8")
    naming = [line for line in text.splitlines() if re.search(rf"(?<!log ){pack}", line, re.IGNORECASE)]
    naming = [line for line in naming if "Outputs." not in line]
    assert len(naming) <= 15
    given = [
        one["Properties"]["Parameters"].keys()
        for one in source()["Resources"].values()
        if "Parameters" in one["Properties"]
    ]
    assert {len(keys) for keys in given} == {13}
