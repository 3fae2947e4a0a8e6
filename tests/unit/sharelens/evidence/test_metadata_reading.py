"""Metadata logs that are cut, broken or cleaned: never a crash, what is missing is counted, snapshots fill in."""

import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from sharelens.evidence.metadata_events import MetadataHistory
from sharelens.evidence.metadata_reading import TooLargeError, read_metadata
from sharelens.kafka_log.errors import MixedClustersError
from sharelens.kafka_log.layout import scan_log_directory
from state_model.metadata.history import Validity
from state_model.metadata.records import NO_OP_VALUE
from state_model.uuids import uuid_text
from tests.datasets import dataset
from tests.logs.batch_files import batches_of
from tests.logs.metadata_logs import random_records, topic, write_metadata
from tools.log_writer.writer import encode_batch, record_columns

FOLDER = "__cluster_metadata-0"
FIRST_SEGMENT = "00000000000000000000.log"
END = 183
SECRETS = (b"Kst0re-Secret-rv_", b"Kst0re-Secret-rv_".hex().encode())


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the controller's log directory that a test may change."""
    return Path(shutil.copytree(dataset("metadata") / "node1", tmp_path / "node1"))


def read(*places: Path) -> MetadataHistory:
    history = read_metadata([scan_log_directory(str(place)) for place in places], max_bytes=1 << 24)
    assert history is not None
    return history


def values(rows: list[Validity]) -> dict[object, object]:
    """The values by key, without digests, which differ from reading to reading."""
    return {row.key: row.content.get("value", row.content) for row in rows if row.key[0] not in ("voters", "name")}


def remove(folder: Path, *names: str) -> None:
    for name in names:
        (folder / FOLDER / name).unlink()


def test_cleaned_log_starts_at_its_snapshot_and_ends_in_the_same_state(copied: Path) -> None:
    full_history = read(copied)
    remove(copied, FIRST_SEGMENT, "00000000000000000050-0000000001.checkpoint")
    cleaned = read(copied)
    assert cleaned.problems == []
    assert cleaned.first_ms is not None
    assert cleaned.has_beginning
    for offset in (99, 120, 151, END):
        assert values(cleaned.at(offset)) == values(full_history.at(offset))
    assert any(row.began_earlier for row in cleaned.validities)


def test_damaged_batch_makes_values_uncertain_until_the_next_snapshot(copied: Path) -> None:
    full_history = read(copied)
    segment = copied / FOLDER / FIRST_SEGMENT
    data = bytearray(segment.read_bytes())
    data[data.index(b"rv_pay.ments") + 1] ^= 0xFF
    segment.write_bytes(bytes(data))
    damaged = read(copied)
    assert dict(damaged.problems).keys() >= {"gap"}
    assert not all(row.is_certain for row in damaged.validities)
    assert values(damaged.at(END)) == values(full_history.at(END))


def test_lost_segment_without_a_snapshot_behind_it_is_a_gap(copied: Path) -> None:
    remove(copied, FIRST_SEGMENT, *(path.name for path in (copied / FOLDER).glob("*.checkpoint")))
    history = read(copied)
    assert dict(history.problems) == {"gap": 1}
    assert not history.has_beginning
    assert values(history.at(END))


def test_snapshot_alone_is_the_state(copied: Path) -> None:
    full_history = read(copied)
    remove(copied, FIRST_SEGMENT, "00000000000000000091.log")
    history = read(copied)
    assert history.end_offset == history.committed_end == 142
    assert values(history.at(142)) == values(full_history.at(142))


def test_unfinished_snapshot_is_not_used(copied: Path) -> None:
    newest = copied / FOLDER / "00000000000000000142-0000000001.checkpoint"
    newest.write_bytes(newest.read_bytes()[:-75])
    assert ("incomplete_snapshot", 1) in read(copied).problems
    remove(copied, FIRST_SEGMENT, "00000000000000000091.log")
    assert read(copied).end_offset == 99


def test_log_above_the_limit_is_refused(copied: Path) -> None:
    with pytest.raises(TooLargeError, match="--max-bytes"):
        read_metadata([scan_log_directory(str(copied))], max_bytes=1000)


def test_directories_of_two_clusters_are_refused(copied: Path) -> None:
    (copied / "meta.properties").write_text("cluster.id=other\nnode.id=1\n")
    with pytest.raises(MixedClustersError):
        read(copied, dataset("metadata") / "node2")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_random_damage_is_survived_and_shows_no_secret(copied: Path, seed: int) -> None:
    dice = random.Random(seed)
    files = sorted(path for path in (copied / FOLDER).iterdir() if path.suffix in (".log", ".checkpoint"))
    for path in dice.sample(files, 3):
        data = bytearray(path.read_bytes())
        for _ in range(dice.randrange(1, 30)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        path.write_bytes(bytes(data[: dice.randrange(len(data) // 2, len(data) + 1)]))
    history = read(copied)
    assert history.end_offset <= END
    text = repr(history).encode()
    assert not any(secret in text for secret in SECRETS)


@pytest.mark.slow
def test_records_with_valid_checksums_and_random_content_are_survived(tmp_path: Path) -> None:
    history = read(write_metadata(tmp_path / "random", random_records(dataset("metadata") / "node1", 2000)))
    assert history.end_offset == 2000
    assert {"truncated_value", "unknown_value_version"} <= dict(history.problems).keys()
    assert any(row.is_certain for row in history.validities)
    assert not any(secret in repr(history).encode() for secret in SECRETS)


def lines_run(work: Callable[[], object]) -> int:
    """How many lines of Python the work runs, each turn of a loop counted: what it costs, whatever the machine."""
    count = 0

    def trace(_: FrameType, event: str, __: object) -> Callable[..., Any]:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.slow
def test_the_cost_of_idle_records_and_of_unreadable_ones_grows_with_their_number(tmp_path: Path) -> None:
    def log_of(count: int) -> Path:
        names = [(number, topic(f"t{number}", uuid_text(number.to_bytes(16, "big")))) for number in range(1, count + 1)]
        records = names + [(9000, b"\x01\x06\x00")] * count + [(9000, NO_OP_VALUE)] * count
        return write_metadata(tmp_path / str(count), records)

    smaller, larger = log_of(200), log_of(400)
    history = read(larger)
    assert dict(history.problems) == {"unknown_value_version": 400}
    assert len([row for row in history.validities if row.key[0] == "topic"]) == 400
    assert lines_run(lambda: read(larger)) < 2.2 * lines_run(lambda: read(smaller))


def test_snapshot_with_a_record_of_a_later_version_is_used_without_it(copied: Path) -> None:
    full_history = read(copied)
    snapshot = copied / FOLDER / "00000000000000000142-0000000001.checkpoint"
    batches = batches_of(snapshot)
    of_later_version = encode_batch(record_columns([None], [b"\x01\x63\x00\x00"], [1]), base_offset=900, leader_epoch=1)
    snapshot.write_bytes(b"".join([*batches[:-1], of_later_version, footer_at(batches[-1], 901)]))
    remove(copied, FIRST_SEGMENT, "00000000000000000091.log")
    history = read(copied)
    assert dict(history.problems) == {"unknown_value_version": 1}
    assert values(history.at(142)) == values(full_history.at(142))


def footer_at(batch: bytes, offset: int) -> bytes:
    """The batch at another base offset, which its checksum does not cover."""
    return offset.to_bytes(8, "big") + batch[8:]
