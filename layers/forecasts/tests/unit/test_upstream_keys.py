"""Keys are read as NOAA names them: which instant each holds, and which keys are none of the product's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from forecasts.sources.gfs import KeyTemplate
from forecasts.sources.goes import Goes
from forecasts.sources.mrms import Mrms
from forecasts.sources.observed import Layout, Part, spans_between
from signalbox.errors import SettingsRefused

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
TENTHS = timedelta(milliseconds=100)
GOES = Goes("ABI-L2-CMIPF")
MRMS = Mrms("CONUS/PrecipRate_00.00")


def goes(product: str = "ABI-L2-CMIPF", rest: str = "-M6C13_G19", began: str = "20260691200203") -> str:
    return f"{product}/2026/069/12/OR_{product}{rest}_s{began}_e20260691209511_c20260691209578.nc"


def mrms(name: str) -> str:
    return f"CONUS/PrecipRate_00.00/20260310/{name}"


@pytest.mark.parametrize(
    ("key", "part"),
    [
        (goes(), Part(NOON + timedelta(seconds=20) + 3 * TENTHS, "ABI-L2-CMIPFC13")),
        (goes(rest="-M6_G18"), Part(NOON + timedelta(seconds=20) + 3 * TENTHS, "ABI-L2-CMIPF")),
        (goes(began="20263651200000"), Part(datetime(2026, 12, 31, 12, tzinfo=UTC), "ABI-L2-CMIPFC13")),
        (goes("ABI-L2-CMIPC"), None),
        (goes(began="20263991200203"), None),
        (goes(began="2026069120020"), None),
        ("ABI-L2-CMIPF/2026/069/12/index.html", None),
    ],
)
def test_satellite_key_holds_the_start_of_its_scan(key: str, part: Part | None) -> None:
    assert GOES.read(key) == part


def test_a_mesoscale_products_two_sectors_are_parts_of_their_own() -> None:
    keys = [f"ABI-L2-CMIPM/2026/069/12/{goes(f'ABI-L2-CMIPM{n}').rpartition('/')[2]}" for n in (1, 2)]
    parts = [Goes("ABI-L2-CMIPM").read(key) for key in keys]
    assert [part and part.part for part in parts] == ["ABI-L2-CMIPM1C13", "ABI-L2-CMIPM2C13"]


@pytest.mark.parametrize(
    ("key", "part"),
    [
        (mrms("MRMS_PrecipRate_00.00_20260310-120039.grib2.gz"), Part(NOON + timedelta(seconds=39))),
        (mrms("MRMS_PrecipRate_00.00_20260310-240000.grib2.gz"), None),
        (mrms("MRMS_PrecipRate_00.00_latest.grib2.gz"), None),
        (mrms("MRMS_PrecipRate_00.50_20260310-120039.grib2.gz"), None),
    ],
)
def test_radar_key_holds_its_second(key: str, part: Part | None) -> None:
    assert MRMS.read(key) == part


@pytest.mark.parametrize("layout", [GOES, MRMS])
@pytest.mark.parametrize(("hours", "days"), [(2, 1), (13, 2), (30 * 24, 31)])
def test_a_day_is_one_listing_however_many_hours_of_it_are_wanted(layout: Layout, hours: int, days: int) -> None:
    assert len(spans_between(layout, NOON - timedelta(hours=hours), NOON)) == days


def test_a_listing_begins_with_the_first_hour_and_ends_with_the_last() -> None:
    first, last = spans_between(GOES, NOON - timedelta(hours=13), NOON)
    assert first.holds("ABI-L2-CMIPF/2026/068/23/OR_x.nc")
    assert not first.holds("ABI-L2-CMIPF/2026/068/22/OR_x.nc")
    assert last.holds(goes())
    assert not last.holds(goes().replace("/12/", "/13/"))
    [span] = spans_between(MRMS, NOON, NOON)
    held = [
        span.holds(mrms(f"MRMS_PrecipRate_00.00_20260310-{time}.grib2.gz")) for time in (115959, 120000, 125959, 130000)
    ]
    assert held == [False, True, True, False]


@pytest.mark.parametrize(
    "text",
    [
        "gfs.{date}/{cycle}/f000",
        "gfs.{date}/f{hour:03}",
        "f{hour:03}/gfs.{date}/{cycle}",
        "gfs.{date}/{cycle}/{member}/f{hour}",
        "gfs.{date}/{cycle}/f{hour:w}",
        "gfs.{date/{cycle}/f{hour}",
        "",
    ],
)
def test_a_template_that_names_no_keys_is_refused_with_its_setting(text: str) -> None:
    with pytest.raises(SettingsRefused, match="FORECASTS_GFS_KEY_TEMPLATE"):
        KeyTemplate.of(text)


def test_both_of_gfs_forms_name_data_and_index() -> None:
    v16 = KeyTemplate.of("gfs.{date}/{cycle}/atmos/gfs.t{cycle}z.pgrb2.0p25.f{hour:03}")
    v17 = KeyTemplate.of("gfs.{date}/{cycle}/products/atmos/grib2/0p25/gfs.t{cycle}z.pres_a.0p25.f{hour:03}.grib2")
    assert v16.keys(NOON)[208] == "gfs.20260310/12/atmos/gfs.t12z.pgrb2.0p25.f384"
    assert v17.keys(NOON)[-1] == "gfs.20260310/12/products/atmos/grib2/0p25/gfs.t12z.pres_a.0p25.f384.grib2.idx"
    assert (v16.days_prefix, KeyTemplate.of("all/{date}.{cycle}.{hour}").days_prefix) == ("gfs.", None)
