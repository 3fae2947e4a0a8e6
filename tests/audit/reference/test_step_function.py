"""Step functions say of each offset what the batches say; the replay's algebra agrees, by another algorithm."""

from hypothesis import given

from state_model.batches import coalesce, combine
from state_model.rule_sets import KAFKA_4_4
from state_model.share_records import StateBatch
from tests.audit.reference import step_function
from tests.audit.reference.step_function import Span
from tests.logs.replay_logs import BATCHES


def pointwise(batches, offset):
    values = [
        (batch.delivery_count, batch.delivery_state)
        for batch in batches
        if batch.first_offset <= offset <= batch.last_offset
    ]
    return max(values, default=None)


@given(BATCHES)
def test_each_offset_has_the_largest_value_of_its_batches(batches):
    function = step_function.of_batches(batches)
    offsets = range(-1, 32)
    assert list(step_function.values_at(function, offsets)) == [pointwise(batches, offset) for offset in offsets]


@given(BATCHES, BATCHES)
def test_the_spans_that_touch_another_function_have_all_values_of_its_offsets(left_batches, right_batches):
    ours, theirs = step_function.of_batches(left_batches), step_function.of_batches(right_batches)
    touching = step_function.touching(ours, theirs)
    inside = range(theirs[0].first, theirs[-1].last + 1) if theirs else ()
    assert list(step_function.values_at(touching, inside)) == [pointwise(left_batches, offset) for offset in inside]
    assert set(touching) <= set(ours)


@given(BATCHES, BATCHES)
def test_the_maximum_is_what_the_replay_combines(left_batches, right_batches):
    function = step_function.maximum(step_function.of_batches(left_batches), step_function.of_batches(right_batches))
    combined = coalesce(combine(left_batches, right_batches, 3, rules=KAFKA_4_4))
    expected = tuple(
        StateBatch(span.first, span.last, span.value[1], span.value[0]) for span in step_function.cut_below(function, 3)
    )
    assert combined == expected


def test_offsets_are_not_enumerated():
    whole_function = (Span(0, (1 << 63) - 1, (1, 2)),)
    assert step_function.terminal_offsets(whole_function) == (1 << 63) - 1
    assert step_function.first_lower(whole_function, ()) == (0, (1, 2), None)
    assert step_function.cut_below(whole_function, 1 << 62) == (Span(1 << 62, (1 << 63) - 1, (1, 2)),)


@given(BATCHES, BATCHES)
def test_the_first_difference_is_the_first_offset_that_differs(left_batches, right_batches):
    ours, theirs = step_function.of_batches(left_batches), step_function.of_batches(right_batches)
    unequal = [offset for offset in range(40) if pointwise(left_batches, offset) != pointwise(right_batches, offset)]
    different = step_function.first_difference(ours, theirs)
    assert (different[0] if different else None) == (unequal[0] if unequal else None)
