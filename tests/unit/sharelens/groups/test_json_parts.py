"""Lists of tasks and partitions from JSON: the kernel reads what the decoder writes, Python what else JSON may be."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.groups import json_parts
from sharelens.groups.json_parts import PartReader
from sharelens.groups.task_numbers import name_of, partition_of, status_of, type_of

TARGET, ASSIGNMENT, SHARE_TARGET = 21, 22, 13
FORMS: dict[str, Callable[[Any], str]] = {
    "as the decoder": lambda value: json.dumps(value, ensure_ascii=False),
    "without blanks": lambda value: json.dumps(value, separators=(",", ":")),
    "with line breaks": lambda value: json.dumps(value, indent=2),
    "in another order": lambda value: json.dumps(dict(reversed(value.items()))),
}
TASK_LISTS = [
    f"{kind}Tasks{suffix}" for suffix in ("", "PendingRevocation") for kind in ("active", "standby", "warmup")
]
names = st.sampled_from(["0", "1", "10", "é", 'a"b', "line\n", "\\"])
partitions = st.lists(st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(0, 9), max_size=4, unique=True)


@st.composite
def items(draw: st.DrawFn) -> dict[str, Any]:
    """Tasks of a subtopology, with one epoch for each, another number of epochs, null, or no epochs."""
    task_partitions = draw(partitions)
    epochs = draw(st.sampled_from([[*range(len(task_partitions))], [7], [], None]))
    return {"subtopologyId": draw(names), "partitions": task_partitions} | draw(
        st.sampled_from([{"assignmentEpochs": epochs}, {}])
    )


assignments = st.fixed_dictionaries(
    dict.fromkeys(("memberEpoch", "previousMemberEpoch", "state"), st.integers(-1, 1 << 31))
    | dict.fromkeys(TASK_LISTS, st.lists(items(), max_size=2, unique_by=lambda item: item["subtopologyId"]))
)


def expected(value: dict[str, Any]) -> list[tuple[int, int, str, int, int]]:
    """(status, type, subtopology, partition, epoch) of the tasks of an assignment, as the reference reads them."""
    rows = []
    pending = {}
    for place, name in reversed(list(enumerate(TASK_LISTS))):
        for item in value[name]:
            epochs = item.get("assignmentEpochs")
            if epochs is None or len(epochs) != len(item["partitions"]):
                epochs = [value["memberEpoch"]] * len(item["partitions"])
            for partition, epoch in zip(item["partitions"], epochs, strict=True):
                task = item["subtopologyId"], partition
                if name == "activeTasksPendingRevocation":
                    pending[task] = epoch
                is_active = place % 3 == 0
                rows.append((place // 3, place % 3, *task, pending.get(task, epoch) if is_active else 0))
    return sorted(rows)


def read(texts: list[str], record_type: int) -> list[list[tuple[int, int, str, int, int]]]:
    reader = PartReader()
    half = len(texts) // 2
    reader.read(pa.chunked_array([texts[:half], texts[half:]], pa.string()), np.arange(len(texts)), record_type)
    sorted_names, (lists,) = reader.lists()
    assert sorted_names.to_pylist() == sorted(sorted_names.to_pylist())
    rows = [
        (
            int(status_of(number)),
            int(type_of(number)),
            sorted_names[int(name_of(number))].as_py(),
            int(partition_of(number)),
            int(epoch),
        )
        for number, epoch in zip(lists.numbers, lists.epochs, strict=True)
    ]
    return [rows[begin:end] for begin, end in zip(lists.at, lists.at[1:], strict=False)]


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(list(FORMS)), assignments), min_size=1, max_size=4))
def test_each_form_of_json_gives_the_tasks(values: list[tuple[str, dict[str, Any]]]) -> None:
    texts = [FORMS[form](value) for form, value in values]
    assert read(texts, ASSIGNMENT) == [expected(value) for _, value in values]


def test_the_integers_of_an_assignment_come_by_field() -> None:
    values = [
        {"memberEpoch": n, "previousMemberEpoch": n - 1, "state": 3} | dict.fromkeys(TASK_LISTS, ()) for n in (0, 8)
    ]
    texts = pa.chunked_array([[json.dumps(value) for value in values]])
    assert PartReader().read(texts, np.arange(2), ASSIGNMENT).tolist() == [[0, 8], [-1, 7], [3, 3]]


def test_there_is_room_for_many_names_and_parts() -> None:
    topics = [f"{number}-{'x' * number}" for number in range(300)]
    value = {"topicPartitions": [{"topicId": name, "partitions": [*range(5)]} for name in topics]}
    (rows,) = read([json.dumps(value, separators=(",", ":"))], SHARE_TARGET)
    assert rows == sorted((0, 0, name, partition, 0) for name in topics for partition in range(5))


def test_the_kernel_reads_what_the_decoder_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_parts, "json", None)
    active = [{"subtopologyId": "1", "partitions": [2]}, {"subtopologyId": "é", "partitions": []}]
    assert read([json.dumps(dict.fromkeys(TASK_LISTS[:3], active), ensure_ascii=False)], TARGET) == [
        [(0, kind, "1", 2, 0) for kind in range(3)]
    ]


@given(assignments, st.data())
def test_damaged_json_is_refused(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value)
    place = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises((ValueError, KeyError)):
        read([text[:place]], ASSIGNMENT)
