"""Which cluster and which cut of a lake answer; that a lake and its log answer alike is held in tests/compat."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sharelens.lake.errors import LakeError
from sharelens.lake.scan import open_lake
from sharelens.parameters.filters import KeyFilter, parse_key_filter
from sharelens.questions.records import records
from sharelens.questions.state import state
from sharelens.source.request import CutChoice
from sharelens.tables.opening import open_cut
from sharelens.tables.port import HISTORY
from sharelens.tables.reading import read
from sharelens.tables.where import Keys, Span, Where
from state_model.errors import UsageError
from tests.logs.state_logs import snapshot, write_log_directory, write_state_partition
from tests.processes.in_process import make_lake

pytestmark = pytest.mark.slow

STATE_TOPIC_IDS = {"first": "AAAAAAAAAAAAAAAAAAAAAQ", "second": "AAAAAAAAAAAAAAAAAAAAAg"}


@pytest.fixture(scope="module")
def two_clusters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with two clusters."""
    folder = tmp_path_factory.mktemp("two")
    for name, topic_id in STATE_TOPIC_IDS.items():
        logs = write_log_directory(folder / name, [snapshot(name)], cluster_id=name, state_topic_id=topic_id)
        make_lake(folder / "lake", logs)
    return folder / "lake"


def test_with_several_clusters_one_has_to_be_named(two_clusters: Path) -> None:
    with pytest.raises(UsageError, match="several clusters, give --cluster-id with one of: first, second"):
        open_cut(open_lake(str(two_clusters)), None)
    with pytest.raises(UsageError, match="no cluster third in .*; clusters there: first, second"):
        open_cut(open_lake(str(two_clusters)), "third")


@pytest.mark.parametrize("cluster", ["first", "second"])
def test_the_named_cluster_alone_answers(two_clusters: Path, cluster: str) -> None:
    evidence = open_cut(open_lake(str(two_clusters)), cluster)
    (row,) = state(evidence, KeyFilter(), CutChoice()).table.to_pylist()
    assert (row["cluster_id"], row["group_id"]) == (cluster, cluster)
    assert records(evidence, KeyFilter(), Span()).read_all().table.num_rows == 1


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: file.write_bytes(b"no Parquet")])
def test_a_data_file_that_can_not_be_read_is_one_line_about_its_table(
    two_clusters: Path, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    lake = Path(shutil.copytree(two_clusters, tmp_path / "lake"))
    for file in (lake / "silver" / "share_record").rglob("*.parquet"):
        damage(file)
    with pytest.raises(LakeError, match=r"^silver\.share_record in .*: the data file part-.* can't be read .*a copy$"):
        records(open_cut(open_lake(str(lake)), "first"), KeyFilter(), Span()).read_all()


def test_an_unknown_group_is_refused_with_those_of_the_cluster(two_clusters: Path) -> None:
    with pytest.raises(UsageError, match="no share group second in lake .*; groups there: first"):
        state(open_cut(open_lake(str(two_clusters)), "first"), parse_key_filter(["second"], [], []), CutChoice())


def test_one_evidence_answers_for_each_share_partition_by_its_own_state_partition(tmp_path: Path) -> None:
    logs = write_log_directory(tmp_path / "logs", [snapshot("a")])
    write_state_partition(logs, [snapshot("b")], number=1)
    make_lake(tmp_path / "lake", logs)
    evidence = open_cut(open_lake(str(tmp_path / "lake")), None)
    places = [
        [
            (row["group_id"], row["state_partition"])
            for row in read(evidence, HISTORY, where=Where(keys=Keys(groups=frozenset(group)))).to_pylist()
        ]
        for group in "aba"
    ]
    assert places == [[("a", 0)], [("b", 1)], [("a", 0)]]


def test_what_was_not_published_is_not_answered_from(tmp_path: Path) -> None:
    logs = write_log_directory(tmp_path / "logs", [snapshot()])
    make_lake(tmp_path / "lake", logs, stages=("ingest", "decode"))
    with pytest.raises(LakeError, match="nothing was published yet"):
        open_cut(open_lake(str(tmp_path / "lake")), None)
