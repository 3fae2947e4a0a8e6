"""Copies of one log, in any order and together, give the lake of one clean read; contradictions are judged by epoch."""

import functools
import itertools
from collections import Counter
from pathlib import Path

import pytest

from jobs.errors import ClusterMismatchError
from sharelens.kafka_log.errors import CopyConflictError
from sharelens.lake.lake import Lake
from sharelens.lake.scan import open_lake
from state_model.errors import SharelensError
from state_model.topics import UNKNOWN_CLUSTER
from tests.datasets import dataset
from tests.depths import in_soak
from tests.lakes import assert_same, content, differences
from tests.logs.batch_files import (
    base_offset,
    batches_of,
    broken,
    copy_changed,
    state_batches,
    state_directory,
)
from tests.logs.state_logs import START_MS, STATE_TOPIC, snapshot, tombstone, update, write_log_directory
from tests.once import made_once
from tests.processes.in_process import TO_SILVER, make_lake
from tools.log_writer.writer import write_checkpoints

pytestmark = pytest.mark.slow

COPIES = ("logs-live", "logs-crashed", "logs")
STORY = [
    snapshot("g", start=0),
    snapshot("h", start=0),
    *(update("g", batches=[(n, n, 2, 1)], at_ms=START_MS + n) for n in range(6)),
    update("h", batches=[(0, 3, 4, 2)], at_ms=START_MS + 7),
    tombstone("h", at_ms=START_MS + 8),
    update("g", start=4, at_ms=START_MS + 9),
]
OTHER_END = [update("g", batches=[(n, n, 4, 3)], at_ms=START_MS + 50 + n) for n in range(4)]


def clean_lake(tmp_path: Path, logs: Path) -> Path:
    make_lake(tmp_path / "clean", logs, include_uncommitted=True)
    return tmp_path / "clean"


def clean_winner(winner: Path) -> Path:
    """The lake of the end of the log that is judged to be the log."""
    return made_once("lakes/copies-winner", lambda lake: make_lake(lake, winner))


def clean_crash() -> Path:
    """The lake of the last copy of a broker that was killed."""
    return made_once(
        "lakes/crash-whole", lambda lake: make_lake(lake, dataset("crash") / "logs", include_uncommitted=True)
    )


def clean_story(tmp_path: Path) -> Path:
    """The lake of the whole story."""
    return made_once(
        "lakes/copies-story",
        lambda lake: make_lake(lake, state_directory(tmp_path / "story", state_batches([*STORY, *OTHER_END]))),
    )


ORDERS = tuple(itertools.permutations(COPIES))


@pytest.mark.soak
@pytest.mark.parametrize("order", [COPIES, *in_soak(*ORDERS[1:])], ids=",".join)
def test_copies_of_a_broker_that_was_killed_come_in_any_order(order: tuple[str, ...], tmp_path: Path) -> None:
    opened = Lake(tmp_path / "lake")
    for name in order:
        make_lake(opened, dataset("crash") / name, include_uncommitted=True)
    # A copy without the topics' folders says their ends, which the whole log has in its headers.
    assert_same(tmp_path / "lake", clean_crash(), but=("bronze.setting",))


@pytest.mark.soak
@pytest.mark.parametrize("include_uncommitted", [True, *in_soak(False)])
def test_copies_of_a_broker_that_was_killed_come_together(include_uncommitted: bool, tmp_path: Path) -> None:
    folder = dataset("crash")
    make_lake(tmp_path / "lake", *(folder / name for name in COPIES), include_uncommitted=include_uncommitted)
    assert_same(tmp_path / "lake", clean_crash())


def replicas(tmp_path: Path, source: Path) -> list[Path]:
    """Three copies that overlap: each begins or ends elsewhere and has a broken batch that another one has whole."""

    def cut(number: int, folder: str, batches: list[bytes]) -> list[bytes]:
        if not folder.startswith(STATE_TOPIC) or len(batches) < 12:
            return batches
        count = len(batches)
        first, end = [(0, count - 3), (0, count - 1), (count // 3, count)][number]
        bad = [count // 2, count // 2 + 1, count - 2][number]
        return [broken(b) if n == bad else b for n, b in enumerate(batches)][first:end]

    copies = []
    for number in range(3):
        change = functools.partial(cut, number)
        copies.append(copy_changed(source, tmp_path / f"replica-{number}", change))
        # Without this line the first segment that is there would be taken for the start of the log.
        write_checkpoints(copies[-1], log_starts={(STATE_TOPIC, n): 0 for n in range(len(list(source.iterdir())))})
    return copies


@pytest.mark.soak
@pytest.mark.parametrize("name", ["basic", pytest.param("edge", marks=pytest.mark.soak)])
def test_overlapping_replicas_with_short_tails_and_a_broken_batch_each_are_one_clean_log(
    name: str, tmp_path: Path
) -> None:
    logs = dataset(name) / "logs"
    summary = make_lake(tmp_path / "lake", *replicas(tmp_path, logs), include_uncommitted=True)
    assert (summary.quarantined, summary.gaps) == (0, 0)
    assert_same(tmp_path / "lake", clean_lake(tmp_path, logs))


@pytest.mark.parametrize("order", [(2, 0, 1), *in_soak((0, 1, 2), (1, 2, 0), (0, 2, 1), (1, 0, 2), (2, 1, 0))], ids=str)
def test_replicas_that_come_one_after_the_other_fill_each_others_gaps(order: tuple[int, ...], tmp_path: Path) -> None:
    logs = state_directory(tmp_path / "logs", state_batches([*STORY, *OTHER_END]))
    copies = replicas(tmp_path, logs)
    opened = Lake(tmp_path / "lake")
    for number in order:
        make_lake(opened, copies[number])
    assert_same(tmp_path / "lake", clean_story(tmp_path))


@pytest.mark.soak
def test_a_first_segment_delivered_last_is_replayed_under_what_is_there(tmp_path: Path) -> None:
    batches = state_batches(STORY)
    full_logs = state_directory(tmp_path / "whole", batches)
    late = state_directory(tmp_path / "late", batches[4:])
    make_lake(tmp_path / "lake", late)
    before = {
        row["completeness"] for row in open_lake(tmp_path / "lake").scan("gold.share_partition_state").to_pylist()
    }
    assert before == {"provisional"}
    make_lake(tmp_path / "lake", state_directory(tmp_path / "first", batches[:4]))
    assert_same(tmp_path / "lake", clean_lake(tmp_path, full_logs))


@pytest.mark.soak
@pytest.mark.parametrize("winner_last", [True, *in_soak(False)])
def test_of_two_ends_of_a_log_the_one_under_the_higher_leader_epoch_is_the_log(
    winner_last: bool, tmp_path: Path
) -> None:
    common = state_batches(STORY)
    loser = state_directory(tmp_path / "loser", [*common, *state_batches(OTHER_END[:3], len(STORY), 0)])
    winner = state_directory(tmp_path / "winner", [*common, *state_batches(OTHER_END[1:], len(STORY), 1)])
    opened = Lake(tmp_path / "lake")
    for directory in (loser, winner) if winner_last else (winner, loser):
        make_lake(opened, directory)
    assert_same(tmp_path / "lake", clean_winner(winner))
    problems = open_lake(tmp_path / "lake").scan("bronze.quarantine").to_pylist()
    aside = [row["first_offset"] for row in problems if row["reason"] == "superseded"]
    assert aside == ([len(STORY) + n for n in range(3)] if winner_last else [])


@pytest.mark.soak
def test_two_ends_side_by_side_are_judged_the_same(tmp_path: Path) -> None:
    common = state_batches(STORY)
    loser = state_directory(tmp_path / "loser", [*common, *state_batches(OTHER_END[:3], len(STORY), 0)])
    winner = state_directory(tmp_path / "winner", [*common, *state_batches(OTHER_END[1:], len(STORY), 1)])
    make_lake(tmp_path / "lake", loser, winner)
    assert_same(tmp_path / "lake", clean_winner(winner))


@pytest.mark.parametrize("together", [True, False])
def test_other_records_under_one_leader_epoch_stop_the_run_and_name_both(together: bool, tmp_path: Path) -> None:
    first = state_directory(tmp_path / "one", state_batches([*STORY, OTHER_END[0]]))
    other = state_directory(tmp_path / "other", state_batches([*STORY, OTHER_END[1]]))
    lake = tmp_path / "lake"
    if not together:
        make_lake(lake, first)
        before = content(lake)
    with pytest.raises(CopyConflictError, match="two clusters share an id") as caught:
        make_lake(lake, *([first, other] if together else [other]))
    assert f"@ {len(STORY)}" in str(caught.value)
    assert str(other) in str(caught.value)
    assert str(first if together else "lake") in str(caught.value)
    if not together:
        assert not differences(before, content(lake))


def test_directories_of_two_clusters_are_refused_in_one_run_and_one_lake_keeps_them_apart(tmp_path: Path) -> None:
    first = write_log_directory(tmp_path / "one", STORY, cluster_id="one")
    two = write_log_directory(tmp_path / "two", STORY[:3], cluster_id="two")
    with pytest.raises(SharelensError, match="different clusters"):
        make_lake(tmp_path / "lake", first, two)
    for logs in (first, two):
        make_lake(tmp_path / "lake", logs, stages=TO_SILVER)
    assert records_by_cluster(tmp_path / "lake") == {"one": len(STORY), "two": 3}


def records_by_cluster(lake: Path) -> Counter[str]:
    """How many share records of each cluster a lake has, each once."""
    places = open_lake(lake).scan("silver.share_record", ["cluster_id", "log_offset"]).to_pylist()
    return Counter(cluster for cluster, _ in {(row["cluster_id"], row["log_offset"]) for row in places})


def test_a_directory_without_an_id_needs_one_once_the_lake_has_one(tmp_path: Path) -> None:
    named = write_log_directory(tmp_path / "named", STORY, cluster_id="one")
    bare = write_log_directory(tmp_path / "bare", [*STORY, *OTHER_END])
    make_lake(tmp_path / "lake", named, stages=TO_SILVER)
    with pytest.raises(ClusterMismatchError, match="--cluster-id"):
        make_lake(tmp_path / "lake", bare)
    with pytest.raises(ClusterMismatchError, match="is of cluster one"):
        make_lake(tmp_path / "lake", named, cluster_id="two")
    make_lake(tmp_path / "lake", bare, cluster_id="one", stages=TO_SILVER)
    assert records_by_cluster(tmp_path / "lake") == {"one": len(STORY) + len(OTHER_END)}


def test_a_lake_without_an_id_takes_more_directories_without_one(tmp_path: Path) -> None:
    make_lake(tmp_path / "lake", write_log_directory(tmp_path / "first", STORY[:4]), stages=TO_SILVER)
    make_lake(tmp_path / "lake", write_log_directory(tmp_path / "second", STORY), stages=TO_SILVER)
    assert records_by_cluster(tmp_path / "lake") == {UNKNOWN_CLUSTER: len(STORY)}


def test_the_replicas_of_these_tests_are_as_short_and_broken_as_they_say(tmp_path: Path) -> None:
    logs = state_directory(tmp_path / "logs", state_batches([*STORY, *OTHER_END]))
    copies = [batches_of(next(copy.glob("*/*.log"))) for copy in replicas(tmp_path, logs)]
    all_batches = batches_of(next(logs.glob("*/*.log")))
    assert [len(batches) for batches in copies] == [12, 14, 10]
    assert [sum(batch not in all_batches for batch in batches) for batches in copies] == [1, 1, 1]
    assert base_offset(copies[2][0]) == 5
