"""What the books say of the log directories of a run."""

from pathlib import Path

import pytest

from jobs.ingest import plan
from jobs.ingest.sources import Sources
from sharelens.kafka_log import reader
from sharelens.kafka_log.layout import scan_log_directory
from tests.logs.file_times import set_times
from tests.logs.state_logs import START_MS, snapshot, write_log_directory

COPIED_MS = START_MS + 90_000


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    logs = write_log_directory(tmp_path, [snapshot() | {"timestamp_ms": START_MS}], committed=1)
    return Sources([scan_log_directory(str(set_times(logs, appended_ms=START_MS, checkpoint_ms=COPIED_MS)))])


def extents(sources: Sources) -> list[plan.Extent]:
    return plan.plan(sources.partitions, [], content="log_record", include_uncommitted=False)


@pytest.mark.parametrize(
    ("until_ms", "read_until_ms"),
    [(None, COPIED_MS), (COPIED_MS + 1, COPIED_MS), (START_MS + 1, START_MS + 1)],
)
def test_extents_tell_until_when_the_directories_were_read(
    sources: Sources, until_ms: int | None, read_until_ms: int
) -> None:
    rows = sources.extent_rows(extents(sources), "cluster", 1, until_ms)
    assert {(row["until_ms"], row["read_until_ms"]) for row in rows} == {(until_ms, read_until_ms)}


def test_the_ends_of_the_logs_are_read_once_and_only_with_news(
    sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, copy_end = [], reader.copy_end
    monkeypatch.setattr(reader, "copy_end", lambda copy, end: reads.append(copy.uri) or copy_end(copy, end))
    assert (sources.extent_rows([], "cluster", 1, None), reads) == ([], [])
    news = extents(sources)
    for _ in range(2):
        assert sources.extent_rows(news, "cluster", 1, None)
    assert len(reads) == len({*reads}) > 0
