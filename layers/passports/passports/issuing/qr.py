"""Draw a QR code as a PNG, in the same bytes everywhere: nothing of the file depends on a version of zlib."""

from __future__ import annotations

import struct
import zlib
from base64 import b32encode
from collections.abc import Iterable, Sequence
from uuid import UUID

PIXELS = 10  # a module
BORDER = 4  # modules, as the standard asks


def qr_payload(passport_version_id: UUID, payload_hash: bytes, proof_root_hash: bytes, receipt_hash: bytes) -> str:
    """Return the text of a passport's QR code."""
    hashes = {"ph": payload_hash, "pr": proof_root_hash, "rh": receipt_hash}
    parts = [f"{name}={b32encode(value).decode().rstrip('=')}" for name, value in hashes.items()]
    return "|".join(["BPC1", f"pv={passport_version_id}", *parts])


def draw_qr(text: str) -> bytes:
    """Return the PNG of the text's QR code at level M, black on white."""
    import segno

    code = segno.make_qr(text, error="m", boost_error=False)
    return _png([_line(row) for row in _with_border(code.matrix)])


def _with_border(matrix: Sequence[Iterable[int]]) -> list[list[int]]:
    light = [0] * BORDER
    rows = [[*light, *row, *light] for row in matrix]
    edge = [[0] * len(rows[0])] * BORDER
    return [*edge, *rows, *edge]


def _line(row: Sequence[int]) -> str:
    """Return the pixels of a row, where 0 is black."""
    return "".join(("0" if is_dark else "1") * PIXELS for is_dark in row)


def _png(lines: Sequence[str]) -> bytes:
    """Return a PNG with one bit a pixel; each line of modules stands PIXELS times."""
    width = len(lines[0])
    octets = -(-width // 8)
    scan_lines = [b"\x00" + int(line.ljust(8 * octets, "0"), 2).to_bytes(octets) for line in lines]
    data = b"".join(line * PIXELS for line in scan_lines)
    header = struct.pack(">IIBBBBB", width, len(lines) * PIXELS, 1, 0, 0, 0, 0)  # grey
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", _stored(data)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _stored(data: bytes) -> bytes:
    """Return a zlib stream that holds the data as it is, in one block: a passport's code has 53,950 bytes of 65,535."""
    header = struct.pack("<2sBHH", b"\x78\x01", 1, len(data), len(data) ^ 0xFFFF)
    return header + data + struct.pack(">I", zlib.adler32(data))
