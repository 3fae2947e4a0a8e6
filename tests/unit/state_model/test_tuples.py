"""Named tuples made in one step."""

from state_model.share_records import StateBatch
from state_model.tuples import maker


def test_what_a_maker_makes_is_what_the_class_makes():
    made = maker(StateBatch)((1, 5, 2, 3, ()))
    assert made == StateBatch(first_offset=1, last_offset=5, delivery_state=2, delivery_count=3)
    assert type(made) is StateBatch
    assert made.last_offset == 5
