"""Which folders and files of a log directory count, and what is said of a directory that is none."""

import re
from pathlib import Path

import pytest

from sharelens.kafka_log.errors import CheckpointError, LogDirectoryError
from sharelens.kafka_log.layout import LogDirectory, scan_log_directory
from sharelens.kafka_log.union import unite
from state_model.uuids import ZERO_UUID
from tools.log_writer import writer

TOPIC_ID = "Fux62faITayNUQtdp4cGlg"


def put(place: Path, folder: str, *, bases: tuple[int, ...] = (0,)) -> Path:
    """A partition folder with one record a segment."""
    path = place / folder
    path.mkdir(parents=True)
    for base in bases:
        batch = writer.encode_batch(writer.record_columns([b"k"], [b"v"], [1]), base_offset=base)
        (path / f"{base:020d}.log").write_bytes(batch)
    return path


def names(directory: LogDirectory) -> list[tuple[str, int, str]]:
    return [(partition.topic, partition.partition, partition.status) for partition in directory.partitions]


def test_partitions_are_the_folders_with_a_topic_and_a_number(tmp_path: Path) -> None:
    for folder in ("orders-0", "orders-10", "my-topic-2", "__share_group_state-49", "a.b_c-1"):
        put(tmp_path, folder)
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "orders-0.txt").write_text("")
    (tmp_path / "notes-3").write_text("a file")
    assert names(scan_log_directory(str(tmp_path))) == [
        ("__share_group_state", 49, "live"),
        ("a.b_c", 1, "live"),
        ("my-topic", 2, "live"),
        ("orders", 0, "live"),
        ("orders", 10, "live"),
    ]


MARKED = (
    "orders-1.0f3a9c-future",
    "orders-2.0f3a9c-delete",
    "orders-3.0f3a9c-stray",
    "my-topic-4-delete",
)


def test_marked_folders_are_skipped_and_named(tmp_path: Path) -> None:
    for folder in ("orders-0", *MARKED):
        put(tmp_path, folder)
    directory = scan_log_directory(str(tmp_path))
    assert names(directory) == [("orders", 0, "live")]
    assert [line.split(":")[0] for line in directory.skipped] == sorted(MARKED)


def test_deleted_and_stray_folders_are_taken_when_asked_for_but_never_future_ones(tmp_path: Path) -> None:
    for folder in ("orders-0", *MARKED):
        put(tmp_path, folder)
    writer.write_checkpoints(tmp_path, high_watermarks={("orders", 0): 1, ("orders", 2): 0})
    directory = scan_log_directory(str(tmp_path), include_deleted=True)
    assert names(directory) == [
        ("my-topic", 4, "deleted"),
        ("orders", 0, "live"),
        ("orders", 2, "deleted"),
        ("orders", 3, "stray"),
    ]
    assert [line.split(":")[0] for line in directory.skipped] == ["orders-1.0f3a9c-future"]
    ends = {partition.partition: partition.committed_end for partition in directory.partitions}
    assert ends == {4: None, 0: 1, 2: None, 3: None}


def test_files_that_are_no_longer_or_not_yet_segments_are_skipped(tmp_path: Path) -> None:
    folder = put(tmp_path, "orders-0", bases=(0, 7))
    for name in (
        "00000000000000000003.log.deleted",
        "00000000000000000004.log.cleaned",
        "00000000000000000005.log.swap",
        "00000000000000000006.snapshot",
        "5.log",
        "00000000000000000007.index",
    ):
        (folder / name).write_bytes(bytes(8))
    (partition,) = scan_log_directory(str(tmp_path)).partitions
    assert [segment.base_offset for segment in partition.segments] == [0, 7]
    assert [segment.index is not None for segment in partition.segments] == [False, True]


@pytest.mark.parametrize(
    ("line", "log_start", "remote"),
    [(None, 5, False), (9, 9, False), (5, 5, False), (2, 2, True)],
)
def test_the_log_starts_where_the_checkpoint_says_else_at_the_first_segment(
    tmp_path: Path, line: int | None, log_start: int, remote: bool
) -> None:
    put(tmp_path, "orders-0", bases=(5, 12))
    writer.write_checkpoints(tmp_path, log_starts={} if line is None else {("orders", 0): line})
    (partition,) = scan_log_directory(str(tmp_path)).partitions
    assert (partition.log_start_offset, partition.remote_below) == (log_start, remote)
    assert partition.log_start_known


def test_the_log_of_a_partition_without_segments_starts_at_zero(tmp_path: Path) -> None:
    put(tmp_path, "orders-0", bases=())
    put(tmp_path, "orders-1")
    partition, _ = scan_log_directory(str(tmp_path)).partitions
    assert (partition.segments, partition.log_start_offset, partition.remote_below) == ((), 0, False)


@pytest.mark.parametrize(
    ("high_watermarks", "committed_end"),
    [(None, None), ({("other", 0): 4}, 0), ({("orders", 0): 4}, 4)],
)
def test_the_committed_end_is_the_checkpointed_high_watermark(
    tmp_path: Path, high_watermarks: dict[tuple[str, int], int] | None, committed_end: int | None
) -> None:
    put(tmp_path, "orders-0")
    writer.write_checkpoints(tmp_path, high_watermarks=high_watermarks)
    (partition,) = scan_log_directory(str(tmp_path)).partitions
    assert partition.committed_end == committed_end


def test_who_wrote_it_and_the_topic_ids_are_read(tmp_path: Path) -> None:
    folder = put(tmp_path, "orders-0")
    put(tmp_path, "payments-0")
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
    writer.write_meta(tmp_path, cluster_id="MkU3OEVBNTcwNTJENDM2Qg", node_id=3)
    directory = scan_log_directory(str(tmp_path))
    assert (directory.cluster_id, directory.node_id) == ("MkU3OEVBNTcwNTJENDM2Qg", 3)
    assert [partition.topic_id for partition in directory.partitions] == [TOPIC_ID, ZERO_UUID]
    assert str(tmp_path) in directory.source_id
    assert "3" in directory.source_id


@pytest.mark.parametrize("text", ["", "broken", "version: 0\ntopic_id: not-an-id", "\udcff"])
def test_a_user_topic_with_a_damaged_partition_metadata_loses_its_id_only(tmp_path: Path, text: str) -> None:
    damaged, sound = put(tmp_path, "orders-0"), put(tmp_path, "payments-0")
    (damaged / "partition.metadata").write_bytes(text.encode(errors="surrogateescape"))
    (sound / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
    directory = scan_log_directory(str(tmp_path))
    assert [(part.topic, part.topic_id) for part in directory.partitions] == [
        ("orders", ZERO_UUID),
        ("payments", TOPIC_ID),
    ]
    (line,) = directory.skipped
    assert line.startswith("orders-0/partition.metadata")
    assert "copy it again" in line


def test_another_partition_of_the_topic_still_tells_its_id(tmp_path: Path) -> None:
    (put(tmp_path, "orders-0") / "partition.metadata").write_text("broken")
    (put(tmp_path, "orders-1") / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
    partitions = unite([scan_log_directory(str(tmp_path))])
    assert [(part.topic, part.partition, part.topic_id) for part in partitions] == [
        ("orders", 0, TOPIC_ID),
        ("orders", 1, TOPIC_ID),
    ]


@pytest.mark.parametrize("topic", ["__share_group_state", "__consumer_offsets"])
@pytest.mark.parametrize("text", ["", "version: 0\n", "version: 0\ntopic_id: short\n"])
def test_an_internal_topic_with_a_damaged_partition_metadata_is_refused(tmp_path: Path, topic: str, text: str) -> None:
    path = put(tmp_path, f"{topic}-0") / "partition.metadata"
    path.write_text(text)
    with pytest.raises(CheckpointError, match=re.escape(str(path))):
        scan_log_directory(str(tmp_path))


def test_a_topic_filter_leaves_other_folders_alone(tmp_path: Path) -> None:
    put(tmp_path, "orders-0")
    other = put(tmp_path, "other-0")
    (other / "partition.metadata").write_text("broken")
    assert names(scan_log_directory(str(tmp_path), topics={"orders"})) == [("orders", 0, "live")]
    assert names(scan_log_directory(str(tmp_path), topics={"absent"})) == []


def refusal(place: Path | str) -> str:
    with pytest.raises(LogDirectoryError) as caught:
        scan_log_directory(str(place))
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_what_is_no_log_directory_is_refused_in_one_line(tmp_path: Path) -> None:
    assert "no such directory" in refusal(tmp_path / "absent")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "it is empty" in refusal(empty)
    file = tmp_path / "file"
    file.write_text("x")
    assert "not a directory" in refusal(file)
    other = tmp_path / "other"
    (other / "dbus-1").mkdir(parents=True)
    (other / "dbus-1" / "system.conf").write_text("")
    assert "TOPIC-N" in refusal(other)


def test_a_neighbour_of_the_right_directory_is_answered_with_the_right_one(tmp_path: Path) -> None:
    logs = tmp_path / "data" / "logs"
    folder = put(logs, "orders-0")
    assert f"give its parent, {logs}" in refusal(folder)
    assert f"one by one: {logs}" in refusal(tmp_path / "data")


@pytest.mark.parametrize(
    "text",
    ["garbage", "0\nx\n", "0\n2\norders 0 5\n", "0\n1\norders zero 5\n", f"0\n1\norders 0 {1 << 63}\n", "1\n0\n"],
)
def test_a_broken_checkpoint_is_named(tmp_path: Path, text: str) -> None:
    put(tmp_path, "orders-0")
    (tmp_path / "replication-offset-checkpoint").write_text(text)
    with pytest.raises(CheckpointError, match="replication-offset-checkpoint"):
        scan_log_directory(str(tmp_path))


def test_a_checkpoint_that_is_still_empty_has_no_lines(tmp_path: Path) -> None:
    put(tmp_path, "orders-0")
    (tmp_path / "replication-offset-checkpoint").write_text("")
    (partition,) = scan_log_directory(str(tmp_path)).partitions
    assert partition.committed_end == 0


def test_broken_leader_epochs_are_as_good_as_none(tmp_path: Path) -> None:
    folder = put(tmp_path, "orders-0")
    (folder / "leader-epoch-checkpoint").write_text("0\n2\n3 0\n1 9\n")
    (partition,) = scan_log_directory(str(tmp_path)).partitions
    assert partition.leader_epochs == ()
    (folder / "leader-epoch-checkpoint").write_text("0\n2\n1 0\n3 9\n")
    (partition,) = scan_log_directory(str(tmp_path)).partitions
    assert partition.leader_epochs == ((1, 0), (3, 9))
