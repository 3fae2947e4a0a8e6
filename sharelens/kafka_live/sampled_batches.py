"""Headers of single batches of a cluster's topics: of those that hold some offsets, and no more of the log.

A Fetch gives whole batches or none, never headers alone, so small answers are asked for first, and larger ones where
the batch did not fit.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sharelens.kafka_live.cluster import (
    OFFSET_OUT_OF_RANGE,
    PARTITION_BYTES,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    TOPIC_AUTHORIZATION_FAILED,
    Cluster,
    Fetched,
    Place,
    Position,
    Reading,
)
from sharelens.kafka_log import record_batch as rb
from sharelens.kafka_log.segment_file import MAXIMUM_BATCH_BYTES

SIZES = (16 << 10, 256 << 10)
"""Bytes that a partition may give in the first two tries; in a request of its own it gives a batch of any size."""
MOST_PLACES = 1024
"""Partitions in one request."""
ANSWERS = frozenset({OFFSET_OUT_OF_RANGE, TOPIC_AUTHORIZATION_FAILED})


class Sampled(NamedTuple):
    """An offset of a partition."""

    place: Place
    offset: int


class Batch(NamedTuple):
    """The first batch at or above an offset; its largest timestamp, and whether the broker set it.

    `is_control`: it holds a marker. `is_aborted`: it is of a transaction that was aborted.
    """

    base_offset: int
    last_offset: int
    max_timestamp_ms: int
    is_log_append_time: bool
    is_control: bool = False
    is_aborted: bool = False


@dataclass(slots=True)
class Samples:
    """`batches`: of each offset, None where the log holds neither it nor a batch above. `forbidden`: topics that one
    may not read. `left_out`: offsets beyond the limit of bytes.
    """

    batches: dict[Sampled, Batch | None] = field(default_factory=dict)
    forbidden: set[str] = field(default_factory=set)
    left_out: int = 0
    fetched_bytes: int = 0


def sampled(cluster: Cluster, offsets: Iterable[Sampled], most_bytes: int) -> Samples:
    """The batches of these offsets; no request begins that could exceed `most_bytes`, one batch aside.

    Raises:
        ClusterError: the cluster does not answer.
    """
    samples = Samples()
    pending = sorted(set(offsets))
    for size in SIZES:
        pending = _tried(cluster, samples, pending, size, most_bytes)
    for each in pending:
        if samples.fetched_bytes < most_bytes:
            _take(cluster, samples, {each.place: each.offset}, SIZES[-1])
            samples.batches.setdefault(each, None)
        else:
            samples.left_out += 1
    return samples


def _tried(cluster: Cluster, samples: Samples, offsets: list[Sampled], size: int, most_bytes: int) -> list[Sampled]:
    """The offsets whose batch is larger than `size`, or that the limit leaves no room for."""
    pending: list[Sampled] = []
    for chosen in _requests(offsets, size):
        chosen_samples = [Sampled(place, offset) for place, offset in chosen.items()]
        if samples.fetched_bytes + size * len(chosen_samples) <= most_bytes:
            _take(cluster, samples, chosen, size)
        pending += [
            each for each in chosen_samples if each not in samples.batches and each.place.topic not in samples.forbidden
        ]
    return pending


def _requests(offsets: Iterable[Sampled], size: int) -> Iterator[Mapping[Place, int]]:
    """The offsets, one of each partition in a mapping."""
    max_places = min(MOST_PLACES, PARTITION_BYTES // size)
    chosen: dict[Place, int] = {}
    for place, offset in offsets:
        if place in chosen or len(chosen) == max_places:
            yield chosen
            chosen = {}
        chosen[place] = offset
    if chosen:
        yield chosen


def _take(cluster: Cluster, samples: Samples, offsets: Mapping[Place, int], size: int) -> None:
    """Adds what the brokers answer about these offsets."""
    producers: dict[Place, int] = {}
    for fetched in _fetched(cluster, samples, offsets, size, READ_UNCOMMITTED):
        place = fetched.place
        offset = Sampled(place, offsets[place])
        if fetched.is_forbidden:
            samples.forbidden.add(place.topic)
        elif fetched.is_out_of_range:
            samples.batches[offset] = None
        elif (header := _first_header(fetched.records)) is not None:
            batch = samples.batches[offset] = _batch(header)
            if int(header[rb.ATTRIBUTES]) & rb.TRANSACTIONAL and not batch.is_control:
                producers[place] = int(header[rb.PRODUCER_ID])
    transactional = {place: offsets[place] for place in producers}
    for fetched in _fetched(cluster, samples, transactional, size, READ_COMMITTED):
        offset = Sampled(fetched.place, offsets[fetched.place])
        data = samples.batches[offset]
        if data is not None and any(
            producer_id == producers[fetched.place] and first <= data.last_offset
            for producer_id, first in fetched.aborted
        ):
            samples.batches[offset] = data._replace(is_aborted=True)


def _fetched(
    cluster: Cluster, samples: Samples, offsets: Mapping[Place, int], size: int, isolation_level: int
) -> Iterator[Fetched]:
    if not offsets:
        return
    reading = Reading(size, isolation_level, ANSWERS)
    for fetched in cluster.fetch({place: Position(offset) for place, offset in offsets.items()}, reading):
        samples.fetched_bytes += len(fetched.records)
        yield fetched


def _first_header(records: bytes) -> rb.Table | None:
    """The header of the first batch; None where it is not whole."""
    headers, _, _ = rb.walk_headers(np.frombuffer(records, np.uint8), MAXIMUM_BATCH_BYTES, require_whole=True)
    return headers[0] if len(headers) else None


def _batch(header: rb.Table) -> Batch:
    attributes = int(header[rb.ATTRIBUTES])
    return Batch(
        base_offset=int(header[rb.BASE_OFFSET]),
        last_offset=int(header[rb.LAST_OFFSET]),
        max_timestamp_ms=int(header[rb.MAX_TIMESTAMP]),
        is_log_append_time=bool(attributes & rb.LOG_APPEND_TIME),
        is_control=bool(attributes & rb.CONTROL),
    )
