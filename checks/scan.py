"""Check the templates against checkov's policies: `python -m checks.scan CHECKOV`, a part of `make security`.

checkov passes a template that it can't read, and it reads no merged keys. So it is given ours with all of that written
out, and a template that it has not read, or found nothing in to check, is a finding.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from signalbox_laptop.deploy.template import read_template

ROOT = Path(__file__).parent.parent


TEMPLATES = [path for pattern in ("*", "stacks/*", "layers/*/*") for path in sorted(ROOT.glob(f"{pattern}.yaml"))]


def main(checkov: str) -> int:
    """Print what is found in each template; 1 if anything is."""
    return max(_scanned(checkov, template) for template in TEMPLATES)


def _scanned(checkov: str, template: Path) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "template.json")
        path.write_text(json.dumps(read_template(template)), "utf-8")
        told = scan(checkov, path)
    findings = list(judge(told))
    for line in findings:
        print(line)
    print(
        f"checkov: {template.relative_to(ROOT)}: {{passed}} passed, {{failed}} failed, {{skipped}} passed over".format(
            **told.get("summary", told)
        )
    )
    return 1 if findings else 0


def scan(checkov: str, path: Path) -> dict[str, Any]:
    """Return what checkov says of one template."""
    asked = [checkov, "--config-file", str(ROOT / "checks" / "checkov.yaml"), "--file", str(path)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    try:
        told: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"checkov gave no answer: {done.stderr.strip() or done.stdout.strip()}") from None
    return told


def judge(told: Mapping[str, Any]) -> Iterator[str]:
    """Return a line for each check that failed, and one if nothing was checked at all."""
    summary, results = told.get("summary", {}), told.get("results", {})
    if summary.get("parsing_errors") or not summary.get("passed"):
        yield "checkov has not read the template"
    for check in results.get("failed_checks", []):
        yield f"{check['check_id']}: {check['resource']}: {check['check_name']}"


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
