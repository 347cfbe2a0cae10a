"""Make the mirrors of a source from its setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from forecasts.settings import ForecastSettings
from forecasts.sources.index_mirror import IndexMirror
from forecasts.sources.mirror import Mirror
from forecasts.sources.s3_mirror import S3Mirror, connect
from signalbox.errors import SettingsRefused
from signalbox.http.client import HttpClient


def mirrors_of(settings: ForecastSettings, source: str) -> list[Mirror]:
    """Return the mirrors in order, or raise an error that names the setting and what is wrong in it."""
    variable = f"FORECASTS_{source.upper()}_MIRRORS"
    given: Sequence[Mapping[str, str]] = getattr(settings, f"{source}_mirrors")
    if not given:
        raise SettingsRefused(f"{source} has no mirror: set {variable}")
    return [_mirror(settings, one, variable) for one in given]


def _mirror(settings: ForecastSettings, given: Mapping[str, str], variable: str) -> Mirror:
    kind, seconds = given.get("kind"), settings.mirror_timeout_seconds
    if kind == "s3" and given.get("bucket"):
        endpoint = given.get("endpoint")
        return S3Mirror(connect(endpoint or settings.s3_endpoint_url, seconds), given["bucket"], endpoint)
    if kind == "https" and given.get("url"):
        return IndexMirror(HttpClient(seconds), given["url"])
    raise SettingsRefused(
        f'{variable} holds an unknown kind of mirror: write {{"kind": "s3", "bucket": …}} '
        'or {"kind": "https", "url": …}'
    )
