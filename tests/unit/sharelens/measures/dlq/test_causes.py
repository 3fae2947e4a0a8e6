"""Causes by dead letters, as small worked cases and against an offset by offset model."""

import itertools

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sharelens.measures.dlq.causes import with_letter_causes, without_letter_causes
from sharelens.measures.dlq.schemas import DLQ_RECONCILIATION
from sharelens.measures.schemas import POISON_RECORD
from sharelens.measures.topics.headers import NoRecords

LIFE = {"group_id": "g", "topic_id": "t", "partition": 0, "state_partition": 3, "life_log_offset": 7}
REJECTED, LIMIT = "rejected", "delivery_limit"


def poison(*runs, **extra_columns):
    row = {**LIFE, "delivery_count": 2, "cause": "unknown", "log_offset": 9, "completeness": "complete"}
    rows = [{**row, "first_offset": first, "last_offset": last, **extra_columns} for first, last in runs]
    return pa.Table.from_pylist(rows, schema=POISON_RECORD)


def letters(causes, **extra_columns):
    row = {**LIFE, "status": "matched", "cause_source": "dead_letter", "dlq_offset": 1, "completeness": "complete"}
    rows = [
        {**row, "first_offset": offset, "last_offset": offset, "cause": cause, **extra_columns}
        for offset, cause in causes
    ]
    return pa.Table.from_pylist(rows, schema=DLQ_RECONCILIATION)


def lines(poison_rows):
    assert poison_rows.schema.equals(POISON_RECORD)
    return [
        f"{r['first_offset']}-{r['last_offset']} {r['cause']} by {r['cause_source']}" for r in poison_rows.to_pylist()
    ]


def test_a_run_is_cut_where_letters_tell_more():
    dead_letters = letters([(6, REJECTED), (7, REJECTED), (9, LIMIT)])
    assert lines(with_letter_causes(poison((5, 9)), dead_letters)) == [
        "5-5 unknown by None",
        "6-7 rejected by dead_letter",
        "8-8 unknown by None",
        "9-9 delivery_limit by dead_letter",
    ]


def test_a_letter_of_another_life_or_state_partition_tells_nothing():
    for other in ({"life_log_offset": 8}, {"state_partition": 1}, {"group_id": "h"}):
        assert lines(with_letter_causes(poison((5, 6)), letters([(5, REJECTED)], **other))) == ["5-6 unknown by None"]


def test_what_configuration_tells_gives_way_to_the_letter():
    with_causes = with_letter_causes(
        poison((5, 5), cause=LIMIT, cause_source="configuration"), letters([(5, REJECTED)])
    )
    assert lines(with_causes) == ["5-5 rejected by dead_letter"]


def test_causes_that_no_dead_letter_told_are_left_alone():
    inferred = letters([(5, REJECTED)], cause_source="inferred")
    missing = letters([(6, REJECTED)], dlq_offset=None)
    assert lines(with_letter_causes(poison((5, 6)), pa.concat_tables([inferred, missing]))) == ["5-6 unknown by None"]


def no_headers(begins):
    return NoRecords()


def archiving(*runs):
    """Rows that were on their way to a dead letter, delivered twice, with an unknown limit."""
    return poison(*runs, archiving_ms=5, delivery_state=4)


def test_without_letters_the_rows_are_those_before_the_cut():
    rows = archiving((5, 9), (12, 12))
    with_causes = with_letter_causes(rows, letters([(6, REJECTED), (7, LIMIT), (12, REJECTED)]))
    assert with_causes.num_rows == 5
    assert without_letter_causes(with_causes, no_headers) == rows
    assert without_letter_causes(rows, no_headers) == rows


def test_a_letter_that_comes_later_joins_the_run_before():
    with_causes = with_letter_causes(archiving((5, 9)), letters([(6, REJECTED)]))
    later = letters([(6, REJECTED), (7, REJECTED)])
    assert with_letter_causes(with_causes, later) == with_letter_causes(archiving((5, 9)), later)


def test_a_letter_that_moved_to_another_life_leaves_nothing_behind():
    rows = archiving((5, 9))
    with_causes = with_letter_causes(rows, letters([(6, REJECTED)]))
    moved = letters([(6, REJECTED)], life_log_offset=8)
    assert with_letter_causes(without_letter_causes(with_causes, no_headers), moved) == rows


def test_rows_of_a_lake_that_differ_by_run_alone_are_joined_under_the_later_one():
    rows = archiving((5, 6), (7, 7))
    rows = rows.append_column("run_id", pa.array([1, 2])).append_column("is_final", pa.array([True, False]))
    with_causes = with_letter_causes(rows, letters([(5, REJECTED), (6, REJECTED), (7, REJECTED)]))
    assert with_causes.select(["first_offset", "last_offset", "run_id", "is_final"]).to_pylist() == [
        {"first_offset": 5, "last_offset": 7, "run_id": 2, "is_final": False}
    ]


@given(
    st.dictionaries(st.integers(0, 12), st.sampled_from([REJECTED, LIMIT])),
    st.dictionaries(st.integers(0, 12), st.sampled_from([REJECTED, LIMIT])),
)
def test_in_two_steps_as_in_one(first_causes, causes):
    rows = archiving((0, 3), (5, 9), (11, 12))
    with_causes = with_letter_causes(rows, letters(sorted(first_causes.items())))
    again = with_letter_causes(without_letter_causes(with_causes, no_headers), letters(sorted(causes.items())))
    assert again == with_letter_causes(rows, letters(sorted(causes.items())))


@given(
    st.dictionaries(st.integers(0, 40), st.sampled_from([REJECTED, LIMIT])),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), max_size=4),
)
def test_runs_say_of_each_offset_what_its_letter_says(causes, gaps):
    runs, at = [], 0
    for size, gap in gaps:
        runs.append((at, at + size))
        at += size + gap + 1
    with_causes = with_letter_causes(poison(*runs), letters(sorted(causes.items())))
    rows = with_causes.to_pylist()
    cause_by_offset = {
        offset: row["cause"] for row in rows for offset in range(row["first_offset"], row["last_offset"] + 1)
    }
    offsets = [offset for first, last in runs for offset in range(first, last + 1)]
    assert cause_by_offset == {offset: causes.get(offset, "unknown") for offset in offsets}
    assert sum(row["last_offset"] - row["first_offset"] + 1 for row in rows) == len(offsets)
    starts = {first for first, _ in runs}
    neighbours = itertools.pairwise(rows)
    assert all(b["first_offset"] in starts or a["cause"] != b["cause"] for a, b in neighbours)
