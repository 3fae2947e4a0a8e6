"""The tasks of the audit: which state partitions are audited together, and that memory does not grow with the log."""

from pathlib import Path

import pyarrow as pa
import pytest

from bench import generate
from jobs.audit import tasks
from sharelens.lake import parquet
from sharelens.lake.locations import resolve
from sharelens.lake.slices import BRONZE, Slice
from state_model.audit.columnar.partitions import LogFacts
from tests.processes.in_process import make_lake


def job(state_partition: int, size_bytes: int, *, topic_id: str = "t", keeps_below: bool = False) -> tasks.Job:
    """A job over one slice of so many bytes."""
    piece = Slice(
        storage=resolve("lake"), path="p", row_group=0, mixed=False, columns=BRONZE, cluster_id="c", topic_id=topic_id,
        partition=state_partition, first_offset=0, last_offset=9, record_count=10, value_count=10, oldest_ms=0,
        newest_ms=0, size_bytes=size_bytes, runs=(0, 1),
    )  # fmt: skip
    log = LogFacts(state_partition=state_partition, first_offset=0, log_start_offset=0, has_newest=True)
    return tasks.Job(
        cluster_id="c", topic_id=topic_id, slices=(piece,), starts_over=keeps_below, is_new=False,
        keeps_below=keeps_below, is_compared=True, log=log, at_start=None,
    )  # fmt: skip


def test_state_partitions_of_one_topic_are_audited_together_as_far_as_their_records_fit() -> None:
    half = tasks.TOGETHER_BYTES // 2
    jobs = [
        *(job(number, half) for number in range(3)),
        job(3, 3 * half),
        *(job(number, 1) for number in (4, 5)),
        job(6, 1, keeps_below=True),
        *(job(number, 1) for number in (7, 8)),
        job(0, 1, topic_id="u"),
    ]
    sets = [[part.log.state_partition for part in job_group] for job_group in tasks.together(jobs)]
    assert sets == [[0, 1], [2], [3], [4, 5], [6], [7, 8], [0]]


def peak_bytes(folder: Path, records: int) -> int:
    """The most Arrow memory that an audit of a log of so many records has where it takes records."""
    logs = folder / f"logs-{records}"
    generate.generate(logs, shape="hot", records=records, share_partition_count=4, state_partitions=3)
    peaks = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parquet, "ROW_GROUP_ROWS", 500)
        patch.setattr(tasks, "TOGETHER_BYTES", 50_000)
        make_lake(folder / f"lake-{records}", logs, stages=("ingest", "decode", "replay"))
        take = tasks.PartitionsAudit.take_logs

        def noted(audit: tasks.PartitionsAudit, *arguments: object) -> None:
            take(audit, *arguments)
            peaks.append(pa.total_allocated_bytes() - before)

        patch.setattr(tasks.PartitionsAudit, "take_logs", noted)
        before = pa.total_allocated_bytes()
        make_lake(folder / f"lake-{records}", stages=("audit",))
    assert len(peaks) > 3
    return max(peaks)


@pytest.mark.soak
@pytest.mark.slow
def test_the_memory_of_a_task_does_not_grow_with_the_log(tmp_path: Path) -> None:
    assert peak_bytes(tmp_path, 16_000) < 1.5 * peak_bytes(tmp_path, 4_000)
