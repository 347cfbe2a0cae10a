"""List 30 days of nowcast instants, in calls to S3 for each source and hour, against a bucket that counts them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from bench.ratio import Ratio
from forecasts.sources.goes import Goes
from forecasts.sources.mrms import Mrms
from forecasts.sources.observed import Layout, instants_between
from forecasts.sources.s3_mirror import S3Mirror, connect
from tests.support.upstream import BucketListing, Files

UNTIL = datetime(2026, 3, 10, 12, tzinfo=UTC)
HOURS = 30 * 24
SINCE = UNTIL - timedelta(hours=HOURS)
CHANNELS = 16


def measure(_: str) -> list[Ratio]:
    goes, mrms = Goes("ABI-L2-CMIPF", CHANNELS), Mrms("CONUS/PrecipRate_00.00")
    files = Files()
    satellite, radar = _instants(minutes=10), _instants(minutes=2)
    files.add_goes(*satellite)
    files.add_mrms(*radar)
    with BucketListing(files) as bucket:
        bucket.still = sorted(files.sizes)
        return [
            _listed(bucket, "GOES, 16 files an instant", goes, len(satellite)),
            _listed(bucket, "MRMS", mrms, len(radar)),
        ]


def _instants(minutes: int) -> list[datetime]:
    return [SINCE + n * timedelta(minutes=minutes) for n in range(1, HOURS * 60 // minutes + 1)]


def _listed(bucket: BucketListing, source: str, layout: Layout, count: int) -> Ratio:
    bucket.calls.clear()
    mirror = S3Mirror(connect(bucket.url, 10), "noaa", bucket.url)
    found = len(instants_between(mirror, layout, SINCE, UNTIL))
    if found != count:
        raise RuntimeError(f"{source}: {found} instants are found of {count}")
    what = f"listing 30 days of {source}, {count} instants"
    return Ratio(what, "one call an hour", len(bucket.calls), HOURS, 1.0, "calls")
