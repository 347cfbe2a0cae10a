"""The page shows the code that verifies a passport, and the settings that the pack reads."""

from __future__ import annotations

import re
import tomllib

from passports.settings import PassportSettings
from tests.support.template import ROOT

PACK = ROOT / "layers/passports"
PAGE = (PACK / "README.md").read_text("utf-8")


def test_the_page_shows_the_code_that_the_tests_run() -> None:
    [shown] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert shown == (PACK / "tests/support/verify_passport.py").read_text("utf-8")


def test_without_a_setting_the_build_is_the_projects_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert PassportSettings.read({}).build_id == project["version"]
