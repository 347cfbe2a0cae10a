"""Mirrors are read over real sockets: what they list, what counts as failure, and what a page of links tells."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from forecasts.errors import MirrorFailed
from forecasts.sources.gfs import KeyTemplate, find_cycles
from forecasts.sources.index_mirror import IndexMirror, read_page
from forecasts.sources.mirror import Entry, Mirror, Span, list_spans
from forecasts.sources.s3_mirror import S3Mirror, connect
from signalbox.http.client import HttpClient
from tests.support.upstream import BucketListing, Files, IndexPages

MIDNIGHT = datetime(2026, 3, 10, tzinfo=UTC)
TEMPLATE = KeyTemplate.of("gfs.{date}/{cycle}/atmos/gfs.t{cycle}z.pgrb2.0p25.f{hour:03}")
ROOT = "https://mirror.example/data/"


@pytest.fixture
def files() -> Files:
    return Files()


@pytest.fixture
def bucket(files: Files) -> Iterator[BucketListing]:
    with BucketListing(files) as server:
        yield server


@pytest.fixture
def pages(files: Files) -> Iterator[IndexPages]:
    with IndexPages(files) as server:
        yield server


def s3(server: BucketListing) -> Mirror:
    return S3Mirror(connect(server.url, 5), "noaa", server.url)


def index(server: IndexPages, path: str = "") -> Mirror:
    return IndexMirror(HttpClient(5), server.url + path)


@pytest.fixture(params=["bucket", "pages"])
def mirror(request: pytest.FixtureRequest, bucket: BucketListing, pages: IndexPages) -> Mirror:
    return s3(bucket) if request.param == "bucket" else index(pages)


def test_both_kinds_list_the_same_keys_of_a_span(mirror: Mirror, files: Files) -> None:
    files.sizes.update({"a/1/x": 1, "a/2/y": 0, "a/2/z": 7, "a/3/z": 7, "b": 1})
    assert mirror.list_keys(Span("a/", after="a/1/x", last="a/2/\x7f")) == [Entry("a/2/y", 0), Entry("a/2/z", 7)]
    assert mirror.list_keys(Span("a/2/z")) == [Entry("a/2/z", 7)]
    assert mirror.list_keys(Span("c/")) == []


def test_both_kinds_list_folders_from_a_name_on(mirror: Mirror, files: Files) -> None:
    files.sizes.update({f"gfs.{day}/00/x": 1 for day in (20260308, 20260309, 20260310)} | {"gdas.20260310/x": 1})
    assert mirror.list_folders("gfs.", "gfs.20260309") == ["gfs.20260309", "gfs.20260310"]


def test_both_kinds_distinguish_a_whole_cycle_from_a_partial_one(mirror: Mirror, files: Files) -> None:
    cycles = [MIDNIGHT.replace(hour=hour) for hour in (0, 6, 12, 18)]
    files.add_cycle(cycles[0])
    files.add_cycle(cycles[1], without=["f120.idx"])
    files.add_cycle(cycles[2], empty=["f384"])
    found = find_cycles(mirror, TEMPLATE, cycles)
    assert [(cycle.instant.hour, cycle.complete) for cycle in found.listed] == [(0, True), (6, False), (12, False)]


def test_bucket_is_listed_unsigned_in_pages_only_as_far_as_asked(bucket: BucketListing, files: Files) -> None:
    files.sizes.update({f"a/{number:04}": 1 for number in range(3500)})
    entries = s3(bucket).list_keys(Span("a/", last="a/1499"))
    assert (len(entries), len(bucket.calls), bucket.signed) == (1500, 2, False)


def test_sizeless_index_asks_for_each_file_only_when_all_are_there(pages: IndexPages, files: Files) -> None:
    pages.sizes = False
    files.add_cycle(MIDNIGHT, empty=["f003"])
    files.add_cycle(MIDNIGHT.replace(hour=6), without=["f384"])
    files.add_cycle(MIDNIGHT.replace(hour=12))
    cycles = find_cycles(index(pages), TEMPLATE, [MIDNIGHT.replace(hour=hour) for hour in (0, 6, 12)])
    assert [cycle.complete for cycle in cycles.listed] == [False, False, True]
    assert len(pages.calls) == 1 + 3 + 2 * 418


@pytest.mark.parametrize("status", [403, 404, 500])
def test_a_mirror_that_refuses_has_failed(bucket: BucketListing, pages: IndexPages, status: int) -> None:
    bucket.failing = pages.failing = status
    for mirror in (s3(bucket), index(pages)):
        with pytest.raises(MirrorFailed):
            mirror.list_keys(Span("a/"))


def test_a_mirror_that_shows_something_else_has_failed(bucket: BucketListing, pages: IndexPages) -> None:
    bucket.garbled = pages.garbled = True
    for mirror in (s3(bucket), index(pages)):
        with pytest.raises(MirrorFailed):
            mirror.list_keys(Span("a/"))


def test_a_mirror_that_nobody_serves_has_failed(bucket: BucketListing, pages: IndexPages) -> None:
    mirrors = s3(bucket), index(pages)
    for server in (bucket, pages):
        server.__exit__()
    for mirror in mirrors:
        with pytest.raises(MirrorFailed):
            mirror.list_keys(Span("a/"))


def test_missing_folder_is_empty_and_a_wrong_root_is_a_failure(pages: IndexPages, files: Files) -> None:
    files.sizes["gfs.20260310/00/x"] = 1
    assert index(pages).list_keys(Span("gfs.20260311/")) == []
    with pytest.raises(MirrorFailed, match="status 404"):
        index(pages, "/nowhere").list_keys(Span("gfs.20260311/"))


def test_the_first_listing_that_fails_ends_the_others(bucket: BucketListing) -> None:
    bucket.failing = 403
    with pytest.raises(MirrorFailed):
        list_spans(s3(bucket), [Span(f"{number}/") for number in range(100)])
    assert len(bucket.calls) < 50


def test_worker_gets_aws_buckets_by_name_and_others_by_address() -> None:
    client = connect("http://127.0.0.1:9", 1)
    assert S3Mirror(client, "noaa").reference("a/b") == "s3://noaa/a/b"
    assert S3Mirror(client, "noaa", "https://storage.example/").reference("a") == "https://storage.example/noaa/a"
    assert IndexMirror(HttpClient(1), ROOT).reference("a/b") == f"{ROOT}a/b"


APACHE = """<html><head><title>Index of /data/gfs</title></head><body><pre>
<a href="?C=N;O=D">Name</a> <a href="/data/">Parent Directory</a>                -
<img src="/icons/x.gif" alt="[   ]"> <a href="one%20file">one fi..&gt;</a>   2026-03-10 03:45  507M
<img src="/icons/x.gif" alt="[   ]"> <a href="two">two</a>   2026-03-10 03:45    0
<a href="sub/">sub/</a>   2026-03-10 03:45    -
<a href="https://elsewhere.example/three">three</a>   2026-03-10 03:45  1K
</pre></body></html>"""
NGINX = """<html><head><title>Index of /data/gfs/</title></head><body><a href="../">../</a>
<a href="one%20file">one file</a>      10-Mar-2026 03:45     531628032
<a href="two">two</a>      10-Mar-2026 03:45     0
<a href="sub/">sub/</a>     10-Mar-2026 03:45     -
</body></html>"""
TABLE = """<html><head><title>Index of /data/gfs</title></head><body><table>
<tr><td><a href="/data/">Parent</a></td><td>&nbsp;</td><td align="right">  - </td></tr>
<tr><td><a href="one%20file">one file</a></td><td align="right">2026-03-10 03:45 </td><td>507M</td><td>&nbsp;</td></tr>
<tr><td><a href="two">two</a></td><td align="right">2026-03-10 03:45 </td><td align="right">  0 </td></tr>
<tr><td><a href="sub/">sub/</a></td><td align="right">2026-03-10 03:45 </td><td align="right">  - </td></tr>
</table></body></html>"""


@pytest.mark.parametrize("page", [APACHE, NGINX, TABLE], ids=["apache", "nginx", "table"])
def test_index_page_lists_files_with_sizes_and_folders(page: str) -> None:
    listed = read_page(page, ROOT, "gfs/")
    assert listed == [Entry("gfs/one file", 507 << 20), Entry("gfs/two", 0), Entry("gfs/sub/", None)]


def test_index_page_without_sizes_lists_the_names() -> None:
    page = "<title>Directory listing for /data/gfs/</title><ul><li><a href='one'>one</a></li></ul>"
    assert read_page(page, ROOT, "gfs/") == [Entry("gfs/one", None)]


@pytest.mark.parametrize(
    "page", ["", "{}", "<h1>Sorry</h1><a href='https://status.example/'>status</a>", "<a href='#top'>top</a>"]
)
def test_a_page_that_is_no_index_is_known(page: str) -> None:
    assert read_page(page, ROOT, "gfs/") is None


def test_an_empty_folder_is_an_index_all_the_same() -> None:
    assert read_page("<a href='../'>up</a>", ROOT, "gfs/") == []
