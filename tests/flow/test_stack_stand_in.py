"""The laptop's moto ends with its owner, and still needs our additions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import urllib3

from signalbox_laptop.errors import LaptopError
from signalbox_laptop.moto.process import MotoProcess
from signalbox_laptop.processes import wait_for_end
from signalbox_laptop.project import ROOT

# Each says True as long as its lesson is needed; moto is imported elsewhere, since it changes what it finds.
UNTAUGHT = {
    "a layer's reference is no ARN": """
        from moto.awslambda.models import LayerVersion
        print(not hasattr(LayerVersion, "physical_resource_id"))
    """,
    "AWS::NoValue stays in a list": """
        from moto.cloudformation.parsing import clean_json
        print(clean_json([{"Ref": "AWS::NoValue"}], {"AWS::NoValue": None}) == [None])
    """,
    "an error names no resource": """
        from moto.cloudformation.parsing import parse_and_create_resource
        try:
            parse_and_create_resource("Nightly", {"Type": "AWS::IAM::Role"}, {"AWS::StackName": "s"}, "1", "r")
        except Exception as error:
            print("Nightly" not in str(error))
    """,
    "a template in JSON is read as YAML": """
        from moto.cloudformation.models import Stack
        import json
        json.loads = None
        print(Stack.parse_template('{"Resources": {}}') == {"Resources": {}})
    """,
    "a nested stack has outputs": """
        from moto.cloudformation.models import Stack
        print(not hasattr(Stack, "get_cfn_attribute"))
    """,
}


@pytest.mark.parametrize("lesson", UNTAUGHT)
def test_moto_still_has_to_be_taught_that(lesson: str) -> None:
    script = "\n".join(line.removeprefix(" " * 8) for line in UNTAUGHT[lesson].splitlines())
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said == "True\n"


def test_it_ends_when_its_owner_is_killed(tmp_path: Path) -> None:
    script = f"""
from pathlib import Path
from signalbox_laptop.moto.process import MotoProcess
print(MotoProcess(Path({str(tmp_path)!r})).start(), flush=True)
input()
"""
    owner = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    with owner:
        assert owner.stdout is not None
        endpoint = owner.stdout.readline().strip()
        (moto,) = psutil.Process(owner.pid).children()
        assert urllib3.request("GET", f"{endpoint}/moto-api/data.json").status == 200
        owner.kill()
    assert wait_for_end(moto, 10)


def test_one_that_can_not_start_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(LaptopError, match=r"moto did not start: .*moto\.log"):
        MotoProcess(tmp_path).start()
