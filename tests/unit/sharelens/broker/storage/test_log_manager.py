"""The log directory: partitions come and go with their topics, survive stops and crashes, checkpoints are Kafka's."""

import os
from pathlib import Path

import pytest

from sharelens.broker.errors import StorageError
from sharelens.broker.ports import Record
from sharelens.broker.storage import compaction, log_manager
from sharelens.broker.storage.catalog import Catalog
from sharelens.broker.storage.log_config import LogConfig, log_config
from sharelens.broker.storage.log_manager import LogManager
from sharelens.kafka_log import reader
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.text_files import parse_partition_offsets
from sharelens.kafka_log.union import unite
from tests.logs.broker_logs import Clock, all_values, produced, values


class Directory:
    """A log directory whose broker is started and stopped again and again."""

    def __init__(self, path: Path, **settings: str) -> None:
        self.path, self.settings, self.clock = path, settings, Clock()
        self.start()

    def start(self) -> None:
        self.catalog = Catalog(self.path, cluster_id="EwX0i205YghpbkM5d3uN7g")
        self.manager = LogManager(self.path, catalog=self.catalog, timers=self.clock, config_of=self.config_of)
        self.manager.start()

    def config_of(self, topic: str) -> LogConfig:
        return log_config({**self.settings, **self.catalog.topic_configs(topic)})

    def restart(self) -> None:
        self.manager.close()
        self.start()

    def crash(self) -> None:
        """What the process wrote is there, its end is not."""
        self.start()

    def folders(self) -> list[str]:
        return sorted(folder.name for folder in self.path.iterdir() if folder.is_dir())

    def checkpoint(self, name: str) -> dict[tuple[str, int], int]:
        return parse_partition_offsets((self.path / name).read_text(), name)


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    return Directory(tmp_path)


def test_a_topic_gets_its_partitions_and_keeps_them_over_a_restart(directory):
    topic = directory.catalog.create("orders", 2)
    directory.manager.get("orders", 1).append_records(values("a", "b"))
    directory.restart()
    log = directory.manager.by_id(topic.topic_id, 1)
    assert all_values(log) == ["a", "b"]
    assert log is directory.manager.get("orders", 1)
    assert directory.manager.get("orders", 2) is None
    assert not directory.manager.is_after_crash


def test_each_start_raises_the_leader_epochs_by_two(directory):
    directory.catalog.create("orders", 1)
    epochs = [directory.manager.get("orders", 0).leader_epoch]
    for stop in (directory.restart, directory.crash, directory.restart):
        stop()
        epochs.append(directory.manager.get("orders", 0).leader_epoch)
    assert epochs == [0, 2, 4, 6]


def test_a_crash_loses_no_append(directory):
    directory.catalog.create("orders", 1)
    directory.manager.get("orders", 0).append_records(values("a", "b"))
    directory.crash()
    assert directory.manager.is_after_crash
    assert all_values(directory.manager.get("orders", 0)) == ["a", "b"]


def test_new_partitions_and_configurations_reach_the_logs(directory):
    directory.catalog.create("orders", 1)
    directory.catalog.add_partitions("orders", 3)
    directory.catalog.set_topic_configs("orders", {"max.message.bytes": "200"})
    assert [log.config.max_message_bytes for log in directory.manager.all()] == [200, 200, 200]


def test_a_deleted_topic_is_set_aside_and_removed_later(directory):
    directory.catalog.create("orders", 1)
    directory.catalog.create("kept", 1)
    directory.catalog.delete("orders")
    assert directory.manager.get("orders", 0) is None
    aside = [name for name in directory.folders() if name.endswith("-delete")]
    assert len(aside) == 1
    assert aside[0].startswith("orders-0.")
    directory.clock.pass_ms(60_001)
    assert directory.folders() == ["kept-0"]


def test_what_was_set_aside_before_a_stop_is_removed_at_the_next_start(directory):
    directory.catalog.create("orders", 1)
    directory.catalog.delete("orders")
    directory.restart()
    assert directory.folders() == []


def test_a_topic_made_again_is_empty_and_has_another_id(directory):
    first = directory.catalog.create("orders", 1)
    directory.manager.get("orders", 0).append_records(values("old"))
    directory.catalog.delete("orders")
    second = directory.catalog.create("orders", 1)
    assert first.topic_id != second.topic_id
    assert directory.manager.by_id(first.topic_id, 0) is None
    assert directory.manager.get("orders", 0).high_watermark == 0


def test_a_partition_that_the_catalogue_does_not_know_is_kept_under_another_name(directory):
    directory.catalog.create("orders", 1)
    directory.manager.get("orders", 0).append_records(values("evidence"))
    directory.manager.close()
    (directory.path / "sharelens.catalog.json").unlink()
    directory.start()
    (aside,) = directory.folders()
    assert aside.startswith("orders-0.")
    assert aside.endswith("-stray")
    assert (directory.path / aside / f"{0:020d}.log").stat().st_size > 0


def test_checkpoints_are_written_on_time_and_only_raised_log_starts_are_listed(tmp_path):
    directory = Directory(tmp_path, **{"segment.bytes": "300"})
    directory.catalog.create("orders", 2)
    log = directory.manager.get("orders", 0)
    for text in "abcdefgh":
        log.append_records(values(text * 50))
    directory.clock.pass_ms(5_000)
    assert directory.checkpoint("replication-offset-checkpoint") == {("orders", 0): 8, ("orders", 1): 0}
    log.delete_records(3)
    directory.clock.pass_ms(60_000)
    first = log.first_segment_offset
    assert 0 < first < 3
    assert directory.checkpoint("log-start-offset-checkpoint") == {("orders", 0): 3}
    assert 0 < directory.checkpoint("recovery-point-offset-checkpoint")["orders", 0] < 8
    log.delete_records(log.first_segment_offset)
    directory.restart()
    assert directory.manager.get("orders", 0).log_start_offset == 3
    assert directory.checkpoint("recovery-point-offset-checkpoint")["orders", 0] == 8


def test_flush_ms_makes_appends_durable_in_time(tmp_path):
    directory = Directory(tmp_path, **{"flush.ms": "1000"})
    directory.catalog.create("orders", 1)
    log = directory.manager.get("orders", 0)
    log.append_records(values("a"))
    directory.clock.pass_ms(500)
    directory.manager.flush_due()
    assert log.recovery_point == 0
    directory.clock.pass_ms(500)
    directory.manager.flush_due()
    assert log.recovery_point == 1


def test_retention_runs_by_timer(tmp_path):
    directory = Directory(tmp_path, **{"retention.ms": "1000"})
    directory.catalog.create("orders", 1)
    log = directory.manager.get("orders", 0)
    log.append_records(values("a"))
    directory.clock.pass_ms(300_001)
    assert (log.log_start_offset, log.high_watermark) == (1, 1)


def test_a_topic_whose_logs_cannot_be_made_does_not_exist(directory):
    (directory.path / "orders-1").write_text("in the way")
    with pytest.raises(StorageError, match="orders-1"):
        directory.catalog.create("orders", 2)
    assert directory.catalog.by_name("orders") is None
    assert directory.manager.get("orders", 0) is None
    assert directory.folders() == []


def test_a_broken_checkpoint_only_costs_time(directory):
    directory.catalog.create("orders", 1)
    directory.manager.get("orders", 0).append_records(values("a"))
    directory.manager.close()
    (directory.path / "recovery-point-offset-checkpoint").write_text("0\n7\nnonsense")
    directory.start()
    assert all_values(directory.manager.get("orders", 0)) == ["a"]


def test_the_log_reader_reads_the_whole_directory(directory):
    topic = directory.catalog.create("orders", 2)
    log = directory.manager.get("orders", 1)
    for number in range(100):
        log.append_client(produced(f"v{number}", codec=number % 5))
    directory.manager.close()
    partitions = unite([scan_log_directory(str(directory.path))])
    (partition,) = [each for each in partitions if (each.topic, each.partition) == ("orders", 1)]
    assert partition.topic_id == topic.topic_id
    assert reader.readable_end(partition, include_uncommitted=False) == 100
    (split,) = reader.splits(partition, 0, 100, 1 << 30)
    chunks = list(reader.read_split(split))
    assert [chunk.problems.num_rows for chunk in chunks] == [0] * len(chunks)
    read = [value for chunk in chunks for value in chunk.records["value"].to_pylist()]
    assert read == [f"v{number}".encode() for number in range(100)]


COMPACTED = {"cleanup.policy": "compact", "segment.bytes": "400", "min.cleanable.dirty.ratio": "0.0"}


def fill(directory, name, rounds=60):
    log = directory.manager.get(name, 0)
    for number in range(rounds):
        log.append_records([Record(key=b"k", value=b"%d" % number)])
    return log


def offsets(log):
    return [record.offset for record in log.records(0, log.high_watermark)]


@pytest.fixture
def one_step_a_slice(monkeypatch):
    """What a large log does in slices, a small one does in steps."""
    monkeypatch.setattr(log_manager, "COMPACTION_SLICE_BYTES", 1)


def test_while_a_log_is_compacted_there_are_turns_for_all_else(directory, one_step_a_slice):
    directory.catalog.create("keyed", 1, configs=COMPACTED)
    directory.catalog.create("other", 1)
    log = fill(directory, "keyed")
    size = log.size_bytes
    directory.manager.compact_next()
    assert log.size_bytes == size, "it has only begun"
    assert log.append_records([Record(key=b"k", value=b"new")]) == 60
    assert len(offsets(log)) == 61
    directory.manager.get("other", 0).append_records(values("a"))
    directory.manager.compact_next()
    directory.clock.pass_ms(0)
    assert len(offsets(log)) < 10
    assert offsets(log)[-1] == 60
    assert directory.folders() == ["keyed-0", "other-0"]


@pytest.mark.parametrize("end", ["delete", "close"])
def test_a_compaction_under_way_ends_with_its_log(directory, one_step_a_slice, end):
    directory.catalog.create("keyed", 1, configs=COMPACTED)
    fill(directory, "keyed")
    directory.manager.compact_next()
    if end == "delete":
        directory.catalog.delete("keyed")
        directory.clock.pass_ms(0)
        assert directory.manager.get("keyed", 0) is None
        directory.catalog.create("keyed", 1, configs=COMPACTED)
        log = fill(directory, "keyed")
        directory.manager.compact_next()
        directory.clock.pass_ms(0)
        assert len(offsets(log)) < 10
    else:
        directory.restart()
        assert len(offsets(directory.manager.get("keyed", 0))) == 60
    assert not list(directory.path.glob("keyed-0/*.cleaned"))


def test_a_log_that_can_not_be_compacted_keeps_no_other_from_its_turn(directory, monkeypatch, caplog):
    for name in ("first", "second"):
        directory.catalog.create(name, 1, configs=COMPACTED)
        fill(directory, name)
    real = compaction.write_at

    def full(descriptor, data, position):
        if "first" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(28, "No space left on device")
        real(descriptor, data, position)

    monkeypatch.setattr(compaction, "write_at", full)
    directory.manager.compact_next()
    assert "first-0 can't be compacted: No space left on device" in caplog.text
    directory.manager.compact_next()
    assert offsets(directory.manager.get("first", 0))[-1] == 59
    assert len(offsets(directory.manager.get("second", 0))) < 10
    assert "second-0" not in caplog.text
