"""Leader epochs of a log: where the records of each end."""

from hypothesis import given
from hypothesis import strategies as st

from sharelens.kafka_log.leader_epochs import below, end_offset_for, latest

EPOCHS = st.dictionaries(st.integers(0, 9), st.integers(0, 20), max_size=5).map(
    lambda entries: tuple(zip(sorted(entries), sorted(entries.values()), strict=True))
)


@given(epochs=EPOCHS, epoch=st.integers(-1, 12), grown=st.integers(0, 5))
def test_an_epoch_ends_where_the_next_higher_one_starts(epochs, epoch, grown):
    end_offset = (epochs[-1][1] if epochs else 0) + grown
    largest, end = end_offset_for(epochs, epoch, end_offset)
    if not epochs or not 0 <= epoch <= latest(epochs):
        assert (largest, end) == (-1, -1)
        return
    higher = [start for other, start in epochs if other > epoch]
    lower = [other for other, _ in epochs if other <= epoch]
    assert end == (higher[0] if higher else end_offset)
    assert largest == (max(lower) if lower else epoch)


@given(epochs=EPOCHS, offset=st.integers(0, 25))
def test_epochs_below_an_offset_are_those_that_start_there(epochs, offset):
    lower_epochs = below(epochs, offset)
    assert lower_epochs == epochs[: len(lower_epochs)]
    assert all(start < offset for _, start in lower_epochs)
    assert all(start >= offset for _, start in epochs[len(lower_epochs) :])
