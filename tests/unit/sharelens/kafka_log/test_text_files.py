"""The small text files: there and back, and what Kafka would not write is named with its line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.kafka_log import text_files
from sharelens.kafka_log.errors import CheckpointError

TOPIC_ID = "K51Cxa-PRr201FlO_cKcVQ"
partitions = st.tuples(st.from_regex(r"[a-zA-Z0-9._-]{1,20}", fullmatch=True), st.integers(0, (1 << 31) - 1))


@given(st.dictionaries(partitions, st.integers(0, (1 << 63) - 1), max_size=10))
def test_offsets_of_partitions_come_back(offsets):
    assert text_files.parse_partition_offsets(text_files.format_partition_offsets(offsets), "x") == offsets


@given(st.sets(st.integers(0, (1 << 31) - 1), max_size=8), st.data())
def test_leader_epochs_come_back(epochs, data):
    starts = data.draw(st.lists(st.integers(0, 1 << 60), min_size=len(epochs), max_size=len(epochs)))
    entries = tuple(zip(sorted(epochs), sorted(starts), strict=True))
    assert text_files.parse_leader_epochs(text_files.format_leader_epochs(entries), "x") == entries


def test_partition_metadata_comes_back():
    assert text_files.parse_topic_id(text_files.format_partition_metadata(TOPIC_ID), "x") == TOPIC_ID


@pytest.mark.parametrize("text", ["", "topic_id: short", f"id: {TOPIC_ID}"])
def test_metadata_without_an_id_is_refused(text):
    with pytest.raises(CheckpointError, match=r"^here: |^here has"):
        text_files.parse_topic_id(text, "here")


@pytest.mark.parametrize("text", ["1\n0\n", "0\nmany\n", "0\n2\na 0 1\n", "0\n1\na 0\n", f"0\n1\na 0 {1 << 63}\n"])
def test_broken_checkpoints_are_refused(text):
    with pytest.raises(CheckpointError, match="here"):
        text_files.parse_partition_offsets(text, "here")


def test_epochs_that_do_not_ascend_are_refused():
    with pytest.raises(CheckpointError, match="ascend"):
        text_files.parse_leader_epochs("0\n2\n4 0\n2 9\n", "here")
