"""The rows of a history that the life of a record needs, and the row groups that hold them."""

import itertools

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.lake.bounded_scan import Bounds
from sharelens.questions.traces.events import (
    SCALARS,
    TurningRowGroups,
    in_place,
    life_events,
    rows_of_places,
    turning_rows,
)
from state_model.columnar.keys import PLACE_KEY
from state_model.columnar.schemas import SHARE_PARTITION_HISTORY

OFFSET = 10
SCHEMA = pa.schema([SHARE_PARTITION_HISTORY.field(name) for name in SCALARS])
STEPS = st.lists(
    st.tuples(
        st.sampled_from([("g", 0), ("g", 0), ("g", 0), ("g", 1), ("h", 0)]),
        st.sampled_from(["stay", "stay", "stay", "stay", "move", "back", "undetermined", "reset", "delete"]),
    ),
    max_size=40,
)
CUTS = st.lists(st.integers(0, 40), max_size=8)


def history(steps: list[tuple[tuple[str, int], str]]) -> pa.Table:
    """SCALARS rows in log order: what each step does to the share partition of a group and state partition."""
    rows = []
    states: dict[tuple[str, int], tuple[int, int | None]] = {}
    for log_offset, (place, step) in enumerate(steps):
        life, start = states.get(place, (log_offset, 0))
        if step == "reset" or start is None:
            life = log_offset
        start = {"move": OFFSET + 1, "back": 2, "undetermined": -1, "delete": None}.get(step, start or 0)
        states[place] = life, start
        rows.append(
            {
                "group_id": place[0],
                "topic_id": "t",
                "partition": 0,
                "state_partition": place[1],
                "log_offset": log_offset,
                "log_time_ms": log_offset * 10,
                "record_type": "tombstone" if step == "delete" else "snapshot" if life == log_offset else "update",
                "snapshot_epoch": 0 if life == log_offset else 1,
                "start_offset": start,
                "life_log_offset": life,
                "completeness": "complete",
            }
        )
    order = [("state_partition", "ascending"), ("log_offset", "ascending")]
    return pa.Table.from_pylist(rows, schema=SCHEMA).sort_by(order)


def parts_of(table: pa.Table, cuts: list[int]) -> list[pa.Table]:
    ends = sorted({0, *(cut % (table.num_rows + 1) for cut in cuts), table.num_rows})
    return [table.slice(first, end - first) for first, end in itertools.pairwise(ends)]


def events_by_place(table: pa.Table) -> list[list[dict[str, object]]]:
    return [list(life_events(rows, OFFSET)) for rows in rows_of_places(table)]


def bounds_of(part: pa.Table) -> dict[str, Bounds]:
    """What a footer says of a row group."""
    bounds = {}
    for name in SCALARS:
        column = part.column(name)
        if column.null_count < part.num_rows:
            extremes = pc.min_max(column)
            bounds[name] = Bounds(extremes["min"].as_py(), extremes["max"].as_py(), column.null_count > 0)
    return bounds


@pytest.mark.slow
@given(STEPS, CUTS, st.sets(st.integers(0, 40)))
def test_the_turning_rows_tell_the_same_life_and_hold_the_named_records(
    steps: list[tuple[tuple[str, int], str]], cuts: list[int], named: set[int]
) -> None:
    every = history(steps)
    named &= set(range(len(steps)))
    chosen_rows = turning_rows(parts_of(every, cuts), OFFSET, pa.chunked_array([pa.array(sorted(named), pa.int64())]))
    assert events_by_place(chosen_rows) == events_by_place(every)
    assert named <= set(chosen_rows.column("log_offset").to_pylist())
    for rows in rows_of_places(every):
        place_rows = chosen_rows.filter(in_place(rows.slice(0, 1).to_pylist()[0]))
        assert place_rows.column("log_time_ms").to_pylist()[-1] == rows.column("log_time_ms").to_pylist()[-1]


@pytest.mark.slow
@given(STEPS, CUTS, st.sets(st.integers(0, 40), max_size=3), st.integers(0, 3))
def test_the_row_groups_that_are_left_out_tell_nothing(
    steps: list[tuple[tuple[str, int], str]], cuts: list[int], named: set[int], dropped: int
) -> None:
    every = history(steps)
    log_offsets = pa.chunked_array([pa.array(sorted(named), pa.int64())])
    for rows in rows_of_places(every):
        first = rows.slice(0, 1).to_pylist()[0]
        place, is_near = in_place(first), pc.field("state_partition") == first["state_partition"]
        is_kept = ~place | (pc.field("log_offset") >= first["log_offset"] + dropped)  # retention drops the oldest
        kept_rows = every.filter(is_near & is_kept)
        parts = parts_of(kept_rows, cuts)
        choice = TurningRowGroups(OFFSET, log_offsets)
        needed = choice([bounds_of(part) for part in parts])
        place_parts = [part.filter(place) for part in parts]
        chosen_rows = turning_rows(itertools.compress(place_parts, needed), OFFSET, log_offsets)
        if not choice.suffice(chosen_rows):
            continue
        all_turning_rows = turning_rows(place_parts, OFFSET, log_offsets)
        assert events_by_place(chosen_rows) == events_by_place(all_turning_rows)
        theirs = kept_rows.filter(place).column("log_offset").to_pylist()
        assert named.intersection(theirs) <= set(chosen_rows.column("log_offset").to_pylist())


def test_a_long_life_among_others_costs_its_first_row_groups_and_the_turn() -> None:
    calm = [(("g", 0), "stay"), (("i", 0), "stay")] * 500
    every = history([*calm, *calm[:50], (("g", 0), "move"), (("i", 0), "move"), *calm])
    groups = parts_of(every, [])[0]
    pieces = [groups.slice(first, 100) for first in range(0, groups.num_rows, 100)]
    choice = TurningRowGroups(OFFSET, pa.chunked_array([[555]]))
    needed = choice([bounds_of(piece) for piece in pieces])
    assert list(itertools.compress(range(len(pieces)), needed)) == [0, 1, 5, 10, 11]
    in_group = pc.field("group_id") == "g"
    assert choice.suffice(pa.concat_tables([piece.filter(in_group) for piece in itertools.compress(pieces, needed)]))


def test_a_share_partition_without_a_row_before_those_left_out_needs_them() -> None:
    every = history([(("i", 0), "stay")] * 300)
    choice = TurningRowGroups(OFFSET, pa.chunked_array([[]], pa.int64()))
    assert choice([bounds_of(every.slice(first, 100)) for first in (0, 100, 200)]) == [True, True, False]
    assert not choice.suffice(every.slice(0, 0))
    assert not choice.suffice(every.slice(200))
    assert choice.suffice(every.slice(199))


def test_the_columns_of_a_place_come_first() -> None:
    assert SCALARS[: len(PLACE_KEY)] == tuple(PLACE_KEY)
