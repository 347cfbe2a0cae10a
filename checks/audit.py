"""Ask the package index for known faults of what is pinned; a part of `make security`.

Not every index knows of faults. If this one gives no answer, the output says so and nothing fails: a line that begins
with "not checked" is neither good news nor bad.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
PATIENCE_SECONDS = 5
AT_ONCE = 16
_PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)

Pin = tuple[str, str]  # name and version


@dataclass(frozen=True, slots=True)
class Allowed:
    """Allow a fault that does no harm here, until a day."""

    package: str
    id: str
    reason: str
    until: date


@dataclass(frozen=True, slots=True)
class Fault:
    """Describe what the index knows of one version of a package."""

    package: str
    version: str
    ids: tuple[str, ...]  # one fault may have several names
    fixed_in: tuple[str, ...]

    def __str__(self) -> str:
        mended = f"; mended in {', '.join(self.fixed_in)}" if self.fixed_in else "; no version mends it yet"
        return f"{self.package} {self.version}: {' or '.join(self.ids)}{mended}"


def pinned(files: Iterable[Path]) -> dict[Pin, Path]:
    """Return each pinned version, with the first file that pins it."""
    found: dict[Pin, Path] = {}
    for path in files:
        for pin in _PIN.findall(path.read_text("utf-8")):
            found.setdefault(pin, path)
    return found


def read_allowed(path: Path) -> list[Allowed]:
    return [Allowed(**one) for one in tomllib.loads(path.read_text("utf-8")).get("allowed", [])]


def judge(faults: Iterable[Fault], allowed: Iterable[Allowed], today: date) -> Iterator[str]:
    """Return a line for each fault that is not or no longer allowed, and for each allowance that nothing needs."""
    known, needed = list(faults), set()
    by_name = {(one.package, one.id): one for one in allowed}
    for fault in known:
        found = [by_name[fault.package, name] for name in fault.ids if (fault.package, name) in by_name]
        needed |= set(found)
        if not found:
            yield str(fault)
        elif all(one.until <= today for one in found):
            yield f"{fault} (allowed until {found[0].until}: {found[0].reason})"
    for one in set(by_name.values()) - needed:
        yield f"{one.package}: {one.id} is allowed, and the pinned version has no such fault: take it out"


def ask(index: str, pin: Pin) -> list[Fault] | None:
    """Return the faults of one version, or None if the index does not say."""
    name, version = pin
    try:
        with urllib.request.urlopen(f"{index}/{name}/{version}/json", timeout=PATIENCE_SECONDS) as answer:  # noqa: S310
            told = json.load(answer)["vulnerabilities"]
        return [
            Fault(name, version, (one["id"], *one.get("aliases", [])), tuple(one.get("fixed_in", [])))
            for one in told
            if not one.get("withdrawn")
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def index_of(environ: Mapping[str, str]) -> str:
    """Return where the index answers questions about single versions: beside the list that pip installs from."""
    simple = environ.get("PIP_INDEX_URL") or _configured() or _pips_own()
    return re.sub(r"/simple/?$", "", simple) + "/pypi"


def main() -> int:
    files = [ROOT / "requirements.txt", ROOT / "requirements-uv.txt", *sorted(ROOT.glob("layers/*/requirements.txt"))]
    files += [
        ROOT / name
        for name in (
            "checks/requirements.txt",
            "tests/support/lambda_runtime/requirements.txt",
            "bench/peers/peers.txt",
        )
    ]
    pins = sorted(pinned(files))
    index = index_of(os.environ)
    if ask(index, pins[0]) is None:  # one question first, so that not all of hundreds wait in vain
        print(f"not checked: the package index does not say which faults it knows of ({len(pins)} pinned versions)")
        return 0
    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = dict(zip(pins, threads.map(lambda pin: ask(index, pin), pins), strict=True))
    return report(answers, read_allowed(ROOT / "checks" / "allowed.toml"), datetime.now(UTC).date())


def report(answers: Mapping[Pin, list[Fault] | None], allowed: Iterable[Allowed], today: date) -> int:
    """Print the findings; return 1 if there is any."""
    silent = [f"{name} {version}" for (name, version), faults in answers.items() if faults is None]
    if silent:
        print(f"not checked: {', '.join(silent)}")
    findings = sorted(judge((fault for faults in answers.values() for fault in faults or ()), allowed, today))
    for line in findings:
        print(f"fault: {line}")
    print(f"{len(answers) - len(silent)} of {len(answers)} pinned versions checked, {len(findings)} findings")
    return 1 if findings else 0


def _configured() -> str:
    asked = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def _pips_own() -> str:
    """Return pip's own index, so that no host need be named here."""
    asked = [sys.executable, "-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
