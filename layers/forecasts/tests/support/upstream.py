"""Serve upstream's files as two kinds of mirror, each call counted: a bucket's listings, and index pages.

They have only names and sizes, which a poll looks at. Buckets in AWS's stand-in would do, but cost a call per file.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import product
from urllib.parse import unquote
from xml.sax.saxutils import escape

from forecasts.sources.gfs import HOURS
from signalbox.testing.stand_in import Request, Response, StandIn

PAGE = 1000
CHANNELS = range(1, 17)  # for GOES, a file each
XML = [("Content-Type", "application/xml")]


class Files:
    """List what lies upstream: sizes by key."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}

    def add_cycle(self, cycle: datetime, *, without: Iterable[str] = (), empty: Iterable[str] = ()) -> None:
        """Add a cycle of GFS; `without` and `empty` name the ends of keys."""
        for hour in HOURS:
            for end in (f"f{hour:03}", f"f{hour:03}.idx"):
                key = f"gfs.{cycle:%Y%m%d}/{cycle:%H}/atmos/gfs.t{cycle:%H}z.pgrb2.0p25.{end}"
                if end not in without:
                    self.sizes[key] = 0 if end in empty else 500_000_000

    def add_goes(self, *instants: datetime, channels: Iterable[int] = CHANNELS, size: int = 1) -> None:
        for at, channel in product(instants, channels):
            began = f"{at:%Y%j%H%M%S}{at.microsecond // 100_000}"
            ended, created = (f"{at + timedelta(minutes=n):%Y%j%H%M%S}0" for n in (9, 10))
            name = f"OR_ABI-L2-CMIPF-M6C{channel:02}_G19_s{began}_e{ended}_c{created}.nc"
            self.sizes[f"ABI-L2-CMIPF/{at:%Y/%j/%H}/{name}"] = size

    def add_mrms(self, *instants: datetime, size: int = 1) -> None:
        for at in instants:
            name = f"MRMS_PrecipRate_00.00_{at:%Y%m%d-%H%M%S}.grib2.gz"
            self.sizes[f"CONUS/PrecipRate_00.00/{at:%Y%m%d}/{name}"] = size


class _MirrorServer(StandIn):
    """Own a server; `failing` answers with that status, `garbled` with something that is no listing."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.calls: deque[str] = deque()
        self.failing, self.garbled = 0, False
        self.signed = False
        super().__init__()

    def answer(self, request: Request) -> Response:
        self.calls.append(request.target)
        self.signed = self.signed or "Authorization" in request.headers
        if self.failing:
            return Response(self.failing, b"<Error><Code>AccessDenied</Code></Error>", XML)
        if self.garbled:
            return Response(200, b"<html><body>Down for maintenance</body></html>", [("Content-Type", "text/html")])
        return self._show(request)

    @abstractmethod
    def _show(self, request: Request) -> Response: ...


class BucketListing(_MirrorServer):
    """Serve ListObjectsV2, a thousand keys a page. `still` has its files in order, once there are very many."""

    still: list[str] | None = None

    def mirror(self, bucket: str = "noaa") -> dict[str, str]:
        return {"kind": "s3", "bucket": bucket, "endpoint": self.url}

    def _show(self, request: Request) -> Response:
        asked = request.query
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter")
        after = asked.get("continuation-token") or asked.get("start-after", "")
        shown = self._groups(prefix, delimiter, after)
        page, rest = shown[:PAGE], shown[PAGE:]
        body = "".join(self._element(name) for name in page)
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if rest else ""
        truncated = f"<IsTruncated>{str(bool(rest)).lower()}</IsTruncated>{token}"
        return Response(200, f"<ListBucketResult>{body}{truncated}</ListBucketResult>".encode(), XML)

    def _groups(self, prefix: str, delimiter: str | None, after: str) -> list[str]:
        keys = self._keys(prefix, after)
        if delimiter is None:
            return keys
        return sorted({prefix + key.removeprefix(prefix).partition(delimiter)[0] + delimiter for key in keys} - {after})

    def _keys(self, prefix: str, after: str) -> list[str]:
        if self.still is None:
            return sorted(key for key in self.files.sizes if key.startswith(prefix) and key > after)
        begin = max(bisect_left(self.still, prefix), bisect_right(self.still, after))
        return self.still[begin : bisect_left(self.still, f"{prefix}\U0010ffff")]

    def _element(self, name: str) -> str:
        if name.endswith("/"):
            return f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
        return f"<Contents><Key>{escape(name)}</Key><Size>{self.files.sizes[name]}</Size></Contents>"


class IndexPages(_MirrorServer):
    """Show folders as Apache does; without `sizes`, as Python's own server does."""

    sizes = True

    def mirror(self, path: str = "") -> dict[str, str]:
        return {"kind": "https", "url": self.url + path}

    def _show(self, request: Request) -> Response:
        path = unquote(request.path).lstrip("/")
        if request.method == "HEAD":
            size = self.files.sizes.get(path)
            return Response(404) if size is None else Response(200, headers=[("Content-Length", str(size))])
        names = sorted({key.removeprefix(path).partition("/")[0] for key in self.files.sizes if key.startswith(path)})
        if not names:
            return Response(404, b"<html><title>404</title></html>")
        rows = "".join(self._row(path, name) for name in names)
        page = f'<html><title>Index of /{path}</title><pre><a href="../">Parent</a>\n{rows}</pre></html>'
        return Response(200, page.encode(), [("Content-Type", "text/html")])

    def _row(self, path: str, name: str) -> str:
        size = self.files.sizes.get(path + name)
        shown = "" if not self.sizes else "  2026-03-10 03:45  " + ("-" if size is None else _rounded(size))
        return f'<img src="/icons/x.gif"> <a href="{name}{"/" if size is None else ""}">{name[:10]}..&gt;</a>{shown}\n'


def _rounded(size: int) -> str:
    for unit, one in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if size >= one:
            return f"{size / one:.1f}{unit}"
    return str(size)
