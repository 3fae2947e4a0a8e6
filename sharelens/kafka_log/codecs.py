"""The compression codecs of record batches, with a bound on what a batch may grow to.

Codec numbers are the low three bits of the batch attributes (org.apache.kafka.common.record.CompressionType). cramjam
decompresses into a buffer whose size is the bound, so that a small hostile batch can't take the machine's memory; the
buffer is virtual until it is written to.
"""

from typing import TYPE_CHECKING, ClassVar, Final

import cramjam

from state_model.errors import SharelensError

if TYPE_CHECKING:
    from sharelens.kafka_log.files import Bytes

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")
DEFAULT_LIMIT_BYTES: Final = 128 << 20

_JAVA_SNAPPY_MAGIC: Final = b"\x82SNAPPY\x00"
_JAVA_SNAPPY_HEADER_BYTES: Final = 16
_ZSTD_LEVEL: Final = 3
_FULL: Final = "failed to write whole buffer"


class CodecError(SharelensError):
    """Raised when a batch does not decompress; `reason` is the code that a problem row carries."""

    reason: ClassVar[str] = "bad_compression"


class OversizedError(CodecError):
    """Raised when a batch would decompress to more than the bound."""

    reason = "oversized"


class UnsupportedCodecError(CodecError):
    """Raised when the codec number is none that Kafka knows."""

    reason = "unsupported_codec"


class Decompressor:
    """Decompresses batches one after the other into one buffer."""

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._limit = limit_bytes
        self._buffer: Bytes | None = None

    def decompress(self, codec: int, body: "Bytes") -> "Bytes":
        """The records section of a batch, valid until the next call. Raises CodecError or a subclass."""
        if codec == NONE:
            return body
        if self._buffer is None:
            import numpy as np  # the broker decompresses too, and starts without it

            self._buffer = np.empty(self._limit, dtype=np.uint8)
        return self._buffer[: decompress_into(codec, body.data, self._buffer.data)]


def decompress_into(codec: int, body: memoryview, buffer: memoryview) -> int:
    """Fill `buffer`, whose size is the bound, with the records section of a batch; the bytes that it has.

    Raises CodecError or a subclass.
    """
    if not NONE < codec < len(NAMES):
        raise UnsupportedCodecError(f"codec {codec} is none of {', '.join(NAMES[1:])}")
    try:
        return _fill(codec, body, buffer)
    except cramjam.DecompressionError as error:
        if str(error) == _FULL:
            raise OversizedError(f"{NAMES[codec]} batch grows beyond {len(buffer)} bytes") from error
        raise CodecError(f"{NAMES[codec]} batch does not decompress: {error}") from error


def _fill(codec: int, body: memoryview, buffer: memoryview) -> int:
    if codec == GZIP:
        return int(cramjam.gzip.decompress_into(body, buffer))
    if codec == LZ4:
        return int(cramjam.lz4.decompress_into(body, buffer))
    if codec == ZSTD:
        return int(cramjam.zstd.decompress_into(body, buffer))
    if body[: len(_JAVA_SNAPPY_MAGIC)].tobytes() == _JAVA_SNAPPY_MAGIC:
        return _fill_java_snappy(body, buffer)
    return _fill_snappy(body, buffer, 0)


def _fill_snappy(block: memoryview, buffer: memoryview, start: int) -> int:
    """One raw snappy block, which names its length before its data."""
    length = int(cramjam.snappy.decompress_raw_len(block))
    if length > len(buffer) - start:
        raise OversizedError(f"snappy batch grows beyond {len(buffer)} bytes")
    return int(cramjam.snappy.decompress_raw_into(block, buffer[start : start + length]))


def _fill_java_snappy(body: memoryview, buffer: memoryview) -> int:
    """snappy-java's stream: a 16 byte header, then blocks behind their int32 lengths."""
    at, filled = _JAVA_SNAPPY_HEADER_BYTES, 0
    while at < len(body):
        length = int.from_bytes(body[at : at + 4], "big")
        at += 4
        if length == 0 or length > len(body) - at:
            raise CodecError(f"snappy block of {length} bytes where {max(len(body) - at, 0)} are left")
        filled += _fill_snappy(body[at : at + length], buffer, filled)
        at += length
    return filled


def compress(codec: int, body: bytes) -> bytes:
    """The records section as a Java client writes it: snappy in Java's framing, lz4 in independent blocks."""
    if codec == NONE:
        return body
    if codec == GZIP:
        return bytes(cramjam.gzip.compress(body))
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(body, level=_ZSTD_LEVEL))
    if codec == LZ4:
        compressor = cramjam.lz4.Compressor(block_linked=False)
        compressor.compress(body)
        return bytes(compressor.finish())
    if codec == SNAPPY:
        return _compress_java_snappy(body)
    raise UnsupportedCodecError(f"codec {codec} is none of {', '.join(NAMES)}")


def _compress_java_snappy(body: bytes) -> bytes:
    pieces = [_JAVA_SNAPPY_MAGIC, (1).to_bytes(4, "big"), (1).to_bytes(4, "big")]
    for start in range(0, len(body), 32 << 10):
        block = bytes(cramjam.snappy.compress_raw(body[start : start + (32 << 10)]))
        pieces += [len(block).to_bytes(4, "big"), block]
    return b"".join(pieces)
