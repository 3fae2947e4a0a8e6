"""Which log offsets the evidence lacks, by the books of a lake and by the copies of a log."""

import itertools
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.evidence.losses import (
    Damage,
    gap_reason,
    in_order,
    losses_of_extents,
    losses_of_undecodable,
    losses_up_to,
)
from sharelens.evidence.schemas import DECODED_FROM
from state_model.columnar.values import Loss
from tests.logs.log_rows import TOPIC_ID, log_rows
from tests.logs.state_logs import ORDERS_ID, encoded_records, snapshot, update
from tests.unit.sharelens.evidence.test_coverage import extent as taken_extent
from tests.unit.sharelens.evidence.test_coverage import gap


def extent(run: int, first: int, end: int, **fields: Any) -> dict[str, Any]:
    return {"status": "taken", "content": "log_record", **taken_extent(run, first, end, **fields)}


def ranges_of(*rows: dict[str, Any], **options: Any) -> list[tuple[int, int, str]]:
    return [(loss.first_offset, loss.last_offset, loss.reason) for loss in losses_of_extents(rows, **options)]


def test_a_gap_is_a_loss_with_its_reason() -> None:
    assert ranges_of(extent(1, 0, 10, gaps=[gap(5, 5, "gap"), gap(0, 2, "pruned")])) == [
        (0, 2, "pruned"),
        (5, 5, "gap"),
    ]


def test_a_gap_that_another_copy_filled_is_none() -> None:
    assert ranges_of(extent(1, 0, 10, gaps=[gap(3, 6, "gap")]), extent(2, 3, 6)) == [(6, 6, "gap")]


def test_offsets_taken_above_the_high_watermark_fill_nothing() -> None:
    first = extent(1, 0, 10, gaps=[gap(5, 7, "gap")])
    assert ranges_of(first, extent(2, 5, 8, committed_end=5)) == [(5, 7, "gap")]


def test_a_planned_extent_and_batch_headers_count_for_nothing() -> None:
    planned = extent(1, 0, 9, gaps=[gap(0, 8)], status="planned")
    headers = extent(1, 0, 9, gaps=[gap(0, 8)], content="topic_batch")
    assert ranges_of(planned, headers) == []


def test_what_was_covered_before_a_later_log_took_its_place_is_a_loss_where_that_log_has_a_gap() -> None:
    assert ranges_of(extent(1, 0, 9), extent(2, 5, 9, source="two", superseded_from=5, gaps=[gap(6, 7)])) == [
        (6, 7, "quarantined")
    ]


def test_gaps_of_one_reason_that_touch_are_one_loss_whichever_runs_met_them() -> None:
    assert ranges_of(extent(1, 0, 6, gaps=[gap(4, 5, "gap")]), extent(2, 6, 9, gaps=[gap(6, 6, "gap")])) == [
        (4, 6, "gap")
    ]


def test_of_several_reasons_the_latest_run_knows_best() -> None:
    early, late = extent(1, 0, 9, gaps=[gap(2, 5, "pruned")]), extent(2, 0, 9, source="two", gaps=[gap(4, 4)])
    assert ranges_of(early, late, runs=(1, 1)) == [(2, 5, "pruned")]
    late = extent(2, 3, 9, source="two", committed_end=3, gaps=[gap(4, 4)])
    assert ranges_of(early, late) == [(2, 3, "pruned"), (4, 4, "quarantined"), (5, 5, "pruned")]


def test_only_gaps_of_the_runs_count_and_every_run_up_to_the_last_fills() -> None:
    rows = extent(1, 0, 9, gaps=[gap(2, 4, "gap")]), extent(2, 9, 12, gaps=[gap(9, 9, "gap")]), extent(3, 9, 10)
    assert ranges_of(*rows, runs=(2, 2)) == [(9, 9, "gap")]
    assert ranges_of(*rows, runs=(2, 3)) == []
    assert ranges_of(*rows, runs=(0, 3)) == [(2, 4, "gap")]


GAPS = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 4), st.sampled_from(["gap", "pruned", "quarantined"])).map(
        lambda drawn: gap(drawn[0], drawn[0] + drawn[1], drawn[2])
    ),
    max_size=3,
)
EXTENTS = st.lists(
    st.tuples(st.integers(1, 4), st.sampled_from(["one", "two"]), st.integers(0, 12), st.integers(0, 12), GAPS),
    max_size=5,
    unique_by=lambda drawn: drawn[:2],
).map(
    lambda drawn: [
        extent(run, first, first + size, source=source, gaps=[g for g in gaps if first <= g["first_offset"]])
        for run, source, first, size, gaps in drawn
    ]
)


@given(EXTENTS.flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows))))
def test_losses_are_disjoint_in_any_order_of_the_extents(
    both_orders: tuple[list[dict[str, Any]], ...],
) -> None:
    rows, permuted = both_orders
    losses = losses_of_extents(rows)
    assert losses == losses_of_extents(permuted)
    assert all(earlier.last_offset < later.first_offset for earlier, later in itertools.pairwise(losses))


@dataclass(frozen=True)
class Segment:
    base_offset: int


@dataclass(frozen=True)
class Copy:
    """What a copy of a log says of where it begins."""

    segments: tuple[Segment, ...]
    remote_below: bool = False


LOCAL, REMOTE, EMPTY = Copy((Segment(30),)), Copy((Segment(30),), remote_below=True), Copy(())
LOG_START = 20


@pytest.mark.parametrize(
    ("lost", "damages", "copies", "reason"),
    [
        pytest.param((32, 35), [], (LOCAL,), "gap", id="nothing explains it"),
        pytest.param((22, 30), [], (LOCAL,), "pruned", id="below the first segment of every copy"),
        pytest.param((22, 31), [], (LOCAL,), "gap", id="a copy reaches below its end"),
        pytest.param((2, 20), [], (EMPTY,), "pruned", id="below the log start"),
        pytest.param((22, 30), [], (LOCAL, REMOTE), "remote", id="the older part is tiered"),
        pytest.param((32, 45), [(34, 35, "crc_mismatch")], (LOCAL,), "quarantined", id="a broken batch"),
        pytest.param((32, 45), [(34, 35, "truncated")], (LOCAL,), "truncated", id="a torn end"),
        pytest.param((32, 34), [(34, 35, "truncated")], (LOCAL,), "gap", id="damage beside it"),
        pytest.param((32, 35), [], (), "vanished", id="no copy left"),
        pytest.param((32, 35), [], (EMPTY,), "gap", id="a copy without a segment"),
    ],
)
def test_the_reason_of_a_gap(
    lost: tuple[int, int], damages: list[Damage], copies: tuple[Any, ...], reason: str
) -> None:
    assert gap_reason(lost, damages, copies, LOG_START) == reason


@given(st.permutations([(3, 5, "truncated"), (2, 9, "bad_header"), (4, 6, "vanished"), (2, 9, "crc_mismatch")]))
def test_of_several_damages_the_lowest_counts_in_any_order(damages: list[Damage]) -> None:
    assert gap_reason((4, 5), damages, (LOCAL,), 0) == "quarantined"


def test_a_record_that_cannot_be_decoded_is_a_loss_of_its_own_share_partition() -> None:
    story = [snapshot(), update("h", 2, damage="value_version"), update("g", 1, damage="value_version")]
    keys, values, _ = zip(*encoded_records(story), strict=True)
    rows = pa.Table.from_batches([log_rows([*keys, b"\0"], [*values, b""])])
    bronze = ds.dataset(rows.append_column("cluster_id", pa.repeat("c", rows.num_rows)))
    quarantined = pa.Table.from_pylist(
        [
            {"cluster_id": "c", "topic_id": TOPIC_ID, "partition": 3, "first_offset": offset, "file": file}
            for offset, file in ((102, DECODED_FROM), (101, DECODED_FROM), (103, DECODED_FROM), (100, "x.log"))
        ]
    )
    losses = losses_of_undecodable(lambda: bronze, quarantined)
    assert losses == {
        ("c", TOPIC_ID, 3): [
            _loss(101, "h", 2),
            _loss(102, "g", 1),
            Loss(first_offset=103, last_offset=103, reason="quarantined"),
        ]
    }
    assert losses_of_undecodable(lambda: None, quarantined) == {}
    assert losses_of_undecodable(pytest.fail, quarantined.slice(0, 0)) == {}


def _loss(offset: int, group: str, partition: int) -> Loss:
    return Loss(
        first_offset=offset,
        last_offset=offset,
        reason="quarantined",
        group_id=group,
        topic_id=ORDERS_ID,
        partition=partition,
    )


def test_losses_of_a_prefix_begin_in_it() -> None:
    losses = in_order([_loss(9, "g", 0), _loss(4, "g", 0)])
    assert [loss.first_offset for loss in losses] == [4, 9]
    assert losses_up_to(losses, 8) == losses[:1]
    assert losses_up_to(losses, -1) == []
    assert losses_up_to(losses, None) == losses
