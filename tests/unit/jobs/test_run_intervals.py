"""Runs up to one time after the other are one run to the last: every table is a function of the evidence alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.errors import IntervalHoleError
from jobs.publish import current_versions
from sharelens.lake.lake import Lake
from sharelens.lake.scan import open_lake
from tests.datasets import dataset
from tests.depths import examples, in_soak
from tests.lakes import assert_same
from tests.logs.batch_files import state_batches, state_directory
from tests.logs.state_logs import START_MS, STATE_TOPIC, snapshot, tombstone, update, write_state_partition
from tests.logs.user_topics import ORDERS_RECORDS, RECORDS_A_BATCH, headers, write_orders
from tests.processes.in_process import TO_SILVER, make_lake, recorded_lake
from tools.log_writer.writer import write_checkpoints

pytestmark = pytest.mark.slow


@pytest.mark.soak
@pytest.mark.parametrize(
    "name",
    ["dlq", *in_soak("admin", "basic", "edge", "streams", "timeouts", "transactions")],
)
def test_three_intervals_of_a_recorded_log_are_one_run(name: str, tmp_path: Path) -> None:
    logs, one_run_lake = dataset(name) / "logs", recorded_lake(name)
    times = sorted(open_lake(one_run_lake).scan("silver.share_record").column("log_time_ms").to_pylist())
    parts = Lake(tmp_path / "parts")
    for until_ms in (times[len(times) // 3], times[2 * len(times) // 3], None):
        assert make_lake(parts, logs, until_ms=until_ms).counts["bronze.log_record"] > 0
    assert headers(one_run_lake)
    assert_same(tmp_path / "parts", one_run_lake)


RECORDS = st.one_of(
    st.builds(snapshot, st.sampled_from("gh"), st.integers(0, 1), start=st.integers(-1, ORDERS_RECORDS)),
    st.builds(update, st.sampled_from("gh"), st.integers(0, 1), start=st.integers(-1, ORDERS_RECORDS)),
    st.builds(tombstone, st.sampled_from("gh"), st.integers(0, 1)),
)


@pytest.mark.soak
@examples("lake")
@given(
    stories=st.lists(st.lists(RECORDS, min_size=1, max_size=8), min_size=1, max_size=4),
    steps_ms=st.lists(st.integers(-20, 40), min_size=12, max_size=12),
    cuts=st.lists(st.integers(-5, 250), min_size=2, max_size=2).map(sorted),
)
def test_any_three_intervals_are_one_run(
    stories: list[list[dict[str, Any]]],
    steps_ms: list[int],
    cuts: list[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("intervals")
    for number, story in enumerate(stories):
        at_ms = START_MS
        timed = []
        for record, step_ms in zip(story, steps_ms[number:], strict=False):
            at_ms += step_ms
            timed.append(record | {"timestamp_ms": at_ms})
        write_state_partition(folder / "logs", timed, number=number)
    write_orders(folder / "logs", 0)
    write_orders(folder / "logs", 1)
    make_lake(folder / "whole", folder / "logs")
    parts = Lake(folder / "parts")
    for until_ms in (START_MS + cuts[0], START_MS + cuts[1], None):
        make_lake(parts, folder / "logs", until_ms=until_ms)
    assert_same(folder / "parts", folder / "whole")


@pytest.mark.soak
def test_a_run_without_until_audits_where_the_log_ends_though_nothing_is_new(tmp_path: Path) -> None:
    """Kafka has pruned the snapshot of g; that none follows is known of a log that was read to its end."""
    logs = tmp_path / "logs"
    write_state_partition(logs, [update("g", start=0), snapshot("h", start=0)], base_offset=7)
    write_orders(logs)
    make_lake(tmp_path / "whole", logs)
    assert (
        "needed_snapshot_pruned" in open_lake(tmp_path / "whole").scan("gold.audit_finding").column("rule").to_pylist()
    )
    for until_ms in (START_MS + 10, None, None):
        make_lake(tmp_path / "parts", logs, until_ms=until_ms)
    assert_same(tmp_path / "parts", tmp_path / "whole")


def runs(tmp_path: Path, *stories: Sequence[dict[str, Any]]) -> Path:
    """A lake of one run after the other, each over a longer state log and the topic `orders`."""
    lake = Lake(tmp_path / "lake")
    for number, story in enumerate(stories):
        logs = state_directory(tmp_path / f"logs-{number}", state_batches(story))
        write_orders(logs)
        make_lake(lake, logs, stages=TO_SILVER)
    return tmp_path / "lake"


def test_a_group_that_begins_lower_later_fetches_the_older_headers_and_none_twice(tmp_path: Path) -> None:
    story = [snapshot("g", start=12), update("g", start=38), snapshot("h", start=3)]
    lake = runs(tmp_path, story[:1], story[:2], story)
    assert headers(lake) == [(0, first, first + 4) for first in range(0, ORDERS_RECORDS, RECORDS_A_BATCH)]


def test_headers_below_every_start_offset_are_not_taken(tmp_path: Path) -> None:
    story = [snapshot("g", start=30), update("g", start=38), tombstone("g"), snapshot("g", start=33)]
    lake = runs(tmp_path, story)
    assert headers(lake) == [(0, 30, 34), (0, 35, 39)]


def test_without_a_start_offset_nothing_is_wanted_of_a_topic(tmp_path: Path) -> None:
    assert headers(runs(tmp_path, [snapshot("g", start=-1)])) == []


def test_a_directory_that_comes_after_its_groups_were_deleted_is_read_all_the_same(tmp_path: Path) -> None:
    story = [snapshot("g", start=21), tombstone("g")]
    alone = state_directory(tmp_path / "alone", state_batches(story))
    make_lake(tmp_path / "lake", alone, stages=TO_SILVER)
    write_orders(tmp_path / "other")
    make_lake(tmp_path / "lake", tmp_path / "other", stages=TO_SILVER)
    assert headers(tmp_path / "lake") == [(0, first, first + 4) for first in (20, 25, 30, 35)]


def test_a_batch_that_the_high_watermark_cuts_is_replaced_once_it_is_committed(tmp_path: Path) -> None:
    logs = state_directory(tmp_path / "logs", state_batches([snapshot("g", start=0)]))
    write_orders(logs)
    for committed in (12, ORDERS_RECORDS):
        write_checkpoints(logs, high_watermarks={(STATE_TOPIC, 0): 1, ("orders", 0): committed})
        make_lake(tmp_path / "lake", logs, include_uncommitted=True, stages=TO_SILVER)
    assert headers(tmp_path / "lake") == [(0, first, first + 4) for first in range(0, ORDERS_RECORDS, RECORDS_A_BATCH)]
    assert not any(open_lake(tmp_path / "lake").scan("bronze.topic_batch").column("uncommitted").to_pylist())


@pytest.mark.soak
def test_an_interval_behind_lost_records_changes_nothing_and_a_run_without_until_records_the_gap(
    tmp_path: Path,
) -> None:
    lake = tmp_path / "lake"
    batches = state_batches([snapshot("g"), *(update("g", at_ms=START_MS + n) for n in range(1, 9))])
    make_lake(lake, state_directory(tmp_path / "logs", batches), until_ms=START_MS + 3)
    pruned = state_directory(tmp_path / "pruned", batches[6:])
    before = current_versions(Lake(lake))
    with pytest.raises(IntervalHoleError, match="@ 3: no given directory holds the records 3 to 5"):
        make_lake(lake, pruned, until_ms=START_MS + 8)
    assert current_versions(Lake(lake)) == before
    assert make_lake(lake, pruned, until_ms=START_MS + 3).counts.get("bronze.log_record", 0) == 0
    summary = make_lake(lake, pruned)
    assert (summary.counts["bronze.log_record"], summary.lost_offsets) == (3, 3)
