"""Unpack a gzip stream block by block, and say so if it is cut off or corrupt."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from signalbox.packs.outcome import Permanent

BLOCK = 64 << 10  # the most to unpack at once, however small the packed bytes are
_GZIP = 31  # zlib's number for a stream with gzip's header and checksum


def unzip(blocks: Iterable[bytes], what: str) -> Iterator[bytes]:
    """Return the content. Several streams in one file follow each other, as gzip allows."""
    stream = _Stream()
    try:
        for block in blocks:
            yield from stream.unpack(block)
    except zlib.error as error:
        raise Permanent(f"{what} is not a valid gzip stream: {error}") from None
    if stream.unpacker is not None:
        raise Permanent(f"{what} ends in the middle of its gzip stream: it was cut off")


class _Stream:
    """Own the unpacker of the stream that has begun and not ended."""

    unpacker: zlib._Decompress | None = None

    def unpack(self, block: bytes) -> Iterator[bytes]:
        rest = block
        # Between two streams, and at the end, there may be zeros, which are not a stream.
        while self.unpacker is not None or (rest := rest.lstrip(b"\0")):
            unpacker = self.unpacker = self.unpacker or zlib.decompressobj(_GZIP)
            yield (content := unpacker.decompress(rest, BLOCK))
            if unpacker.eof:
                rest, self.unpacker = unpacker.unused_data, None
            elif not (rest := unpacker.unconsumed_tail) and len(content) < BLOCK:
                break


def skip(blocks: Iterable[bytes], offset: int) -> Iterator[bytes]:
    """Return the blocks without their first bytes, up to the offset."""
    for block in blocks:
        if offset >= len(block):
            offset -= len(block)
        else:
            yield block[offset:]
            offset = 0
