"""Put files into NOAA's buckets and the stack's own, by the keys that NOAA uses; each file is a few bytes.

GFS's first mirror is gone. In the second one cycle is complete and the next has only begun. Some satellite and radar
instants match, others do not. Observations of two days ago are there to verify forecasts with.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from itertools import product
from typing import TYPE_CHECKING

from stand_ins.forecasts import GFS, GOES, MRMS

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

HOURS = (*range(121), *range(123, 385, 3))
CHANNELS = range(1, 17)  # the satellite's, a file each
BEGUN_HOURS = 15  # for the cycle that is still being written
_AT_ONCE = 16
# Minutes before the story's instant. The first two of each are pairs; the last are a few seconds less than six minutes
# apart, and five are allowed.
SATELLITE_MINUTES, RADAR_MINUTES = (30, 20, 5), (29, 20, 11)
# Some of it is old enough to be deleted, some is not.
STORED = ("nowcast/old/", "medium_range/old/", "nowcast/new/", "medium_range/new/")
_STORED_FILES = 5


def publish_upstream(s3: S3Client, at: datetime) -> None:
    broken, mirror = GFS
    s3.delete_bucket(Bucket=broken)
    _put_all(s3, mirror, _gfs_keys(at))
    _put_all(s3, GOES, _goes_keys(at))
    _put_all(s3, MRMS, (_radar_key(at - timedelta(minutes=minutes)) for minutes in RADAR_MINUTES))
    _put_all(s3, MRMS, _observed_keys(at))


def store_forecasts(s3: S3Client, bucket: str) -> None:
    """Store what the workers have written."""
    _put_all(s3, bucket, (f"{prefix}part-{number}.zarr" for prefix in STORED for number in range(_STORED_FILES)))


def _gfs_keys(at: datetime) -> Iterator[str]:
    begun = at.replace(hour=at.hour // 6 * 6, minute=0, second=0, microsecond=0)
    for cycle, hours in ((begun - timedelta(hours=6), HOURS), (begun, HOURS[:BEGUN_HOURS])):
        for hour in hours:
            key = f"gfs.{cycle:%Y%m%d/%H}/atmos/gfs.t{cycle:%H}z.pgrb2.0p25.f{hour:03}"
            yield from (key, f"{key}.idx")


def _goes_keys(at: datetime) -> Iterator[str]:
    for minutes, channel in product(SATELLITE_MINUTES, CHANNELS):
        yield _goes_key(at - timedelta(minutes=minutes), channel)


def _goes_key(began: datetime, channel: int) -> str:
    """Return the key of a scan that took nine and a half minutes and was stored one minute later."""
    ended, stored = began + timedelta(minutes=9, seconds=30), began + timedelta(minutes=10, seconds=30)
    began, ended, stored = (instant + timedelta(seconds=20) for instant in (began, ended, stored))
    name = f"OR_ABI-L2-CMIPF-M6C{channel:02}_G19_s{began:%Y%j%H%M%S}3_e{ended:%Y%j%H%M%S}8_c{stored:%Y%j%H%M%S}1.nc"
    return f"ABI-L2-CMIPF/{began:%Y/%j/%H}/{name}"


def _radar_key(instant: datetime) -> str:
    return f"CONUS/PrecipRate_00.00/{instant:%Y%m%d}/MRMS_PrecipRate_00.00_{instant:%Y%m%d-%H%M}37.grib2.gz"


def _observed_keys(at: datetime) -> Iterator[str]:
    name = "MultiSensor_QPE_01H_Pass2_00.00"
    last = at.replace(minute=0, second=0, microsecond=0)
    for hours in range(50):
        hour = last - timedelta(hours=hours)
        yield f"CONUS/{name}/{hour:%Y%m%d}/MRMS_{name}_{hour:%Y%m%d-%H}0000.grib2.gz"


def _put_all(s3: S3Client, bucket: str, keys: Iterable[str]) -> None:
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        for _ in threads.map(lambda key: s3.put_object(Bucket=bucket, Key=key, Body=b"sample"), keys):
            pass
