"""DescribeLogDirs: the answers of Kafka 4.3.1 to the same requests."""

import pytest

from sharelens.broker.handlers import log_dirs
from sharelens.broker.ports import Record
from tests.broker_parts.dispatched_broker import DispatchedBroker

DESCRIBE_LOG_DIRS, STORAGE_ERROR = 35, 56


@pytest.fixture
def broker(tmp_path):
    """Has a topic of two partitions, and records in the second one."""
    served = DispatchedBroker(tmp_path / "log")
    served.create("orders", 2)
    served.create("mail", 1)
    served.broker.logs.get("orders", 1).append_records([Record(key=None, value=b"v")])
    yield served
    served.close()


def described(broker, topics, version=4):
    answer = broker.call(DESCRIBE_LOG_DIRS, version, topics=topics)
    assert answer.get("error_code", 0) == 0
    (log_dir,) = answer["results"]
    return log_dir


def sizes(log_dir):
    """The size by topic and partition; each log is no future one and has no lag."""
    logs = [(topic["name"], each) for topic in log_dir["topics"] for each in topic["partitions"]]
    assert {(each["offset_lag"], each["is_future_key"]) for _, each in logs} <= {(0, False)}
    return {(name, each["partition_index"]): each["partition_size"] for name, each in logs}


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_sizes_are_those_of_the_segment_files(broker, version):
    log_dir = described(broker, None, version)
    (segment,) = (broker.broker.log_dir / "orders-1").glob("*.log")
    assert segment.stat().st_size > 0
    assert sizes(log_dir) == {("orders", 0): 0, ("orders", 1): segment.stat().st_size, ("mail", 0): 0}
    assert (log_dir["error_code"], log_dir["log_dir"]) == (0, str(broker.broker.log_dir.absolute()))


def test_only_requested_partitions_that_exist_are_described(broker):
    requested = [
        {"topic": "orders", "partitions": [0, 7]},
        {"topic": "unknown", "partitions": [0]},
        {"topic": "mail", "partitions": []},
        {"topic": "orders", "partitions": [0, 0]},
    ]
    assert list(sizes(described(broker, requested))) == [("orders", 0)]
    assert sizes(described(broker, [])) == {}


def test_the_space_of_the_file_system_is_known_since_version_4(broker):
    log_dir = described(broker, [])
    assert log_dir["total_bytes"] >= log_dir["usable_bytes"] > 0
    assert "total_bytes" not in described(broker, [], version=3)


def test_a_directory_that_the_system_does_not_show_has_an_error(broker, monkeypatch):
    def fail(path):
        raise OSError("the disk is gone")

    monkeypatch.setattr(log_dirs.shutil, "disk_usage", fail)
    log_dir = described(broker, None)
    assert (log_dir["error_code"], log_dir["topics"]) == (STORAGE_ERROR, [])
