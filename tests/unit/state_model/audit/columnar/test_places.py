"""The number of state partitions is inferred from the places of share partitions; those elsewhere are misplaced."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.audit.columnar.places import placement
from state_model.java import partition_for

KEYS = [(f"group-{number}", "AAAAAAAAAAAAAAAAAAAABQ", number % 5) for number in range(60)]


def placed(pairs):
    keys = pa.table(
        {
            "group_id": [key[0] for key, _ in pairs],
            "topic_id": [key[1] for key, _ in pairs],
            "partition": pa.array([key[2] for key, _ in pairs], pa.int32()),
        }
    )
    return placement(keys, np.array([state_partition for _, state_partition in pairs], np.int64))


def test_a_healthy_cluster_has_none():
    for count in (1, 3, 50, 4000):
        result = placed([(key, partition_for(*key, count)) for key in KEYS])
        assert len(result.misplaced) == 0
        assert result.other_count is None


def test_a_misplaced_share_partition_is_found_with_its_place():
    pairs = [(key, partition_for(*key, 50)) for key in KEYS]
    pairs[7] = (KEYS[7], (pairs[7][1] + 1) % 50)
    result = placed(pairs)
    assert (result.count, result.misplaced.tolist(), result.other_count) == (50, [7], None)
    assert result.expected[7] == partition_for(*KEYS[7], 50)


def test_a_changed_number_is_one_cause_of_many():
    pairs = [(key, partition_for(*key, 60 if number < 12 else 50)) for number, key in enumerate(KEYS)]
    result = placed(pairs)
    assert (result.count, result.other_count) == (50, 60)
    assert 0 < len(result.misplaced) <= 12


def test_few_share_partitions_decide_nothing():
    for pairs in ([], [(KEYS[0], 3)], [(KEYS[0], 3), (KEYS[1], 49)]):
        assert len(placed(pairs).misplaced) == 0


@pytest.mark.slow
@given(groups=st.lists(st.text(), max_size=20))
def test_every_name_has_the_place_that_java_gives_it(groups):
    keys = [*KEYS, *((group, KEYS[0][1], number) for number, group in enumerate(groups))]
    places = [partition_for(*key, 50) for key in keys]
    result = placed(list(zip(keys, places, strict=True)))
    assert (result.count, result.expected.tolist()) == (50, places)
