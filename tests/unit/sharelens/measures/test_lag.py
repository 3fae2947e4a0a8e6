"""Lag as small worked cases: state batches and ends in, figures out."""

from typing import Any

import pyarrow as pa
import pytest

from sharelens.measures import lag as measure
from sharelens.measures.schemas import LAG
from sharelens.measures.topics.extents import TOPIC_END
from sharelens.measures.topics.headers import begins_of
from state_model.columnar.schemas import SHARE_PARTITION_STATE

TOPIC = "AAAAAAAAAAAAAAAAAAAABQ"
STATES = {"open": 0, "ack": 2, "arching": 3, "arch": 4}
ABORTED = "4 of them are in no state batch: aborted records are counted and never logged"
Row = dict[str, Any]


def batches(text: str) -> list[Row]:
    """`230-233 ack, 237-237 arch` as state batches."""
    state_batches = []
    for part in filter(None, map(str.strip, text.split(","))):
        offsets, name = part.split()
        first, last = map(int, offsets.split("-"))
        state_batches.append(
            {"first_offset": first, "last_offset": last, "delivery_state": STATES[name], "delivery_count": 1}
        )
    return state_batches


def state(start: int, count: int, text: str = "", *, group: str = "g", partition: int = 0) -> Row:
    return {
        "group_id": group,
        "topic_id": TOPIC,
        "partition": partition,
        "log_topic_id": TOPIC,
        "state_partition": 0,
        "log_offset": 7,
        "log_time_ms": 1000,
        "leader_epoch": 1,
        "start_offset": start,
        "delivery_complete_count": count,
        "state_batches": batches(text),
        "below_log_start": False,
        "completeness": "complete",
    }


def end(offset: int | None, *, stable: int | None = None, inferred: int | None = None, partition: int = 0) -> Row:
    return {
        "topic_id": TOPIC,
        "partition": partition,
        "end_offset": offset,
        "end_offset_source": None if offset is None else "high_watermark",
        "last_stable_offset": offset if stable is None else stable,
        "end_offset_inferred": inferred,
    }


def measured(states: list[Row], ends: list[Row], *, end_of_now: bool = True) -> list[Row]:
    rows = pa.Table.from_pylist(states, schema=SHARE_PARTITION_STATE)
    lags = measure.lag(rows, pa.Table.from_pylist(ends, schema=TOPIC_END), {TOPIC: "orders"}, end_of_now=end_of_now)
    assert lags.schema.equals(LAG)
    return list(lags.to_pylist())


# start, count, state batches                               | end  stable | lag stable recounted naive  first incomplete
CASES = """
  100     0                                                 | 100   100   |   0      0         0     0        -
  100     0                                                 | 150   150   |  50     50        50    50      100
  100    10  100-109 ack                                    | 150   150   |  40     40        40    50      110
  100    10  100-104 ack, 105-109 arch                      | 110   110   |   0      0         0    10        -
  100    10  100-104 ack, 110-114 ack                       | 150   150   |  40     40        40    50      105
  100     5  100-104 open, 105-109 ack                      | 150   150   |  45     45        45    50      100
  100     5  100-104 arching, 105-109 arch                  | 150   150   |  45     45        45    50      100
  230     8  234-236 ack, 237-237 arch                      | 238   238   |   0      0         4     8        -
  100    10  100-109 ack                                    | 150   120   |  40     10        40    50      110
  100    10  100-104 ack, 130-134 ack                       | 150   120   |  40     15        40    50      105
  100    10  100-109 ack                                    | 150    90   |  40      0        40    50      110
  100    -1  100-104 ack                                    | 150   150   |   -      -        45    50      105
   -1    -1                                                 | 150   150   |   -      -         -     -        -
  100     0                                                 |   -     -   |   -      -         -     -      100
  100    40  100-139 ack                                    | 120   120   |   -      -         0    20        -
  100     0                                                 |  90    90   |   -      -         -     -        -
"""
FIGURES = ("lag", "lag_stable", "lag_recounted", "lag_naive", "first_incomplete_offset")


def number(word: str) -> int | None:
    return None if word == "-" else int(word)


@pytest.mark.parametrize("line", [line for line in CASES.splitlines() if line.strip()])
def test_the_figures_of(line):
    state_text, topic, expected = line.split("|")
    start, count, *rest = state_text.split(maxsplit=2)
    offset, stable = map(number, topic.split())
    (row,) = measured([state(int(start), int(count), *rest)], [end(offset, stable=stable)])
    assert [row[name] for name in FIGURES] == [number(word) for word in expected.split()]
    assert (row["unknown_reason"] is None) == (row["lag"] is not None)


@pytest.mark.parametrize(
    ("start", "count", "offset", "now", "reason"),
    [
        (-1, -1, 150, True, "start_offset_not_determined"),
        (100, -1, 150, True, "delivery_complete_count_not_logged"),
        (100, 0, None, True, "end_offset_unknown"),
        (100, 0, None, False, "end_offset_of_the_moment_not_logged"),
        (100, 0, 90, True, "end_offset_older_than_the_state"),
    ],
)
def test_an_unknown_lag_has_its_reason(start, count, offset, now, reason):
    (row,) = measured([state(start, count)], [end(offset)], end_of_now=now)
    assert (row["lag"], row["unknown_reason"]) == (None, reason)


@pytest.mark.parametrize(
    ("states", "ends", "why"),
    [
        (state(100, 0), end(150), None),
        (state(100, 1, "105-105 ack"), end(150), "1 offset from the start offset on done"),
        (
            state(100, 5, "100-104 ack"),
            end(150),
            "5 offsets from the start offset on done; the logged start offset trails the real one by a write",
        ),
        (
            state(230, 8, "234-236 ack, 237-237 arch"),
            end(238),
            f"8 offsets from the start offset on done; {ABORTED}",
        ),
        (state(100, 0, "105-106 ack"), end(150), "state batches hold 2 offsets as done that are not counted"),
        (state(100, 0), end(150, stable=140), "10 offsets in or behind an open transaction"),
    ],
)
def test_what_makes_the_figures_differ_is_told(states, ends, why):
    (row,) = measured([states], [ends])
    assert row["why"] == why


@pytest.mark.parametrize(("guess", "expected"), [(130, 130), (90, 115), (None, None)])
def test_an_inferred_end_is_never_below_what_had_been_delivered(guess, expected):
    (row,) = measured([state(100, 10, "100-109 ack, 110-114 open")], [end(None, inferred=guess)], end_of_now=False)
    assert row["end_offset_inferred"] == expected
    assert row["lag_inferred"] == (None if expected is None else expected - 110)
    assert row["lag"] is None


def test_rows_keep_to_their_own_partition_and_order():
    states = [state(0, 0, partition=1), state(5, 2, "5-6 ack"), state(0, 0, partition=2, group="h")]
    rows = measured(states, [end(10), end(20, partition=1)])
    assert [row["lag"] for row in rows] == [20, 3, None]
    assert [row["topic"] for row in rows] == ["orders"] * 3


def test_the_newest_batch_is_one_from_the_start_offset_on_whichever_groups_are_measured_together():
    rows = measured([state(3, 0), state(7, 0), state(-1, 0)], [{**end(7), "newest_batch_ms": 500}])
    assert [row["newest_batch_ms"] for row in rows] == [500, None, None]


def test_offsets_may_be_as_large_as_they_get():
    (row,) = measured([state(0, 0, f"0-{2**62} ack")], [end(2**62 + 5)])
    assert (row["lag"], row["lag_recounted"]) == (2**62 + 5, 4)


def test_no_share_partition_has_no_row():
    assert measured([], [end(10)]) == []


def test_a_user_partition_begins_to_matter_at_its_smallest_start_offset():
    states = [state(7, 0), state(3, 0, group="h"), state(-1, -1, group="i"), state(-1, -1, partition=1)]
    rows = pa.Table.from_pylist(states, schema=SHARE_PARTITION_STATE)
    assert begins_of(rows) == {(TOPIC, 0): 3}


def test_a_group_without_a_start_offset_shows_no_end_whatever_other_groups_have_read() -> None:
    other, unread = state(12, 0, group="a"), state(-1, 0, group="g")
    with_other = measured([other, unread], [end(40)])
    assert with_other[0]["end_offset"] == 40
    assert with_other[1] == measured([unread], [])[0]
    assert with_other[1]["unknown_reason"] == "start_offset_not_determined"
