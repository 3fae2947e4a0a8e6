"""Where share partitions belong: the inferred number of state partitions, and what is misplaced when none fits."""

import functools

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sharelens.evidence.placement import LARGEST_COUNT, fitting_counts, is_ambiguous, placed, possible_counts
from state_model.columnar.schemas import PLACED_STATE, SHARE_PARTITION_STATE
from state_model.java import partition_for

TOPIC = "AAECAwQFBgcICQoLDA0ODw"
OLD_LOG, NEW_LOG = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
COUNTS = st.integers(1, 300)
GROUPS = st.lists(st.text(max_size=8), unique=True, min_size=1, max_size=12)


def row(group, place, *, at_ms, created_ms=None, offset=0, log=OLD_LOG):
    """A row whose last record was an update at `at_ms`, or with `created_ms` a snapshot of that content."""
    filled = {field.name: 0 for field in SHARE_PARTITION_STATE if not field.nullable}
    return filled | {
        "group_id": group,
        "topic_id": TOPIC,
        "partition": 0,
        "log_topic_id": log,
        "state_partition": place,
        "log_offset": offset + 1,
        "log_time_ms": at_ms,
        "snapshot_log_offset": offset if created_ms is None else offset + 1,
        "create_timestamp_ms": 0 if created_ms is None else created_ms,
        "state_batches": [],
        "below_log_start": False,
        "completeness": "complete",
    }


def home(group, count):
    return partition_for(group, TOPIC, 0, count)


def state(rows):
    return pa.Table.from_pylist(rows, schema=SHARE_PARTITION_STATE)


def misplaced(rows):
    """(group, state partition, log) of the rows that are marked."""
    states = placed(state(rows)).to_pylist()
    return {
        (of_key["group_id"], of_key["state_partition"], of_key["log_topic_id"])
        for of_key in states
        if of_key["misplaced"]
    }


def fitting(rows):
    """The numbers of state partitions that put every row where it is."""
    return functools.reduce(
        lambda counts, of_key: fitting_counts(counts, (of_key["group_id"], TOPIC, 0), of_key["state_partition"]),
        rows,
        possible_counts(max(of_key["state_partition"] for of_key in rows)),
    )


@given(GROUPS, COUNTS)
def test_the_number_that_a_log_was_written_with_always_fits(groups, count):
    rows = [row(group, home(group, count), at_ms=number) for number, group in enumerate(groups)]
    assert count in fitting(rows)
    assert misplaced(rows) == set()


@given(GROUPS, st.tuples(COUNTS, COUNTS).map(sorted), st.data())
def test_after_the_number_grew_exactly_the_rows_left_behind_are_misplaced(groups, counts, data):
    before, after = counts
    moved = data.draw(st.sets(st.sampled_from(groups)))
    stale = [row(group, home(group, before), at_ms=number) for number, group in enumerate(groups)]
    fresh = [row(group, home(group, after), at_ms=1000 + number) for number, group in enumerate(sorted(moved))]
    stale_groups = {group for group in moved if home(group, before) != home(group, after)}
    rows = [of_key for of_key in stale if of_key["group_id"] not in moved - stale_groups] + fresh
    assert is_ambiguous(state(rows)) == bool(stale_groups)
    if stale_groups:
        assert len(fitting(rows)) == 0
    order = data.draw(st.permutations(rows))
    assert misplaced(order) == {(group, home(group, before), OLD_LOG) for group in stale_groups}


def test_snapshots_that_only_repeat_the_state_bring_nothing_back():
    # The old state partition's coordinator goes on writing snapshots of what it holds: later than anything else.
    groups = [f"g{number}" for number in range(20)]
    moved = [group for group in groups if home(group, 5) != home(group, 7)]
    stale = [row(group, home(group, 5), at_ms=9000, created_ms=10) for group in moved]
    fresh = [row(group, home(group, 7), at_ms=8000, created_ms=2000) for group in moved]
    assert len(moved) > 5
    assert misplaced(stale + fresh) == {(group, home(group, 5), OLD_LOG) for group in moved}


def test_a_late_write_to_the_old_place_does_not_outweigh_what_the_newest_records_say():
    groups = [group for group in (f"g{number}" for number in range(40)) if home(group, 5) != home(group, 7)]
    fresh = [row(group, home(group, 7), at_ms=8000 + number) for number, group in enumerate(groups)]
    straggler = row(groups[0], home(groups[0], 5), at_ms=8005)
    assert misplaced([straggler, *fresh]) == {(groups[0], home(groups[0], 5), OLD_LOG)}


def test_where_no_row_lies_where_the_newest_records_say_the_last_change_counts():
    groups = [f"g{number}" for number in range(20)]
    rows = [row(group, home(group, 7), at_ms=5000) for group in groups[1:]]
    elsewhere = sorted({*range(7)} - {home("g0", 7)})[:2]
    misplaced_rows = [row("g0", place, at_ms=1000 + number) for number, place in enumerate(elsewhere)]
    assert misplaced(rows + misplaced_rows) == {("g0", elsewhere[0], OLD_LOG)}


def test_a_creation_time_after_the_records_own_is_not_believed():
    stale, fresh = home("g", 5), home("g", 7)
    assert stale != fresh
    rows = [row("g", stale, at_ms=1000, created_ms=1 << 62), row("g", fresh, at_ms=2000)]
    assert misplaced(rows) == {("g", stale, OLD_LOG)}


def test_an_older_incarnation_of_the_state_topic_gives_way_and_says_nothing_about_the_newer_one():
    rows = [
        row("g", 299, at_ms=1000),
        row("only-old", 7, at_ms=1500),
        row("g", home("g", 7), at_ms=2000, log=NEW_LOG),
        row("h", home("h", 7), at_ms=2000, log=NEW_LOG),
    ]
    assert misplaced(rows) == {("g", 299, OLD_LOG)}


def test_an_absurd_index_costs_no_memory():
    assert len(possible_counts(2**31 - 1)) <= LARGEST_COUNT
    assert possible_counts(2**31 - 1)[0] == 2**31
    assert misplaced([row("g", 2**31 - 1, at_ms=2), row("g", 0, at_ms=1)]) == {("g", 0, OLD_LOG)}


def test_nothing_at_all_is_not_misplaced():
    assert placed(SHARE_PARTITION_STATE.empty_table()).schema == PLACED_STATE
    assert not is_ambiguous(SHARE_PARTITION_STATE.empty_table())
