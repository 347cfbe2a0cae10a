"""Migrates the database of a DSN, with the packs that follow it, by this tree's code whatever else is on the path."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), *map(str, sorted(ROOT.glob("layers/*/")))]

from signalbox.packs import load_packs  # noqa: E402
from tests.support.schema import migrate  # noqa: E402

if __name__ == "__main__":
    dsn, *packs = sys.argv[1:]
    migrate(dsn, load_packs([pack for pack in packs if pack != "signalbox"]))
