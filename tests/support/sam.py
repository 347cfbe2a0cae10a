"""Run SAM's command without questions or telemetry."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.template import ROOT


def sam_build(folder: Path, environ: dict[str, str], *names: str) -> subprocess.CompletedProcess[str]:
    """Run `sam build` for the template, or for the one resource that is named."""
    sam = Path(sys.executable).with_name("sam")
    return subprocess.run(
        [sam, "build", *names, "--template", ROOT / "template.yaml", "--build-dir", folder],
        cwd=folder.parent,
        env={**environ, "SAM_CLI_TELEMETRY": "0", "MAKELEVEL": "0", "MAKEFLAGS": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
