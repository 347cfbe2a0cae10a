"""Read keys of GOES, the satellite: files by hour, named after the tenth of a second at which their scan began."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from forecasts.sources.observed import Part

_FILE = re.compile(r"OR_(?P<product>.+?)(-M\d+(?P<channel>C\d\d)?)?_G\d\d_s(?P<began>\d{14})_e\d{14}_c\d{14}\.nc")


@dataclass(frozen=True, slots=True)
class Goes:
    """Name the keys of one product."""

    product: str
    files_per_instant: int = 1  # a product with a file per channel is there when all of them are

    def folder(self, day: datetime) -> str:
        return f"{self.product}/{day:%Y/%j}/"

    def stem(self, instant: datetime) -> str:
        return f"{self.product}/{instant:%Y/%j/%H}/"

    def read(self, key: str) -> Part | None:
        found = _FILE.fullmatch(key.rpartition("/")[2])
        # A mesoscale product's file names end in its sector's number, which the folder's name leaves out.
        if found is None or not found["product"].startswith(self.product):
            return None
        began = _instant(found["began"])
        return None if began is None else Part(began, f"{found['product']}{found['channel'] or ''}")


def _instant(digits: str) -> datetime | None:
    """Read YYYYDDDHHMMSSt."""
    try:
        second = datetime.strptime(digits[:13], "%Y%j%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    return second + timedelta(milliseconds=100 * int(digits[13]))
