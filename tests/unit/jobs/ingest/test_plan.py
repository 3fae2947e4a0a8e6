"""What a run takes of a partition, by what its copies offer and what the books say."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.errors import ClusterMismatchError, IntervalHoleError
from jobs.ingest import plan
from jobs.ingest.plan import Extent
from jobs.ingest.superseding import Divergence
from sharelens.kafka_log.layout import LogDirectory, scan_log_directory
from sharelens.kafka_log.union import LogPartition, unite
from tests.logs.batch_files import state_batches, state_directory
from tests.logs.state_logs import START_MS, STATE_TOPIC, snapshot, update
from tools.log_writer.writer import write_checkpoints

STORY = [snapshot(), *(update(batches=[(n, n, 2, 1)], at_ms=START_MS + 10 * n) for n in range(1, 10))]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return state_directory(tmp_path / "logs", state_batches(STORY))


def partition_of(*directories: Path) -> LogPartition:
    (partition,) = unite([scan_log_directory(str(directory)) for directory in directories])
    return partition


def planned(
    partition: LogPartition, held_extents: list[dict[str, Any]] | None = None, **plan_options: Any
) -> Extent | None:
    options: dict[str, Any] = {"content": "log_record", "include_uncommitted": False, **plan_options}
    extents = plan.plan([partition], held_extents or [], **options)
    return extents[0] if extents else None


def taken_by(extent: Extent, run: int = 1, **changed_fields: Any) -> list[dict[str, Any]]:
    """The books after an extent was read whole."""
    rows = plan.extent_rows([extent], cluster_id="c", run=run, until_ms=None, read_until_ms=None)
    return [{**row, "status": "taken", **changed_fields} for row in rows]


def not_none(extent: Extent | None) -> Extent:
    assert extent is not None
    return extent


def test_a_first_run_takes_everything(logs: Path) -> None:
    extent = not_none(planned(partition_of(logs)))
    assert (extent.ranges, extent.end, extent.late, extent.held_back) == (((0, 10),), 10, False, 0)


def test_nothing_new_is_nothing_to_do(logs: Path) -> None:
    partition = partition_of(logs)
    assert planned(partition, taken_by(not_none(planned(partition)))) is None


def test_only_what_is_new_is_taken(logs: Path, tmp_path: Path) -> None:
    before = partition_of(state_directory(tmp_path / "before", state_batches(STORY[:4])))
    held_extents = taken_by(not_none(planned(before)))
    extent = not_none(planned(partition_of(logs), held_extents))
    assert (extent.ranges, extent.from_offset, extent.late) == (((4, 10),), 4, False)


def test_an_older_part_that_comes_later_is_late(logs: Path, tmp_path: Path) -> None:
    newer = partition_of(state_directory(tmp_path / "newer", state_batches(STORY)[6:]))
    held_extents = taken_by(not_none(planned(newer)), gaps=[{"first_offset": 0, "last_offset": 5, "reason": "pruned"}])
    extent = not_none(planned(partition_of(logs), held_extents))
    assert (extent.ranges, extent.late) == (((0, 6),), True)


@pytest.mark.parametrize(("committed", "end", "held_back"), [(4, 4, 6), (10, 10, 0), (99, 10, 0)])
def test_the_high_watermark_is_the_end(logs: Path, committed: int, end: int, held_back: int) -> None:
    write_checkpoints(logs, high_watermarks={(STATE_TOPIC, 0): committed})
    extent = not_none(planned(partition_of(logs)))
    assert (extent.end, extent.held_back) == (end, held_back)


def test_a_file_without_a_line_holds_everything_back_and_says_how_much(logs: Path) -> None:
    write_checkpoints(logs, high_watermarks={("other", 0): 4})
    partition = partition_of(logs)
    extent = not_none(planned(partition))
    assert (extent.ranges, extent.end, extent.held_back) == ((), 0, len(STORY))
    assert plan.held_back([partition], [], [extent]) == 0
    assert not_none(planned(partition, include_uncommitted=True)).end == len(STORY)


@pytest.mark.parametrize(
    ("until_ms", "end"), [(START_MS, 0), (START_MS + 1, 1), (START_MS + 40, 4), (START_MS + 999, 10)]
)
def test_until_cuts_by_log_time(logs: Path, until_ms: int, end: int) -> None:
    extent = planned(partition_of(logs), until_ms=until_ms)
    assert (0 if extent is None else extent.end) == end


def test_a_run_without_until_notes_that_the_log_ends_where_an_interval_did(logs: Path) -> None:
    first = taken_by(not_none(planned(partition_of(logs), until_ms=START_MS + 999)), until_ms=START_MS + 999)
    assert planned(partition_of(logs), first, until_ms=START_MS + 1000) is None
    extent = not_none(planned(partition_of(logs), first))
    assert (extent.ranges, extent.from_offset, extent.end) == ((), 10, 10)
    assert planned(partition_of(logs), [*first, *taken_by(extent, run=2)]) is None


def test_until_refuses_to_go_on_behind_a_hole_whether_records_after_it_are_wanted_or_not(
    logs: Path, tmp_path: Path
) -> None:
    held_extents = taken_by(not_none(planned(partition_of(logs), until_ms=START_MS + 30)), until_ms=START_MS + 30)
    pruned = partition_of(state_directory(tmp_path / "pruned", state_batches(STORY)[6:]))
    with pytest.raises(IntervalHoleError, match=f"{STATE_TOPIC}-0 @ 3: no given directory holds the records 3 to 5"):
        planned(pruned, held_extents, until_ms=START_MS + 999)
    for until_ms in (START_MS + 31, START_MS + 60):
        with pytest.raises(IntervalHoleError, match="run once without --until"):
            planned(pruned, held_extents, until_ms=until_ms)
    assert not_none(planned(pruned, held_extents)).ranges == ((6, 10),)


def test_an_interval_that_was_covered_takes_nothing_whatever_was_pruned_since(logs: Path, tmp_path: Path) -> None:
    held_extents = taken_by(not_none(planned(partition_of(logs), until_ms=START_MS + 35)), until_ms=START_MS + 35)
    pruned = partition_of(state_directory(tmp_path / "pruned", state_batches(STORY)[6:]))
    held_extents[0]["log_time_ms"] = START_MS + 30
    for covered in (START_MS, START_MS + 30, START_MS + 35):
        assert not_none(planned(pruned, held_extents, until_ms=covered)).ranges == ()


def test_a_second_copy_closes_the_hole_and_a_log_that_was_pruned_before_the_first_run_has_none(
    logs: Path, tmp_path: Path
) -> None:
    first = not_none(planned(partition_of(logs), until_ms=START_MS + 30))
    newer = state_directory(tmp_path / "newer", state_batches(STORY)[6:])
    extent = not_none(planned(partition_of(logs, newer), taken_by(first), until_ms=START_MS + 70))
    assert (extent.ranges, extent.end) == (((3, 7),), 7)
    assert not_none(planned(partition_of(newer), until_ms=START_MS + 70)).ranges == ((6, 7),)


def test_below_the_floor_nothing_is_wanted(logs: Path) -> None:
    partition = partition_of(logs)
    extent = not_none(planned(partition, lowest={(partition.topic_id, 0): 7}))
    assert extent.ranges == ((7, 10),)


@pytest.mark.parametrize("copy_wins", [True, False])
def test_a_copy_that_contradicts_replaces_what_is_there_or_ends_before_it(
    copy_wins: bool, logs: Path, tmp_path: Path
) -> None:
    held_extents = taken_by(not_none(planned(partition_of(logs))))
    other = partition_of(state_directory(tmp_path / "other", state_batches(STORY[:9])))
    partition = Divergence(offset=6, copy_wins=copy_wins)
    extent = not_none(planned(other, held_extents, compare=lambda *_: partition))
    assert (extent.superseded_from, extent.ranges) == ((6, ((6, 9),)) if copy_wins else (None, ()))


def test_of_two_copies_that_win_the_earlier_offset_counts_even_if_it_is_the_first_of_all(
    logs: Path, tmp_path: Path
) -> None:
    held_extents = taken_by(not_none(planned(partition_of(logs))))
    copies = [state_directory(tmp_path / name, state_batches(STORY)) for name in ("a", "b")]
    offsets = iter([0, 5])
    extent = not_none(
        planned(
            partition_of(*copies), held_extents, compare=lambda *_: Divergence(offset=next(offsets), copy_wins=True)
        )
    )
    assert extent.superseded_from == 0


def with_epochs(directory: Path, *epochs: tuple[int, int]) -> LogPartition:
    partition = partition_of(directory)
    return replace(partition, copies=tuple(replace(copy, leader_epochs=epochs) for copy in partition.copies))


@pytest.mark.parametrize(
    ("epochs", "superseded_from", "ranges"),
    [
        pytest.param(((0, 0), (2, 7)), 7, ((7, 10),), id="truncated"),
        pytest.param(((0, 0), (2, 7), (4, 9)), 7, ((7, 10),), id="truncated, and led by another one since"),
        pytest.param(((0, 0), (2, 8)), None, ((8, 10),), id="grown under another leader"),
        pytest.param(((0, 0),), None, ((8, 10),), id="grown"),
        pytest.param(((0, 0), (2, 10)), None, ((8, 10),), id="an epoch without records"),
        pytest.param((), None, ((8, 10),), id="without a checkpoint"),
    ],
)
def test_a_source_that_was_truncated_supersedes_by_leader_epoch(
    logs: Path,
    tmp_path: Path,
    epochs: tuple[tuple[int, int], ...],
    superseded_from: int | None,
    ranges: tuple[tuple[int, int], ...],
) -> None:
    directory = state_directory(tmp_path / "before", state_batches(STORY[:8]))
    books = taken_by(not_none(planned(with_epochs(directory, (0, 0)))))
    directory.rename(tmp_path / "aside")
    logs.rename(directory)
    extent = not_none(planned(with_epochs(directory, *epochs), books))
    assert (extent.superseded_from, extent.ranges) == (superseded_from, ranges)
    assert extent.late is (superseded_from is not None)
    if superseded_from is not None:
        assert planned(with_epochs(directory, *epochs), books + taken_by(extent, run=2)) is None


def test_books_without_leader_epochs_supersede_nothing(logs: Path) -> None:
    books = taken_by(not_none(planned(with_epochs(logs, (0, 0)))), leader_epochs=None)
    assert planned(with_epochs(logs, (0, 0), (2, 7)), books) is None


def test_a_killed_run_asks_for_what_it_had_planned(logs: Path) -> None:
    extent = not_none(planned(partition_of(logs), until_ms=START_MS + 40))
    rows = plan.extent_rows([extent], cluster_id="c", run=1, until_ms=None, read_until_ms=None)
    (again,) = plan.resumed(rows, [])
    assert (again.ranges, again.end, again.late) == (extent.ranges, extent.end, extent.late)


def test_a_planned_partition_that_vanished_is_still_asked_for(logs: Path, tmp_path: Path) -> None:
    rows = plan.extent_rows(
        [not_none(planned(partition_of(logs)))], cluster_id="c", run=1, until_ms=None, read_until_ms=None
    )
    (logs / f"{STATE_TOPIC}-0").rename(tmp_path / "gone")
    (again,) = plan.resumed(rows, [])
    assert (again.partition.copies, again.ranges) == ((), ((0, 10),))


def directory(cluster_id: str | None, uri: str = "d") -> LogDirectory:
    return LogDirectory(uri=uri, source_id=uri, cluster_id=cluster_id, node_id=None, partitions=(), skipped=())


@pytest.mark.parametrize(
    ("ids", "option", "known_ids", "expected"),
    [
        (["a"], None, [], "a"),
        (["a", None], None, [], "a"),
        (["a"], "a", ["b"], "a"),
        ([None], None, [], "unknown"),
        ([None], None, ["unknown"], "unknown"),
        ([None], "b", ["b"], "b"),
    ],
)
def test_the_cluster_of_a_run(ids: list[str | None], option: str | None, known_ids: list[str], expected: str) -> None:
    assert plan.cluster_of([directory(cluster_id) for cluster_id in ids], option, known_ids) == expected


@pytest.mark.parametrize(
    ("ids", "option", "known_ids", "message"),
    [
        (["a"], "b", [], "is of cluster a"),
        ([None], None, ["a"], "say --cluster-id"),
    ],
)
def test_a_cluster_that_is_not_clear_is_refused(
    ids: list[str | None], option: str | None, known_ids: list[str], message: str
) -> None:
    directories = [directory(cluster_id, uri=str(number)) for number, cluster_id in enumerate(ids)]
    with pytest.raises(ClusterMismatchError, match=message):
        plan.cluster_of(directories, option, known_ids)


def test_a_rebuild_takes_nothing_and_starts_over(logs: Path) -> None:
    held_extents = taken_by(not_none(planned(partition_of(logs))))
    (row,) = plan.rebuild_rows(held_extents, "decode", run=2, until_ms=None)
    assert (row["from_offset"], row["end_offset_exclusive"], row["rebuild"], row["status"]) == (10, 10, True, "planned")


def test_the_weight_of_a_range_is_its_share_of_the_bytes(logs: Path) -> None:
    partition = partition_of(logs)
    size = partition.copies[0].segments[0].size_bytes
    extent = not_none(planned(partition))
    assert plan.weight(extent, 0, 10) == size
    assert plan.weight(extent, 0, 5) == size // 2
    assert plan.weight(extent, 3, 3) == 1
