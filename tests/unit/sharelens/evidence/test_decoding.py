"""Records of the state topic as typed rows, chunk by chunk or at once."""

import itertools

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.evidence.decoding import KEPT_BYTES, decode_log, decode_logs, decode_rows, problem_rows
from sharelens.evidence.schemas import DECODED_FROM
from sharelens.kafka_log.schemas import LOG_RECORD, PROBLEM
from state_model.columnar.decode import DECODE_PROBLEM
from state_model.columnar.schemas import SHARE_RECORD
from tests.logs.log_rows import TOPIC_ID, log_rows
from tests.logs.state_logs import encoded_records, snapshot, tombstone, update

STORY = [snapshot(), update(batches=[(0, 3, 2, 1)]), update(damage="value_version"), tombstone(), snapshot("h")]


def log_table() -> pa.Table:
    keys, values, _ = zip(*encoded_records(STORY), strict=True)
    return pa.Table.from_batches([log_rows(list(keys), list(values))])


@given(st.lists(st.integers(0, len(STORY)), max_size=3))
def test_a_log_decoded_in_chunks_is_the_log_decoded_at_once(cuts: list[int]) -> None:
    rows = log_table()
    decoded_log = decode_log(rows)
    before_ms, parts = decoded_log.before_ms, []
    bounds = [0, *sorted(cuts), rows.num_rows]
    for first, end in itertools.pairwise(bounds):
        parts.append(decode_log(rows.slice(first, end - first), before_ms=before_ms))
        before_ms = parts[-1].log_time_ms
    assert pa.concat_tables(part.records for part in parts).equals(decoded_log.records)
    assert pa.concat_tables(part.problems for part in parts).equals(decoded_log.problems)
    assert before_ms == decoded_log.log_time_ms == 1000 + len(STORY) - 1


def test_state_partitions_decoded_together_are_each_decoded_alone() -> None:
    rows = log_table()
    at = rows.schema.get_field_index("partition")
    other = rows.set_column(at, rows.schema.field(at), pa.array([9] * rows.num_rows, pa.int32()))
    decoded_together = decode_logs(pa.concat_tables([rows, other]), [1002, 1])
    alone = [decode_log(rows, before_ms=1002), decode_log(other, before_ms=1)]
    assert decoded_together.records.equals(pa.concat_tables(part.records for part in alone))
    assert decoded_together.problems.equals(pa.concat_tables(part.problems for part in alone))


def test_every_record_is_a_row_or_a_problem() -> None:
    decoded = decode_log(log_table(), before_ms=1002)
    assert decoded.records.column("log_offset").to_pylist() == [100, 101, 103, 104]
    assert decoded.records.column("log_time_ms").to_pylist() == [1002, 1002, 1003, 1004]
    assert decoded.problems.select(["log_offset", "reason"]).to_pylist() == [
        {"log_offset": 102, "reason": "unknown_value_version"}
    ]


def test_no_records_decode_to_no_rows() -> None:
    decoded = decode_log(LOG_RECORD.empty_table(), before_ms=5)
    assert (decoded.records.schema, decoded.problems.schema) == (SHARE_RECORD, DECODE_PROBLEM)
    assert (decoded.records.num_rows, decoded.problems.num_rows, decoded.log_time_ms) == (0, 0, 5)


def test_an_offset_that_occurs_twice_is_refused_by_its_number() -> None:
    rows = log_table()
    with pytest.raises(ValueError, match="log offset 100 does not lie above"):
        decode_log(pa.concat_tables([rows.slice(0, 1), rows]))


def test_a_problem_keeps_its_place_and_its_first_bytes() -> None:
    rows = log_table()
    large = rows.set_column(
        rows.schema.get_field_index("value"), LOG_RECORD.field("value"), pa.array([b"\0\7" + b"x" * 9000] * len(STORY))
    )
    problems = problem_rows(decode_rows(large).problems)
    assert problems.schema == PROBLEM
    assert problems.num_rows == len(STORY)
    row = problems.to_pylist()[1]
    assert (row["topic_id"], row["partition"], row["first_offset"], row["last_offset"]) == (TOPIC_ID, 3, 101, 101)
    assert (row["file"], row["position"], row["reason"]) == (DECODED_FROM, 101, "unknown_value_version")
    key = rows.column("key")[1].as_py()
    assert row["bytes"] == key + b"\0\7" + b"x" * (KEPT_BYTES - 2)
