"""The QR code holds the contract's text at level M, and its PNG is the same in every place."""

from __future__ import annotations

import shutil
import subprocess
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import segno
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from passports.encoding.canonical import sha256
from passports.issuing.qr import draw_qr, qr_payload

VERSION_ID = UUID("00000000-0000-4000-8000-000000000005")
HASHES = [
    "10ee9a52ccdb4e068e5e34575f72a79ffc213a913a4aff525f65be33851ecb12",
    "c469a0ac598410258b47adbbb93c91b9195bd8747de80c825f630fc95761633c",
    "bc624f04dd7b47f1eab5d5678023ee9e0e5057f3a34337fa2a07502fbc80ab04",
]
TEXT = (
    "BPC1|pv=00000000-0000-4000-8000-000000000005"
    "|ph=CDXJUUWM3NHANDS6GRLV64VHT76CCOURHJFP6US7MW7DHBI6ZMJA"
    "|pr=YRU2BLCZQQICLC2HVW53SPERXEMVXWDUPXUAZAS7MMH4SV3BMM6A"
    "|rh=XRRE6BG5PND7D2VV2VTYAI7OTYHFAV7TUNBTP6RKA5IC7PEAVMCA"
)


def modules(png: bytes) -> list[list[int]]:
    """Return the modules of a PNG with their border, each 1 if it is dark; all of its pixels must agree."""
    image: Any = Image.open(BytesIO(png)).convert("L")
    assert (image.width == image.height, image.width % 10) == (True, 0)
    found = []
    for top in range(0, image.height, 10):
        row = []
        for left in range(0, image.width, 10):
            [(_, grey)] = image.crop((left, top, left + 10, top + 10)).getcolors()
            row.append({0: 1, 255: 0}[grey])
        found.append(row)
    return found


def test_text_is_that_of_the_contract() -> None:
    assert qr_payload(VERSION_ID, *map(bytes.fromhex, HASHES)) == TEXT


def test_pixels_are_those_of_the_code() -> None:
    found = modules(draw_qr(TEXT))
    inner = [row[4:-4] for row in found[4:-4]]
    assert inner == [list(row) for row in segno.make_qr(TEXT, error="m", boost_error=False).matrix]
    border = [*found[:4], *found[-4:], *(row[:4] + row[-4:] for row in found)]
    assert not any(map(any, border))


def test_level_is_m_and_is_not_raised() -> None:
    for text in (TEXT, "short"):
        row = modules(draw_qr(text))[4 + 8][4:]
        assert row[:2] == [1, 0], "the first two bits of the format: 00 for M, masked by 10"


def test_png_is_the_same_with_every_zlib() -> None:
    png = draw_qr(TEXT)
    assert sha256(png).hex() == "e1a66ae7b6082a39c4c3dbac42a307af348b836d8d36a3e04ad65bfe3a92f804"
    assert len(png) < 60_000


@settings(max_examples=20)
@given(st.uuids(), st.lists(st.binary(min_size=32, max_size=32), min_size=3, max_size=3))
def test_every_passport_has_a_code_of_one_size(version_id: UUID, hashes: list[bytes]) -> None:
    text = qr_payload(version_id, *hashes)
    assert (len(text), text.count("=")) == (212, 4)
    assert Image.open(BytesIO(draw_qr(text))).size == (650, 650)


def test_a_reader_finds_the_text(tmp_path: Path) -> None:
    reader = shutil.which("zbarimg")
    if reader is None:
        pytest.skip("zbarimg is not installed: `apt install zbar-tools` lets this test read the code")
    picture = tmp_path / "qr.png"
    picture.write_bytes(draw_qr(TEXT))
    found = subprocess.run([reader, "--quiet", "--raw", picture], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == TEXT
