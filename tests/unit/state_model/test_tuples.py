"""Named tuples made in one step."""

from state_model.share_records import StateBatch
from state_model.tuples import maker


def test_what_a_maker_makes_is_what_the_class_makes():
    batch = maker(StateBatch)((1, 5, 2, 3, ()))
    assert batch == StateBatch(first_offset=1, last_offset=5, delivery_state=2, delivery_count=3)
    assert type(batch) is StateBatch
    assert batch.last_offset == 5
