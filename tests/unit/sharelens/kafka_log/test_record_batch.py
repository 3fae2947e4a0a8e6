"""The walk over batch headers, against a model that reads them one by one with `struct`."""

import struct

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from sharelens.kafka_log import record_batch as rb

HEADER = struct.Struct(">qiibIhiqqqhii")
LARGEST = 200


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """A batch of magic 2 or an older message set, mostly one that can be; fields and sizes also at their edges."""
    magic = draw(st.sampled_from([2, 2, 2, 2, 1, 0, 3]))
    body = draw(st.integers(0, 40))
    size = body + (rb.HEADER_BYTES if magic == 2 else draw(st.sampled_from([26, 17, 40])))
    length = size - rb.LENGTH_PREFIX_BYTES + draw(st.sampled_from([0] * 8 + [-1, -40, LARGEST, 1 << 30, -(1 << 31)]))
    delta = draw(st.sampled_from([0, 0, 3, -1, (1 << 31) - 1]))
    fields = (
        draw(st.sampled_from([0, 7, 1 << 40, (1 << 63) - 1, -1])),
        max(-(1 << 31), min((1 << 31) - 1, length)),
        draw(st.integers(-1, 9)),
        magic,
        draw(st.integers(0, (1 << 32) - 1)),
        draw(st.integers(-(1 << 15), (1 << 15) - 1)),
        delta,
        *(draw(st.integers(-(1 << 63), (1 << 63) - 1)) for _ in range(3)),
        draw(st.integers(-1, 9)),
        draw(st.integers(-1, 9)),
        draw(st.sampled_from([0, 1, min(delta + 1, 9), 5, -1])),
    )
    return (HEADER.pack(*fields) + bytes(body))[:size]


def model(data: bytes, *, require_whole: bool) -> tuple[list[list[int]], int, bool]:
    """The rows of the header table, where the walk stops, and whether the data ended there."""
    rows: list[list[int]] = []
    at = 0
    while at < len(data):
        if len(data) - at < rb.MINIMUM_HEADER_BYTES:
            return rows, at, True
        base, length, epoch, magic = struct.unpack_from(">qiiB", data, at)
        size = length + rb.LENGTH_PREFIX_BYTES
        smallest = 26 if magic < 2 else rb.HEADER_BYTES
        if base < 0 or magic > 2 or not smallest <= size <= LARGEST:
            return rows, at, False
        if magic < 2:
            row = [at, base, base, size, -1, magic, epoch & 0xFFFFFFFF, *[0] * 7]
        elif len(data) - at < rb.HEADER_BYTES:
            return rows, at, True
        else:
            *_, crc, attributes, delta, first_ms, last_ms, producer, its_epoch, sequence, count = HEADER.unpack_from(
                data, at
            )
            if delta < 0 or not 0 <= count <= delta + 1 or base + delta >= 1 << 63:
                return rows, at, False
            row = [at, base, base + delta, size, epoch, magic, crc, attributes]
            row += [first_ms, last_ms, producer, its_epoch, sequence, count]
        if require_whole and at + size > len(data):
            return rows, at, True
        rows.append(row)
        at += size
    return rows, at, True


@pytest.mark.parametrize("short_bytes", [0, 1 << 20], ids=["compiled", "interpreted"])
@given(parts=st.lists(batches(), max_size=6), cut=st.integers(0, 80), require_whole=st.booleans())
def test_headers_are_those_of_the_model(short_bytes: int, parts: list[bytes], cut: int, require_whole: bool) -> None:
    data = b"".join(parts)
    data = data[: len(data) - cut] if cut < len(data) else data
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rb, "SHORT_BYTES", short_bytes)
        headers, stopped, ended = rb.walk_headers(np.frombuffer(data, np.uint8), LARGEST, require_whole=require_whole)
    assert (headers.tolist(), stopped, ended) == model(data, require_whole=require_whole)


@given(parts=st.lists(batches() | st.binary(max_size=30), max_size=6), first=st.sampled_from([0, 7]))
def test_possible_headers_are_where_a_walk_could_begin(parts: list[bytes], first: int) -> None:
    data = b"".join(parts)
    last = 1 << 41
    expected = []
    for at in range(len(data) - rb.HEADER_BYTES + 1):
        (base,) = struct.unpack_from(">q", data, at)
        rows, _, _ = model(data[at : at + rb.HEADER_BYTES], require_whole=False)
        if data[at + rb.MAGIC_POSITION] == 2 and first <= base <= last and rows:
            expected.append(at)
    assert rb.possible_headers(np.frombuffer(data, np.uint8), LARGEST, first, last) == expected
