"""A passport has the same bytes under the Python of Lambda, from the packages, as under the one that runs the tests."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.support.build import Built

pytest_plugins = ["tests.support.packages"]

# Compiles the contract's example, draws its code and exports it; prints the hash of each.
SCRIPT = """
import json, sys
sys.path[:0] = sys.argv[1:]
from datetime import UTC, datetime
from uuid import UUID
from passports.encoding.canonical import canonical, sha256
from passports.issuing.compilation import Fact, Source, compile_documents
from passports.issuing.documents import Issue
from passports.issuing.exports import SignedPassport, write_json_ld, write_pdf, write_xml
from passports.issuing.qr import draw_qr, qr_payload
from passports.issuing.signature import sign

RULES = {
    "language": "BPC-RULES-1",
    "values": [
        {"name": "mass_kg", "expr": ["sum", ["map", ["facts", "Battery"], ["get", ["item"], "mass_kg"]]]},
        {"name": "third", "expr": ["round", ["div", ["value", "mass_kg"], 3], 7]},
    ],
    "checks": [],
}
u = lambda n: UUID(f"00000000-0000-4000-8000-{n:012d}")
cells = [{"sku": f"Zoë {n}", "mass_kg": n / 7} for n in range(1, 40)]
data = [canonical(cell) for cell in cells]
facts = [Fact("Battery", f"battery:{n}", 1, one.decode(), one, sha256(one)) for n, one in enumerate(data)]
issue = Issue(u(1), u(2), u(3), u(4), datetime(2026, 3, 1, 8, tzinfo=UTC), "build-1")
found = compile_documents(issue, Source(facts, "BP-1", "{}", json.dumps(RULES)))
key = bytes(range(32))
passport = SignedPassport(u(5), 1, found.payload, found.receipt, sign(key, found.receipt_hash), "key", key)
png = draw_qr(qr_payload(u(5), found.payload_hash, found.proof_root_hash, found.receipt_hash))
made = [found.payload, found.proof, found.receipt, png, passport.signature]
made += [write(passport) for write in (write_json_ld, write_pdf, write_xml)]
print(json.dumps([sha256(one).hex() for one in made]))
"""


def hashes(*command: str, path: tuple[str, ...]) -> list[str]:
    ran = subprocess.run([*command, "-c", SCRIPT, *path], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found: list[str] = json.loads(ran.stdout)
    return found


def test_two_pythons_make_the_same_bytes(built_here: Built) -> None:
    layers = tuple(str(built_here.folder / f"{name}Layer" / "python") for name in ("Engine", "Packs", "Dependencies"))
    packaged = hashes(*built_here.python, path=(*layers, str(built_here.runtime)))
    assert packaged == hashes(sys.executable, path=tuple(filter(None, sys.path)))
