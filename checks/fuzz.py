"""Send the HTTP API what its description allows, and what it forbids: `python -m checks.fuzz SCHEMATHESIS`.

`make fuzz` runs a stack of its own for it. An answer of 500 or above, or one that is not described, is a finding.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import urllib3

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
_SIGNALBOX = str(Path(sys.executable).with_name("signalbox"))


def main(schemathesis: str) -> int:
    with tempfile.TemporaryDirectory() as home:
        environ = {**os.environ, "SIGNALBOX_HOME": home}
        up = [_SIGNALBOX, "up", "--detach", "--json", "--port", "0", "--no-clock"]
        stack = json.loads(subprocess.run(up, env=environ, capture_output=True, check=True).stdout)
        try:
            return _fuzz(schemathesis, stack["api"], stack["token"], Path(home, "openapi.json"))
        finally:
            subprocess.run([_SIGNALBOX, "down"], env=environ, stdout=subprocess.DEVNULL, check=True)


def _fuzz(schemathesis: str, api: str, token: str, description: Path) -> int:
    bearer = f"Bearer {token}"
    description.write_bytes(urllib3.request("GET", f"{api}/openapi.json", headers={"authorization": bearer}).data)
    command = [
        str(Path(schemathesis).absolute()),
        "run",
        str(description),
        "--url",
        api,
        "--header",
        f"Authorization: {bearer}",
    ]
    options = ["--checks", CHECKS, "--phases", "coverage,fuzzing", "--max-examples", "20", "--no-color"]
    ran = subprocess.run([*command, *options], cwd=description.parent, capture_output=True, text=True, check=False)
    told = ran.stdout if ran.returncode else ran.stdout.partition("= SUMMARY =")[2].partition("Warnings:")[0]
    print("schemathesis:", told.replace(token, "TOKEN").strip("= \n"), ran.stderr)
    return ran.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
