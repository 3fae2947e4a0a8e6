"""What is a dead letter, what its headers say, and what is kept of it."""

import hashlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.kafka_log.dead_letter_records import (
    DLQ_RECORD,
    FAULTS,
    LETTER,
    NAMES,
    DeadLetterTopics,
    letters_of,
    typed_letters,
    without_digests,
)
from sharelens.kafka_log.schemas import HEADER
from tests.logs.dead_letter_logs import Headers, letter_headers
from tests.logs.log_rows import log_rows


def records(*headers: Headers, values: list[bytes | None] | None = None, control: list[bool] | None = None):
    """LOG_RECORD rows with these headers."""
    rows = log_rows([b"k"] * len(headers), values or [b"v"] * len(headers), control=control)
    lists = pa.array(
        [[{"key": key, "value": value} for key, value in record_headers] for record_headers in headers],
        pa.list_(HEADER),
    )
    columns = [lists if name == "headers" else rows.column(name) for name in rows.schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def typed(*headers: Headers):
    letters = letters_of(records(*headers), keep_values=False)
    rows = typed_letters(pa.Table.from_batches([letters]))
    assert rows.schema.equals(DLQ_RECORD)
    return rows.to_pylist()


def described(row):
    return [row[name] for name in ("group_id", "topic", "partition", "offset", "delivery_count", "cause")]


def without(name: str) -> Headers:
    return [header for header in letter_headers(7) if header[0] != f"__dlq.errors.{name}"]


def test_topics_are_those_named_and_those_with_the_prefix():
    dead_letter_topics = DeadLetterTopics(names=frozenset({"letters", "__letters"}))
    names = ("dlq.a", "letters", "orders", "__letters", "dlqx")
    assert [topic for topic in names if dead_letter_topics.takes(topic)] == ["dlq.a", "letters"]
    assert not DeadLetterTopics(prefix=None).takes("dlq.a")


def test_the_six_headers_are_typed():
    (row,) = typed(letter_headers(7))
    assert described(row) == ["g", "orders", 0, 7, 1, "rejected"]
    assert row["header_problem"] is None


def test_the_cause_is_the_broker_s_message_and_another_message_is_no_cause():
    rows = typed(
        letter_headers(1, message="Offset delivery count exceeded the threshold."), letter_headers(2, message="x")
    )
    assert [row["cause"] for row in rows] == ["delivery_limit", "unknown"]


def test_a_record_without_any_of_the_headers_is_no_dead_letter_and_neither_is_a_control_record():
    rows = records([("trace", b"1")], letter_headers(1), [], letter_headers(2), control=[False, False, False, True])
    assert letters_of(rows, keep_values=True).column("offset").to_pylist() == [101]


def test_keys_and_values_are_kept_as_size_and_hash_unless_they_are_asked_for():
    rows = records(letter_headers(1), letter_headers(2), values=[b"secret", None])
    (first, second) = letters_of(rows, keep_values=False).to_pylist()
    assert (first["key"], first["value"], first["value_size_bytes"]) == (None, None, 6)
    assert first["value_sha256"] == hashlib.sha256(b"secret").hexdigest()
    assert (second["value_size_bytes"], second["value_sha256"]) == (None, None)
    assert letters_of(rows, keep_values=True).column("value").to_pylist() == [b"secret", None]


def test_of_the_headers_only_the_six_are_kept_even_with_values():
    rows = letters_of(records([("password", b"secret"), *letter_headers(1)]), keep_values=True)
    assert [header["key"] for header in rows.column("headers")[0].as_py()] == [f"__dlq.errors.{name}" for name in NAMES]


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        (without("offset"), "offset missing"),
        ([*letter_headers(7), ("__dlq.errors.group", b"other")], "group duplicated"),
        ([("__dlq.errors.group", None), *without("group")], "group null"),
        (letter_headers(7, topic="t" * 250), "topic too_long"),
        (letter_headers(7, group=b"\xff"), "group not_utf8"),
        (letter_headers(7, partition="one"), "partition not_a_number"),
        (letter_headers(7, partition="-1"), "partition not_a_number"),
        (letter_headers(7, partition="01"), "partition not_a_number"),
        (letter_headers(7, partition=2**31), "partition out_of_range"),
        (letter_headers(2**63), "offset out_of_range"),
        (letter_headers(7, delivery_count=32_768), "delivery.count out_of_range"),
        (letter_headers(7, delivery_count=b""), "delivery.count not_a_number"),
        (letter_headers(7, message=b"\xff" * 1_001), "message too_long"),
    ],
)
def test_a_header_that_can_t_be_read_is_null_and_named(headers: Headers, problem: str):
    name = problem.split(maxsplit=1)[0]
    column = {"group": "group_id", "delivery.count": "delivery_count"}.get(name, name)
    row, fine = typed(headers, letter_headers(8))
    assert row["header_problem"] == problem
    assert row[column] is None
    assert [row[other] for other in ("group_id", "topic", "partition", "offset") if other != column] == [
        value
        for other, value in {"group_id": "g", "topic": "orders", "partition": 0, "offset": 7}.items()
        if other != column
    ]
    assert described(fine) == ["g", "orders", 0, 8, 1, "rejected"]


def test_the_largest_numbers_are_numbers():
    (row,) = typed(letter_headers(2**63 - 1, partition=2**31 - 1, delivery_count=32_767))
    assert described(row)[2:5] == [2**31 - 1, 2**63 - 1, 32_767]


def test_several_faults_are_all_named():
    (row,) = typed([("__dlq.errors.offset", b"x"), ("__dlq.errors.topic", b"orders")])
    assert row["header_problem"] == (
        "partition missing; offset not_a_number; group missing; delivery.count missing; message missing"
    )


@given(
    st.lists(st.lists(st.tuples(st.sampled_from(NAMES), st.none() | st.binary(max_size=25)), max_size=8), max_size=6)
)
def test_no_header_bytes_make_it_fail(headers):
    rows = typed(*[[(f"__dlq.errors.{name}", value) for name, value in record_headers] for record_headers in headers])
    assert len(rows) == sum(bool(record_headers) for record_headers in headers)
    for row in rows:
        is_complete = all(row[name] is not None for name in ("group_id", "topic", "partition", "offset", "message"))
        assert (row["header_problem"] is None) == (is_complete and row["delivery_count"] is not None)
        faults = (row["header_problem"] or "").split("; ")
        assert all(not fault or fault.rsplit(" ", 1)[1] in FAULTS for fault in faults)


def test_rows_of_internal_topics_have_no_digests():
    rows = without_digests(log_rows([b"k"], [b"v"]))
    assert rows.schema.equals(LETTER)
    assert rows.to_pylist()[0]["value_sha256"] is None


def test_no_letters_are_no_rows():
    assert typed() == []
