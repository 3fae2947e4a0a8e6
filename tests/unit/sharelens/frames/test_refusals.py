"""What the DataFrame functions refuse: the rules, on Arrow tables and without a session."""

from collections.abc import Callable

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens import frames
from sharelens.frames.group_inputs import _KEYS, _SCHEMAS
from sharelens.frames.refusals import Argument, duplicate_row, is_key, once_each, refuse_duplicates, refuse_other_ids
from sharelens.kafka_log.schemas import LOG_RECORD
from state_model.columnar.keys import LOG_PARTITION_KEY
from state_model.errors import UsageError

ID = "AAAAAAAAAAAAAAAAAAAAAQ"
RECORDS = Argument("losses", "log_records")
KEY = [*LOG_PARTITION_KEY, "offset"]
LARGE = st.integers(-(2**62), 2**62)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: frames.share_records(pd.DataFrame()),
            "share_records: log_records is a pandas DataFrame, no DataFrame",
        ),
        (lambda: frames.lag(pa.table({})), "lag: states is a pyarrow Table, no .* pass spark.createDataFrame.states"),
        (lambda: frames.stalls(None, None), "stalls: share_partition_history is None: pass a DataFrame of Spark"),
        (lambda: frames.log_records_of_kafka_source(pd.DataFrame()), "rows is a pandas DataFrame"),
    ],
)
def test_another_frame_than_spark_s_is_refused_before_a_job(call: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        call()


def test_keys_and_offsets_are_checked_for_nulls() -> None:
    names = [field.name for field in LOG_RECORD if is_key(field)]
    assert names == ["topic_id", "partition", "offset", "base_offset"]


def test_what_names_a_row_of_an_argument_is_checked_for_nulls() -> None:
    for argument, key in _KEYS.items():
        assert all(is_key(_SCHEMAS[argument].field(name)) for name in key)


@pytest.mark.parametrize("text", ["orders", "69d4f7a8-3f1e-4b8e-9c43-6d3f0ad0b4a1", "3LCkYCGXQE6wgeg9SmbSI+", ID + "="])
def test_a_topic_id_that_is_no_id_is_refused(text: str) -> None:
    rows = pa.table({"log_topic_id": [ID, text], "topic": ["orders", "orders"]})
    with pytest.raises(UsageError, match="losses: log_records: log_topic_id .* is no id of a topic: pass the 22 char"):
        refuse_other_ids(rows, RECORDS, ["log_topic_id", "topic"])
    refuse_other_ids(rows.slice(0, 1), RECORDS, ["log_topic_id", "topic"])


def batches_of(*offsets: list[int]) -> list[pa.RecordBatch]:
    """Batches of one partition."""
    return [
        pa.record_batch(
            {"topic_id": [ID] * len(part), "partition": [3] * len(part), "offset": pa.array(part, pa.int64())}
        )
        for part in offsets
    ]


def test_rows_that_come_once_pass_as_they_are() -> None:
    batches = batches_of([], [1, 2], [], [4, 5])
    assert list(once_each(iter(batches), RECORDS, KEY)) == batches


@pytest.mark.parametrize("offsets", [[[1, 4, 4]], [[1, 4], [4, 5]], [[4], [], [4]]])
def test_a_row_that_comes_twice_is_named_with_the_remedy(offsets: list[list[int]]) -> None:
    with pytest.raises(UsageError) as error:
        list(once_each(iter(batches_of(*offsets)), RECORDS, KEY))
    assert str(error.value) == (
        f"frames.losses: log_records has a row twice (topic_id {ID}, partition 3, offset 4): read each log once, or "
        'drop duplicates: log_records.dropDuplicates(["topic_id", "partition", "offset"])'
    )


def test_duplicates_in_any_order_are_named() -> None:
    rows = pa.table({"topic_id": [ID, "B", ID], "partition": [0, 0, 0], "offset": [7, 7, 7]})
    with pytest.raises(UsageError, match=rf"has a row twice \(topic_id {ID}, partition 0, offset 7\)"):
        refuse_duplicates(rows, RECORDS, KEY)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.one_of(st.integers(0, 3), LARGE), st.one_of(st.just(1), LARGE))))
def test_a_duplicate_is_found_where_there_is_one(rows: list[tuple[str, int, int]]) -> None:
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    kinds = (pa.string(), pa.int64(), pa.int64())
    names = ["group_id", "first_offset", "last_offset"]
    table = pa.table([pa.array(values, kind) for values, kind in zip(columns, kinds, strict=True)], names=names)
    row = duplicate_row(table, names)
    if row is None:
        assert len(set(rows)) == len(rows)
    else:
        assert rows[row] in rows[:row]


def test_topics_that_can_match_nothing_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sharelens.frames.logs.checked", lambda rows, *_: rows)
    with pytest.raises(UsageError, match=r"topics is a text: pass a collection of names, \['orders-dlq'\]"):
        frames.dead_letters(None, topics="orders-dlq")
    with pytest.raises(
        UsageError, match="topics names __share_group_state: Kafka's internal topics hold no dead letters"
    ):
        frames.dead_letters(None, topics=["orders-dlq", "__share_group_state"])
