"""The histories that a kernel computes are those that the reference computes record by record."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.schemas import GROUP_RECORD
from measures.group_histories import streams_histories
from measures.streams_columns import many_streams_histories

PARTITIONS = st.lists(st.integers(0, 4), max_size=3)
SUBTOPOLOGIES = st.sampled_from(["0", "1", "10", "é"])
INT32S = st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(-1, 4)
EPOCHS = st.integers(-1, 4)
TASKS = st.lists(st.fixed_dictionaries({"subtopologyId": SUBTOPOLOGIES, "partitions": PARTITIONS}), max_size=2)


@st.composite
def tasks_with_epochs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Tasks of a current assignment: in any order, perhaps twice, with epochs for all of them or not."""
    entries = draw(TASKS)
    for entry in entries:
        count = draw(st.sampled_from([len(entry["partitions"])] * 3 + [1]))
        if draw(st.booleans()):
            entry["assignmentEpochs"] = draw(st.none() | st.lists(EPOCHS, min_size=count, max_size=count))
    return entries


METADATA = st.fixed_dictionaries(
    {"epoch": EPOCHS, "metadataHash": st.sampled_from([0, 7, -(1 << 63)])},
    optional={
        "validatedTopologyEpoch": EPOCHS,
        "lastAssignmentConfigs": st.none()
        | st.just([])
        | st.sampled_from(["1", "x", "99999999999"]).map(
            lambda value: [{"key": "num.standby.replicas", "value": value}]
        ),
    },
)
MEMBER = st.fixed_dictionaries(
    {
        "instanceId": st.none() | st.just("i"),
        "rackId": st.none() | st.just("r"),
        "clientId": st.sampled_from(["a", "b"]),
        "clientHost": st.just("/h"),
        "rebalanceTimeoutMs": st.just(300_000),
        "topologyEpoch": EPOCHS,
        "processId": st.sampled_from(["p", "q"]),
        "userEndpoint": st.none() | st.just({"host": "h", "port": 65535}),
        "clientTags": st.just([]) | st.just([{"key": "k", "value": "v\n"}]),
    }
)
TARGET = st.fixed_dictionaries({"assignmentEpoch": EPOCHS}, optional={"assignmentTimestamp": st.integers(0, 2)})
MEMBER_TARGET = st.fixed_dictionaries({"activeTasks": TASKS, "standbyTasks": TASKS, "warmupTasks": TASKS})
ASSIGNMENT = st.fixed_dictionaries(
    {
        "memberEpoch": EPOCHS,
        "previousMemberEpoch": EPOCHS,
        "state": st.sampled_from([1, 1, 1, 2, 3, 127, -5]),
        **{
            f"{kind}Tasks{status}": tasks_with_epochs()
            for status in ("", "PendingRevocation")
            for kind in ("active", "standby", "warmup")
        },
    }
)
TOPOLOGY = st.fixed_dictionaries({"epoch": EPOCHS, "subtopologies": st.just([])})
VALUES = {17: METADATA, 19: MEMBER, 20: TARGET, 21: MEMBER_TARGET, 22: ASSIGNMENT, 23: TOPOLOGY}
OF_MEMBERS = (19, 21, 22)


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    """A record of a streams group; most have a value that is decoded."""
    kind = draw(st.sampled_from([17, 19, 20, 21, 22, 22, 22, 23]))
    form = draw(st.sampled_from(["value"] * 7 + ["tombstone"] * 2 + ["undecoded"]))
    return {
        "log_topic_id": "t",
        "partition": draw(st.sampled_from([0, 0, 0, 1])),
        "timestamp_ms": draw(st.integers(0, 9)),
        "record_type": kind,
        "record_name": "r",
        "group_id": draw(st.sampled_from("gh")),
        "member_id": draw(st.sampled_from(["m", "n", "o"])) if kind in OF_MEMBERS else None,
        "value_version": None,
        "is_tombstone": form == "tombstone",
        "value_json": json.dumps(draw(VALUES[kind]), ensure_ascii=False) if form == "value" else None,
        "below_log_start": False,
        "uncommitted": draw(st.sampled_from([False, False, True])),
    }


def records_of(log: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist([{**row, "log_offset": at} for at, row in enumerate(log)], schema=GROUP_RECORD)


def check(records: pa.Table) -> None:
    for expected, rows in zip(streams_histories(records), many_streams_histories(records), strict=True):
        assert rows.to_pylist() == expected.to_pylist()
        assert rows.schema.equals(expected.schema, check_metadata=True)


@given(st.lists(rows(), min_size=1, max_size=40))
def test_rows_are_those_of_the_reference(log: list[dict[str, Any]]) -> None:
    check(records_of(log))


@given(st.lists(rows(), min_size=1, max_size=20))
def test_rows_of_groups_that_are_computed_apart_are_the_same(log: list[dict[str, Any]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("measures.streams_columns.BIN_BYTES", 8)
        patch.setattr("measures.streams_columns.SLICE_ROWS", 2)
        check(records_of(log))


def test_json_with_line_breaks_is_read_too() -> None:
    values = [
        {"memberEpoch": 1, "previousMemberEpoch": 0, "state": 1}
        | {
            f"{kind}Tasks{status}": [{"subtopologyId": "0", "partitions": [1]}] if kind == "active" else []
            for status in ("", "PendingRevocation")
            for kind in ("active", "standby", "warmup")
        }
    ]
    row = {
        "log_topic_id": "t", "partition": 0, "timestamp_ms": 1, "record_type": 22, "record_name": "r", "group_id": "g",
        "member_id": "m", "value_version": 0, "is_tombstone": False, "value_json": json.dumps(values[0], indent=1),
        "below_log_start": False, "uncommitted": False,
    }  # fmt: skip
    check(records_of([row]))
    assert many_streams_histories(records_of([row])).tasks.num_rows == 2
