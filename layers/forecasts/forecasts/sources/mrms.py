"""Read keys of MRMS, the radar mosaic: files by day, one every two minutes, named after their second."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from forecasts.sources.observed import Part

_INSTANT = re.compile(r"(\d{8}-\d{6})\.grib2\.gz")


@dataclass(frozen=True, slots=True)
class Mrms:
    """Name the keys of one product at one level, such as CONUS/PrecipRate_00.00."""

    product: str
    files_per_instant: int = 1

    def folder(self, day: datetime) -> str:
        return f"{self.product}/{day:%Y%m%d}/"

    def stem(self, instant: datetime) -> str:
        return f"{self.folder(instant)}{self._begin}{instant:%Y%m%d-%H}"

    def read(self, key: str) -> Part | None:
        name = key.rpartition("/")[2]
        found = _INSTANT.fullmatch(name.removeprefix(self._begin)) if name.startswith(self._begin) else None
        if found is None:
            return None
        try:
            return Part(datetime.strptime(found[1], "%Y%m%d-%H%M%S").replace(tzinfo=UTC))
        except ValueError:
            return None

    @property
    def _begin(self) -> str:
        return f"MRMS_{self.product.rpartition('/')[2]}_"
