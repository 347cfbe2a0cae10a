"""Find observations to compare forecasts with: hourly files of one product, and whether they are there.

Their place and names are configuration, since sources end (ISD did) and products move. Each file is asked for by HEAD,
once a run of the task, as the windows of many forecasts share its hours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import TYPE_CHECKING
from urllib.parse import quote

from forecasts.errors import MirrorFailed
from forecasts.runs.inference_payload import TimeRange
from forecasts.settings import ForecastSettings
from forecasts.sources.s3_mirror import connect
from signalbox.errors import SettingsRefused
from signalbox.http.client import HttpClient

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

HOUR = timedelta(hours=1)


class Observations:
    """Look up one source, for one run of the task."""

    def __init__(self, given: ForecastSettings) -> None:
        self._given = given
        self._root, self._is_there = _connect(given.observation_mirror, given)
        self._known: dict[str, bool] = {}

    def of(self, window: TimeRange) -> tuple[str, ...] | None:
        """Return references of the window's files, or None while too few are there. May raise MirrorFailed."""
        keys = keys_of(window, self._given.observation_key_template, self._given.observation_product)
        found = [key for key in keys if self._has(key)]
        if len(found) < ceil(self._given.observation_least_share * len(keys)):
            return None
        return tuple(f"{self._root}/{key}" for key in found)

    def _has(self, key: str) -> bool:
        if key not in self._known:
            self._known[key] = self._is_there(key)
        return self._known[key]


def keys_of(window: TimeRange, template: str, product: str) -> list[str]:
    """Return the key of each full hour after the start and not after the end, once: its file covers the hour before."""
    hour = window.start.astimezone(UTC).replace(minute=0, second=0, microsecond=0) + HOUR
    keys = dict.fromkeys([_key(template, product, hour)])
    while (hour := hour + HOUR) <= window.end:
        keys[_key(template, product, hour)] = None
    return list(keys)


def _key(template: str, product: str, hour: datetime) -> str:
    name = product.rpartition("/")[2]
    try:
        return template.format(product=product, name=name, date=f"{hour:%Y%m%d}", year=hour.year, hour=hour.hour)
    except (KeyError, IndexError, ValueError) as error:
        raise SettingsRefused(
            f"FORECASTS_OBSERVATION_KEY_TEMPLATE can't be filled in ({error!r}); "
            "it may name product, name, date, year and hour"
        ) from None


def _connect(mirror: Mapping[str, str], given: ForecastSettings) -> tuple[str, Callable[[str], bool]]:
    """Return where the files lie, and a function that says whether one is there."""
    seconds = given.mirror_timeout_seconds
    if mirror.get("kind") == "s3" and (bucket := mirror.get("bucket")):
        endpoint = mirror.get("endpoint")
        client = connect(endpoint or given.s3_endpoint_url, seconds)
        root = f"{endpoint.rstrip('/')}/{bucket}" if endpoint else f"s3://{bucket}"
        return root, lambda key: _is_in_bucket(client, bucket, key)
    if mirror.get("kind") == "https" and (url := mirror.get("url", "").rstrip("/")):
        web = HttpClient(seconds)
        return url, lambda key: _is_at(web, f"{url}/{quote(key)}")
    raise SettingsRefused(
        'FORECASTS_OBSERVATION_MIRROR is no mirror: write {"kind": "s3", "bucket": …} or {"kind": "https", "url": …}'
    )


def _is_in_bucket(client: S3Client, bucket: str, key: str) -> bool:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return client.head_object(Bucket=bucket, Key=key)["ContentLength"] > 0
    except ClientError as error:
        if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 404:
            return False
        raise MirrorFailed(f"bucket {bucket} can't describe {key}: {error}") from None
    except BotoCoreError as error:
        raise MirrorFailed(f"bucket {bucket} can't describe {key}: {error}") from None


def _is_at(web: HttpClient, url: str) -> bool:
    answer = web.send("HEAD", url)
    if answer.status in (404, 410):
        return False
    if not answer.good:
        raise MirrorFailed(f"{answer.words} for {url}")
    return answer.length != 0
