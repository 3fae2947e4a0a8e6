"""How far back the state log reaches."""

from sharelens.measures.dlq.reach import whole_since_ms


def test_no_records_are_missing_from_where_the_last_cut_state_partition_begins():
    assert whole_since_ms([]) is None
    assert whole_since_ms([(0, 50)]) < 0
    assert whole_since_ms([(0, 50), (7, 20), (3, 30)]) == 30
