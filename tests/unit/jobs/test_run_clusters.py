"""Two clusters in one lake, alike in group ids, topic ids and partitions: each answers as if it were alone."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from jobs.errors import ClusterMismatchError
from sharelens.cli import main
from sharelens.lake import crash_points
from sharelens.lake.lake import Lake
from sharelens.lake.scan import open_lake
from tests.depths import in_soak
from tests.lakes import content, differences
from tests.logs.batch_files import broken, state_batches, state_directory
from tests.logs.state_logs import START_MS, snapshot, tombstone, update
from tests.logs.user_topics import write_orders
from tests.once import made_once
from tests.processes.in_process import make_lake
from tools.log_writer.writer import write_meta

pytestmark = pytest.mark.slow

EAST, WEST = "cluster-east", "cluster-west"
STORIES = {
    EAST: [
        snapshot("g", start=3),
        *(update("g", batches=[(3 + n, 3 + n, 2, 1)], at_ms=START_MS + 1000 * n) for n in range(1, 5)),
        snapshot("h", start=0, at_ms=START_MS + 6000),
        update("g", start=6, at_ms=START_MS + 7000),
    ],
    WEST: [
        snapshot("g", start=9),
        snapshot("h", start=12),
        update("g", batches=[(9, 11, 4, 5)], at_ms=START_MS + 1500),
        tombstone("h", at_ms=START_MS + 2500),
        update("g", batches=[(12, 12, 0, 2)], at_ms=START_MS + 3500),
    ],
}
BROKEN = {EAST: 2, WEST: None}
"""The batch of a story that can't be read."""
QUESTIONS = [
    ["state"],
    ["state", "--as-of", str(START_MS + 2600)],
    ["records"],
    ["records", "--group", "g", "--from-offset", "1"],
    ["diff", "--from", str(START_MS), "--to", str(START_MS + 8000)],
    *(["trace", "--group", "g", "--topic", "orders", "--partition", "0", "--offset", str(n)] for n in (4, 9, 12)),
]
Ask = Callable[..., Any]


def logs_of(folder: Path, cluster: str, count: int | None = None) -> Path:
    """A log directory of a cluster: the first records of its story, all of `orders`."""
    batches = state_batches(STORIES[cluster])
    place = BROKEN[cluster]
    if place is not None:
        batches[place] = broken(batches[place])
    logs = state_directory(folder, batches[:count])
    write_orders(logs)
    write_meta(logs, cluster_id=cluster, node_id=1)
    return logs


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Asks a question of a lake; the document on stdout."""

    def ask_json(lake: Path, *words: str) -> Any:
        assert main([*words, "--lake", str(lake), "--output", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    return ask_json


@pytest.fixture(scope="module")
def lakes() -> dict[str, Path]:
    """A lake of both clusters, written in turns, one of one run for each, and one of each alone."""
    folder = made_once("clusters", make_lakes)
    return {name: folder / name for name in ("both", "one-run-each", EAST, WEST)}


def make_lakes(folder: Path) -> None:
    two_cluster_lake = Lake(folder / "both")
    for turn, count in enumerate((2, None)):
        for cluster in (EAST, WEST):
            make_lake(two_cluster_lake, logs_of(folder / f"{cluster}-{turn}", cluster, count))
    logs_by_cluster = {cluster: logs_of(folder / f"{cluster}-whole", cluster) for cluster in (EAST, WEST)}
    for cluster, logs in logs_by_cluster.items():
        make_lake(folder / cluster, logs)
    make_lake(shutil.copytree(folder / EAST, folder / "one-run-each"), logs_by_cluster[WEST])


Alone = dict[str, dict[str, pa.Table]]
"""What the lake of each cluster holds."""


@pytest.fixture(scope="module")
def alone(lakes: dict[str, Path]) -> Alone:
    return {cluster: content(lakes[cluster]) for cluster in (EAST, WEST)}


def part(tables: dict[str, pa.Table], cluster: str) -> dict[str, pa.Table]:
    """What is of a cluster, of the tables of a lake."""
    return {name: rows.filter(pc.field("cluster_id") == cluster) for name, rows in tables.items()}


def assert_parts(lake: Path, alone: Alone) -> None:
    tables = content(lake)
    for cluster in (EAST, WEST):
        assert not differences(part(tables, cluster), alone[cluster])


def test_runs_in_turns_keep_the_clusters_apart(lakes: dict[str, Path], alone: Alone) -> None:
    assert_parts(lakes["both"], alone)


@pytest.mark.parametrize(
    "question", [*QUESTIONS[1:5:3], *in_soak(QUESTIONS[0], *QUESTIONS[2:4], *QUESTIONS[5:])], ids=" ".join
)
@pytest.mark.parametrize("cluster", [EAST, WEST])
def test_each_cluster_answers_as_if_it_were_alone(
    cluster: str, question: Sequence[str], lakes: dict[str, Path], ask: Ask
) -> None:
    alone = ask(lakes[cluster], *question)
    assert alone
    assert ask(lakes["both"], *question, "--cluster-id", cluster) == alone


@pytest.mark.parametrize("cluster", [EAST, WEST])
def test_the_status_of_a_cluster_is_that_of_its_own_lake(cluster: str, lakes: dict[str, Path], ask: Ask) -> None:
    alone = ask(lakes[cluster], "status")
    cluster_status = ask(lakes["both"], "status", "--cluster-id", cluster)
    for name in ("state_partitions", "gaps"):
        assert cluster_status[name] == alone[name]
    assert [row["rows"] for row in cluster_status["quarantine"]] == [row["rows"] for row in alone["quarantine"]]
    assert {(row["cluster_id"], row["node_id"]) for row in cluster_status["sources"]} == {(cluster, "1")}
    assert cluster_status["runs"][0]["state_log_offsets"] == alone["runs"][0]["state_log_offsets"]


def test_the_status_of_all_clusters_says_of_each_row_whose_it_is(lakes: dict[str, Path], ask: Ask) -> None:
    answers = ask(lakes["both"], "status")
    for name, clusters in (("state_partitions", {EAST, WEST}), ("sources", {EAST, WEST}), ("gaps", {EAST})):
        assert {row["cluster_id"] for row in answers[name]} == clusters
    assert [row["cluster_id"] for row in answers["quarantine"]] == [EAST]


@pytest.mark.parametrize("cluster", [EAST, WEST])
def test_sql_tells_the_clusters_apart_by_a_column(
    cluster: str, lakes: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    answers = []
    for name in (cluster, "both"):
        query = (
            f"SELECT group_id, start_offset FROM gold.share_partition_state WHERE cluster_id = '{cluster}' ORDER BY 1"
        )
        assert main(["sql", query, "--lake", str(lakes[name]), "--output", "json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] == answers[1] != []


@pytest.mark.parametrize("question", [*QUESTIONS[:1], *QUESTIONS[4:5]], ids=" ".join)
def test_a_question_that_names_no_cluster_is_told_which_there_are(
    question: Sequence[str], lakes: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*question, "--lake", str(lakes["both"])]) == 2
    assert f"give --cluster-id with one of: {EAST}, {WEST}" in capsys.readouterr().err
    assert main([*question, "--lake", str(lakes["both"]), "--cluster-id", "elsewhere"]) == 2
    assert f"no cluster elsewhere in lake {lakes['both']}; clusters there: {EAST}, {WEST}" in capsys.readouterr().err


@pytest.mark.soak
def test_a_run_that_was_killed_is_finished_by_a_run_of_the_other_cluster(alone: Alone, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    make_lake(lake, logs_of(tmp_path / "west", WEST))
    for number, point in enumerate(
        ("commit:bronze.ingest_extent:ingest-plan:after", "commit:bronze.ingest_extent:topics-plan:after")
    ):
        east = logs_of(tmp_path / f"east-{number}", EAST, 3 if number == 0 else None)
        with crash_points.arm(point), pytest.raises(crash_points.CrashPointReached):
            make_lake(lake, east)
        make_lake(lake, logs_of(tmp_path / f"west-{number}", WEST))
    # Only the names of its folders were not told yet, and stand in its measures.
    counts = make_lake(lake, east).counts
    assert (counts["bronze.topic_batch"], counts["gold.stall"], counts["gold.lag"]) == (0, 2, 2)
    assert not counts.keys() & {"bronze.log_record", "silver.share_record", "gold.share_partition_history"}
    assert_parts(lake, alone)


@pytest.mark.soak
@pytest.mark.parametrize("clusters", [EAST, *in_soak(None)])
@pytest.mark.parametrize("case", ["decode", *in_soak("replay")])
def test_a_rebuild_starts_over_for_the_cluster_that_is_named_or_for_all(
    case: str, clusters: str | None, lakes: dict[str, Path], alone: Alone, tmp_path: Path
) -> None:
    lake = Path(shutil.copytree(lakes["one-run-each"], tmp_path / "lake"))
    make_lake(lake, rebuild=case, cluster_id=clusters)
    assert_parts(lake, alone)
    rows = open_lake(lake).scan("gold.share_partition_history")
    again = {row["cluster_id"] for row in rows.to_pylist() if row["run_id"] == 3}
    assert again == ({EAST, WEST} if clusters is None else {EAST})
    with pytest.raises(ClusterMismatchError, match=f"no cluster elsewhere in .*: {EAST}, {WEST}"):
        make_lake(lake, rebuild=case, cluster_id="elsewhere")


@pytest.mark.soak
def test_a_directory_without_an_id_needs_one_once_the_lake_holds_several(alone: Alone, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for cluster in (EAST, WEST):
        make_lake(lake, logs_of(tmp_path / cluster, cluster, 2))
    nameless = logs_of(tmp_path / "nameless", WEST)
    (nameless / "meta.properties").unlink()
    with pytest.raises(ClusterMismatchError, match=f"the lake holds {EAST}, {WEST}; say --cluster-id"):
        make_lake(lake, nameless)
    make_lake(lake, nameless, cluster_id=WEST)
    assert not differences(part(content(lake), WEST), alone[WEST])
