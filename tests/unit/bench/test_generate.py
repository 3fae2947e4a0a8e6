"""The generated logs are what share coordinators write: read back by the log reader, replayed by the reference."""

import hashlib
import itertools
import json
from collections import Counter

import pytest

from bench.generate import append, generate, main
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.reader import read_split, readable_end, splits
from sharelens.kafka_log.union import unite
from state_model.batches import coalesce
from state_model.java import partition_for
from state_model.machine import PartitionState, apply
from state_model.share_records import ShareSnapshot, ShareUpdate, decode_record

pytestmark = pytest.mark.slow

HOT = {"shape": "hot", "share_partition_count": 2, "state_partitions": 3}
COOL = {"shape": "cool", "share_partition_count": 60, "state_partitions": 4}
AVAILABLE = 0


def logs_of(directory):
    """The records of each state partition: (offset, timestamp, base offset of the batch, record)."""
    logs = {}
    for partition in unite([scan_log_directory(str(directory))]):
        end = readable_end(partition, include_uncommitted=False)
        rows = logs.setdefault(partition.partition, [])
        for split in splits(partition, 0, end, 64 << 20):
            for chunk in read_split(split):
                assert chunk.problems.num_rows == 0
                for row in chunk.records.to_pylist():
                    record = decode_record(row["key"], row["value"])
                    rows.append((row["offset"], row["timestamp_ms"], row["base_offset"], record))
        assert [row[0] for row in rows] == list(range(end))
    return logs


def kind_of(before, record):
    """How a record came to be, judged by the state before it and by the record itself."""
    value = record.value
    if isinstance(value, ShareUpdate):
        assert before.update_count < 500
        assert value.snapshot_epoch == before.snapshot_epoch
        return "update" if value.state_batches or value.leader_epoch == before.leader_epoch else "read"
    assert isinstance(value, ShareSnapshot)
    if before is None:
        assert (value.snapshot_epoch, value.start_offset, value.delivery_complete_count) == (0, -1, -1)
        return "create"
    assert value.snapshot_epoch == before.snapshot_epoch + 1
    if value.state_epoch > before.state_epoch:
        assert (value.state_batches, value.delivery_complete_count) == ((), 0)
        return "reset"
    if value.create_timestamp_ms < value.write_timestamp_ms:
        assert value.write_timestamp_ms - before.write_timestamp_ms >= 300_000
        assert (value.create_timestamp_ms, value.start_offset) == (before.create_timestamp_ms, before.start_offset)
        assert coalesce(value.state_batches) == coalesce(before.state_batches)
        return "cold"
    assert before.update_count == 500
    return "write"


def check_state(state):
    """The start offset is the first offset that is not finished; the count is that of the finished ones behind it."""
    batches = state.state_batches
    if batches:
        assert (batches[0].first_offset, batches[0].delivery_state) == (state.start_offset, AVAILABLE)
    for left_batch, right in itertools.pairwise(batches):
        assert right.first_offset == left_batch.last_offset + 1
    finished = [batch for batch in batches if batch.delivery_state != AVAILABLE]
    count = sum(batch.last_offset - batch.first_offset + 1 for batch in finished)
    assert state.delivery_complete_count == (count if state.start_offset != -1 else -1)
    assert {batch.delivery_state for batch in batches} <= {0, 2, 4}
    assert {batch.delivery_count for batch in batches} <= {1, 2, 3}


def replayed(directory, state_partitions):
    """Kinds of all records, after every state has been checked."""
    kinds = Counter()
    for number, rows in logs_of(directory).items():
        state = PartitionState()
        for offset, timestamp, _, record in rows:
            key = record.key
            assert partition_for(key.group_id, key.topic_id, key.partition, state_partitions) == number
            kinds[kind_of(state.share_partitions.get(key), record)] += 1
            state = apply(state, offset, timestamp, record)
            check_state(state.share_partitions.get(key))
    return kinds


def test_hot_share_partitions_follow_the_rules_and_reach_the_update_limit(tmp_path):
    generated_log = generate(tmp_path / "log", records=3000, **HOT)
    kinds = replayed(generated_log.directory, 3)
    assert kinds.total() == generated_log.records == 3000
    of_each = Counter(record.key for rows in logs_of(generated_log.directory).values() for *_, record in rows)
    # After its creation a share partition repeats 500 updates and the snapshot that the next write becomes.
    assert kinds["write"] == sum((count - 1) // 501 for count in of_each.values()) > 0
    assert kinds["create"] == len(of_each) == 2
    assert set(kinds) <= {"create", "write", "update", "read"}


def test_cool_share_partitions_are_mostly_cold_snapshots_of_one_job_in_one_batch(tmp_path):
    generated_log = generate(tmp_path / "log", records=3000, **COOL)
    kinds = replayed(generated_log.directory, 4)
    assert kinds.total() == 3000
    assert kinds["cold"] / kinds.total() > 0.75
    assert kinds["create"] == 60
    assert kinds["reset"] > 0
    together = Counter(
        (number, base_offset)
        for number, rows in logs_of(generated_log.directory).items()
        for _, _, base_offset, record in rows
        if isinstance(record.value, ShareSnapshot)
        and record.value.create_timestamp_ms < record.value.write_timestamp_ms
    )
    assert max(together.values()) > 10


@pytest.mark.parametrize("shape", [HOT, COOL], ids=["hot", "cool"])
def test_a_log_that_was_appended_to_holds_what_a_longer_one_holds(tmp_path, shape):
    generate(tmp_path / "long", records=1500, **shape)
    generate(tmp_path / "short", records=1000, **shape)
    before = {path: path.read_bytes() for path in (tmp_path / "short").rglob("*.log") if path.stat().st_size}
    assert append(tmp_path / "short", fraction=0.5).records == 500
    assert before
    assert all(path.read_bytes() == content for path, content in before.items())
    without_batches = [
        {number: [(row[0], row[1], row[3]) for row in rows] for number, rows in logs_of(tmp_path / name).items()}
        for name in ("long", "short")
    ]
    assert without_batches[0] == without_batches[1]


def digest(directory):
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_a_seed_says_all_bytes(tmp_path):
    for name, seed in (("one", 4), ("again", 4), ("other", 5)):
        generate(tmp_path / name, records=200, seed=seed, **HOT)
    assert digest(tmp_path / "one") == digest(tmp_path / "again")
    assert digest(tmp_path / "one") != digest(tmp_path / "other")


def test_the_directory_is_that_of_a_broker(tmp_path):
    generate(tmp_path / "log", records=100, **HOT)
    directory = scan_log_directory(str(tmp_path / "log"))
    assert (directory.node_id, len(directory.cluster_id), directory.skipped) == (1, 22, ())
    assert {(partition.topic, partition.partition) for partition in directory.partitions} == {
        ("__share_group_state", n) for n in range(3)
    }
    assert len({partition.topic_id for partition in directory.partitions}) == 1
    assert sum(partition.committed_end for partition in directory.partitions) == 100


def test_the_command_prints_one_line_of_json_and_refuses_to_overwrite(tmp_path, capsys):
    arguments = [
        "--records",
        "50",
        "--share-partitions",
        "2",
        "--state-partitions",
        "2",
        "--out",
        str(tmp_path / "log"),
    ]
    assert main(arguments) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 50
    assert main(arguments) == 1
    assert "bench.generate: " in capsys.readouterr().err
    assert main(["--out", str(tmp_path / "log"), "--append", "0.1"]) == 0
    assert json.loads(capsys.readouterr().out)["records"] == 5


def test_failing_members_give_up_on_half_of_the_records(tmp_path):
    generated_log = generate(
        tmp_path / "log", shape="failing", records=3000, share_partition_count=3, state_partitions=2
    )
    ended = Counter()
    largest = 0
    for rows in logs_of(generated_log.directory).values():
        for *_, record in rows:
            batches = record.value.state_batches
            if isinstance(record.value, ShareUpdate):
                largest = max(largest, len(batches))
                ended.update(batch.delivery_state for batch in batches if batch.delivery_state != AVAILABLE)
    assert 10 < largest <= 20
    assert 0.4 < ended[4] / ended.total() < 0.6
