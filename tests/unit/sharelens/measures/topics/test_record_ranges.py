"""Offsets at which a log holds a record for certain, by batch headers."""

import numpy as np
import pyarrow as pa
import pytest

from sharelens.kafka_log.schemas import TOPIC_BATCH
from sharelens.measures.topics.record_ranges import NO_RECORDS, record_ranges
from state_model.audit.columnar.passed_offsets import NO_RECORD


def header(first, last, *, count=None, producer=-1, transactional=False, control=None):
    row = {
        "topic": "orders", "topic_id": "T" * 22, "partition": 0, "base_offset": first, "last_offset": last,
        "base_timestamp_ms": 0, "max_timestamp_ms": 0, "timestamp_type": "CreateTime",
        "record_count": last - first + 1 if count is None else count, "size_bytes": 1, "producer_id": producer,
        "producer_epoch": 0, "base_sequence": 0, "leader_epoch": 0, "transactional": transactional,
        "control_type": control, "below_log_start": False, "uncommitted": False,
    }  # fmt: skip
    return pa.RecordBatch.from_pylist([row], schema=TOPIC_BATCH)


def of_transaction(first, last, producer=7):
    return header(first, last, producer=producer, transactional=True)


def marker(offset, kind, producer=7):
    return header(offset, offset, producer=producer, transactional=True, control=kind)


def ranges(*headers, log_start=0):
    log = record_ranges(headers, log_start)
    return list(zip(log.firsts.tolist(), log.lasts.tolist(), strict=True))


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ([], []),
        ([header(0, 9), header(10, 10), header(11, 19)], [(0, 19)]),
        ([header(5, 9), header(10, 12)], [(5, 12)]),
        ([header(0, 1), of_transaction(2, 4), marker(5, "COMMIT"), header(6, 7)], [(0, 4), (6, 7)]),
        ([header(0, 1), of_transaction(2, 4), marker(5, "ABORT"), header(6, 7)], [(0, 1), (6, 7)]),
        ([of_transaction(0, 1), of_transaction(2, 4, 8), marker(5, "ABORT"), marker(6, "COMMIT", 8)], [(2, 4)]),
        ([header(0, 1), of_transaction(2, 4)], [(0, 1)]),
        ([marker(0, "COMMIT"), header(1, 2)], [(1, 2)]),
    ],
    ids=["no batch", "data", "behind the log start", "committed", "aborted", "interleaved", "open", "an older marker"],
)
def test_records_are_data_that_is_there_for_consumers(headers, expected):
    assert ranges(*headers) == expected


@pytest.mark.parametrize(
    "headers",
    [[header(0, 9), header(12, 19)], [header(0, 9), header(10, 19, count=9)], [header(0, 9, count=0), header(10, 19)]],
    ids=["a hole", "a batch with fewer records", "an empty batch"],
)
def test_a_compacted_log_is_certain_of_none(headers):
    assert ranges(*headers) == []


def test_records_below_the_log_start_are_gone():
    assert ranges(header(0, 9), header(10, 19), log_start=4) == [(4, 19)]
    assert ranges(header(0, 9), header(10, 19), log_start=20) == []


def test_the_first_record_of_each_range():
    log = record_ranges([header(2, 4), marker(5, "COMMIT"), marker(6, "COMMIT"), header(7, 9)], 0)
    spans = np.array([(0, 9), (3, 3), (5, 6), (5, 7), (9, 30), (10, 30), (0, 1)])
    assert log.first_in(spans[:, 0], spans[:, 1]).tolist() == [2, 3, NO_RECORD, 7, 9, NO_RECORD, NO_RECORD]
    assert NO_RECORDS.first_in(spans[:, 0], spans[:, 1]).tolist() == [NO_RECORD] * 7
