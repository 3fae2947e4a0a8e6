"""When a page is made again: a lake's after a publication, a log directory's each time, neither too often."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from sharelens.lake.errors import LakeError
from sharelens.live.cluster import Address, LiveCluster, UserTopics
from sharelens.metrics import catalog, reading
from sharelens.metrics.figures import Figures
from sharelens.metrics.reading import Page, read
from sharelens.metrics.samples import Export
from sharelens.source.request import Source
from tests.logs.state_logs import snapshot, write_log_directory
from tests.processes.in_process import make_lake

pytestmark = pytest.mark.slow

MANY = 1000


class RenderCounter:
    """Counts the exports it renders."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, export: Export) -> bytes:
        self.count += 1
        return str(self.count).encode()


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return write_log_directory(tmp_path / "logs", [snapshot()])


@pytest.mark.soak
def test_a_lake_is_read_again_only_when_something_was_published(tmp_path: Path, logs: Path):
    lake, render_counter = tmp_path / "lake", RenderCounter()
    make_lake(lake, logs)
    page = Page(Source(lake=str(lake)), MANY, render_counter, refresh_s=0)
    assert (page.text(), page.text()) == (b"1", b"1")
    longer_logs = write_log_directory(tmp_path / "more", [snapshot(), snapshot("h")])
    make_lake(lake, longer_logs)
    assert page.text() == b"2"


def test_a_log_directory_is_read_each_time_unless_it_was_just_read(logs: Path):
    render_counter = RenderCounter()
    page = Page(Source(log_dirs=(str(logs),)), MANY, render_counter, refresh_s=0)
    assert (page.text(), page.text()) == (b"1", b"2")
    page = Page(Source(log_dirs=(str(logs),)), MANY, render_counter, refresh_s=3600)
    assert (page.text(), page.text()) == (b"3", b"3")


def test_a_lake_and_the_log_it_was_made_of_give_the_same_figures(tmp_path: Path, logs: Path):
    make_lake(tmp_path / "lake", logs)
    (of_lake,), (of_log,) = read(Source(lake=str(tmp_path / "lake"))), read(Source(log_dirs=(str(logs),)))
    assert of_lake.of_share_partitions == of_log.of_share_partitions
    assert of_lake.of_groups == of_log.of_groups


@pytest.mark.soak
def test_every_cluster_of_a_lake_is_told_or_the_one_asked_for(tmp_path: Path):
    lake = str(tmp_path / "lake")
    for name in ("one", "two"):
        make_lake(Path(lake), write_log_directory(tmp_path / name, [snapshot()], cluster_id=name))
    assert [figures.cluster for figures in read(Source(lake=lake))] == ["one", "two"]
    (figures,) = read(Source(lake=lake, cluster_id="two"))
    assert figures.cluster == "two"
    assert figures.of_cluster[catalog.READ_TIMESTAMP] == figures.read_ms / 1000


def test_a_folder_that_is_no_lake_is_refused(tmp_path: Path):
    with pytest.raises(LakeError, match="holds no lake"):
        read(Source(lake=str(tmp_path)))


def test_a_cluster_is_read_so_that_it_takes_a_fifth_of_a_core_at_most(monkeypatch):
    clock = SimpleNamespace(now_s=0.0, spent_s=0.0, reads=0)

    def read_slowly(_source: Source) -> list[Figures]:
        clock.reads, clock.now_s, clock.spent_s = clock.reads + 1, clock.now_s + 9, clock.spent_s + 5
        return []

    monkeypatch.setattr(reading, "read", read_slowly)
    fake = SimpleNamespace(monotonic=lambda: clock.now_s, process_time=lambda: clock.spent_s)
    monkeypatch.setattr(reading, "time", fake)
    cluster = LiveCluster(Address(bootstrap_server="h:9092"), UserTopics.NONE, most_bytes=1)
    page = Page(Source(live=cluster), MANY, lambda _export: b"", refresh_s=2)
    page.text()
    for seconds, reads in ((19, 1), (2, 2), (3, 2)):
        clock.now_s += seconds
        page.text()
        assert clock.reads == reads
