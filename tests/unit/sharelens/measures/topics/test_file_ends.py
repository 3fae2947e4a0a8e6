"""End offsets of a file: which topic a name means, and whether they count."""

import pyarrow as pa
import pytest

from sharelens.measures.topics.extents import TOPIC_END
from sharelens.measures.topics.file_ends import FROM_FILE, ends_by_id, with_end_offsets

ENDS = pa.Table.from_pylist(
    [
        {"topic_id": "a", "partition": 0, "end_offset": 10, "end_offset_source": "high_watermark",
         "last_stable_offset": 8},
        {"topic_id": "b", "partition": 0, "end_offset": None},
    ],
    schema=TOPIC_END,
)  # fmt: skip
NAMES = {"a": "orders", "b": "payments"}


@pytest.mark.parametrize(
    ("offset", "only_higher", "end", "source", "stable"),
    [
        (12, False, 12, FROM_FILE, None),
        (12, True, 12, FROM_FILE, None),
        (9, False, 9, FROM_FILE, None),
        (9, True, 10, "high_watermark", 8),
        (10, True, 10, "high_watermark", 8),
        (10, False, 10, FROM_FILE, 8),
    ],
)
def test_an_end_replaces_the_known_one_or_raises_it(
    offset: int, only_higher: bool, end: int, source: str, stable: int | None
) -> None:
    row = with_end_offsets(ENDS, {("orders", 0): offset}, NAMES, only_higher=only_higher).to_pylist()[0]
    assert (row["end_offset"], row["end_offset_source"], row["last_stable_offset"]) == (end, source, stable)


def test_an_unknown_end_and_a_partition_without_evidence_get_theirs() -> None:
    rows = with_end_offsets(ENDS, {("payments", 0): 3, ("payments", 1): 4, ("other", 0): 5}, NAMES, only_higher=True)
    ends = {(row["topic_id"], row["partition"]): row["end_offset"] for row in rows.to_pylist()}
    assert ends == {("a", 0): 10, ("b", 0): 3, ("b", 1): 4}


def test_a_name_of_several_topics_means_the_one_in_the_evidence() -> None:
    names = {"a": "orders", "b": "orders"}
    assert ends_by_id({("orders", 0): 7}, names, [("b", 0)]) == {("b", 0): 7}
    assert ends_by_id({("orders", 0): 7}, names, [("a", 0), ("b", 0)]) == {}
