"""Compression codecs: every framing there and back, nothing beyond the bound, no crash on anything."""

import os

import cramjam
import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from sharelens.kafka_log import codecs
from sharelens.kafka_log.files import Bytes

ALL = range(len(codecs.NAMES))


def as_array(raw: bytes) -> Bytes:
    return np.frombuffer(bytearray(raw), dtype=np.uint8)


@pytest.mark.parametrize("codec", ALL)
@hypothesis.given(body=st.binary(min_size=1, max_size=3000), times=st.integers(1, 40))
def test_what_is_compressed_decompresses_to_the_same(codec: int, body: bytes, times: int) -> None:
    packed = as_array(codecs.compress(codec, body * times))
    assert codecs.Decompressor(1 << 20).decompress(codec, packed).tobytes() == body * times


def test_raw_snappy_as_librdkafka_writes_it_is_read_too() -> None:
    packed = as_array(bytes(cramjam.snappy.compress_raw(b"abc" * 5000)))
    assert codecs.Decompressor().decompress(codecs.SNAPPY, packed).tobytes() == b"abc" * 5000


@pytest.mark.parametrize("codec", [codecs.GZIP, codecs.SNAPPY, codecs.LZ4, codecs.ZSTD])
def test_what_grows_beyond_the_bound_is_refused(codec: int) -> None:
    packed = as_array(codecs.compress(codec, bytes(100_001)))
    decompressor = codecs.Decompressor(100_000)
    with pytest.raises(codecs.OversizedError, match="100000 bytes"):
        decompressor.decompress(codec, packed)
    exact = as_array(codecs.compress(codec, bytes(100_000)))
    assert len(decompressor.decompress(codec, exact)) == 100_000


def test_a_raw_snappy_block_that_claims_gigabytes_is_refused() -> None:
    with pytest.raises(codecs.OversizedError):
        codecs.Decompressor(1000).decompress(codecs.SNAPPY, as_array(b"\xff\xff\xff\xff\x0fabc"))


def test_an_unknown_codec_is_refused() -> None:
    for codec in (5, 6, 7):
        with pytest.raises(codecs.UnsupportedCodecError, match=str(codec)):
            codecs.Decompressor().decompress(codec, as_array(b"x"))


@pytest.mark.parametrize("codec", [codecs.GZIP, codecs.SNAPPY, codecs.LZ4, codecs.ZSTD])
@hypothesis.given(junk=st.binary(max_size=200), keep=st.integers(0, 60))
def test_junk_is_an_error_and_nothing_else(codec: int, junk: bytes, keep: int) -> None:
    sound = codecs.compress(codec, os.urandom(50) * 4)
    decompressor = codecs.Decompressor(10_000)
    outcomes = []
    for body in (junk, sound[:keep] + junk):
        try:
            outcomes.append(len(decompressor.decompress(codec, as_array(body))))
        except codecs.CodecError as error:
            outcomes.append(0 if error.reason in ("bad_compression", "oversized") else 1 << 30)
    assert max(outcomes) <= 10_000
