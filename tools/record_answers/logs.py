"""The recorded logs: unpacking, the time range of a log, file times, and a copy that the light broker serves."""

import io
import json
import os
import re
import shutil
import struct
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cramjam

SUFFIX = ".tar.zst"
PARTITION_FOLDER = re.compile(r"(?P<topic>.+)-(?P<partition>\d{1,10})")
TOPIC_ID = re.compile(r"topic_id: (\S+)")
STATE_LOG = "__share_group_state-"
INTERNAL_LOGS = (STATE_LOG, "__consumer_offsets-", "__cluster_metadata-")
PARTITION_COUNTS = {
    "__consumer_offsets": "offsets.topic.num.partitions",
    "__share_group_state": "share.coordinator.state.topic.num.partitions",
}
BATCH_HEADER = struct.Struct(">qi15xqq")
"""Base offset, length, first and newest timestamp of a record batch (magic 2)."""
LENGTH_BYTES = 12
"""Bytes of a batch that its length does not count."""
COPIED_AFTER_MS = 60_000
"""Time from the newest record to the modification time of checkpoint files."""
NOW_AFTER_MS = 600_000
"""Time from the newest record to the value of --now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedLog:
    """One log directory of a data set: its name in a recording, the packed data set, the folder in it."""

    name: str
    packed: Path
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRange:
    """First and newest timestamp of a log, in epoch milliseconds."""

    first_ms: int
    last_ms: int

    @property
    def now_ms(self) -> int:
        """The moment for --now."""
        return self.last_ms + NOW_AFTER_MS

    def at(self, part: int, parts: int) -> int:
        """The moment after `part` of `parts` equal parts of the range."""
        return self.first_ms + (self.last_ms - self.first_ms) * part // parts


def recorded_logs(data: Path) -> list[RecordedLog]:
    """Every log directory of the packed data sets in a folder, sorted by name.

    `logs` has the name of its data set, `logs-live` and `node1` append their own: crash-live, metadata-node1.
    """
    logs = []
    for packed in sorted(data.glob(f"*{SUFFIX}")):
        data_set = packed.name.removesuffix(SUFFIX)
        with tarfile.open(fileobj=io.BytesIO(_content(packed)), mode="r:") as archive:
            names = [member.name.split("/") for member in archive]
        folders = {parts[0] for parts in names if len(parts) > 2 and PARTITION_FOLDER.fullmatch(parts[1])}
        for folder in sorted(folders):
            ending = folder.removeprefix("logs").strip("-")
            name = f"{data_set}-{ending}" if ending else data_set
            logs.append(RecordedLog(name=name, packed=packed, folder=folder))
    return sorted(logs, key=lambda log: log.name)


def unpack(packed: Path, target: Path) -> None:
    """Write the files of a packed data set below a folder. Raises ValueError for a name that points elsewhere."""
    with tarfile.open(fileobj=io.BytesIO(_content(packed)), mode="r:") as archive:
        for member in archive:
            path = target / member.name
            source = archive.extractfile(member)
            if source is None or not path.resolve().is_relative_to(target.resolve()):
                raise ValueError(f"{packed}: {member.name!r} is not a plain file below the folder")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(source.read())


def _content(packed: Path) -> bytes:
    return bytes(cramjam.zstd.decompress(packed.read_bytes()))


def batch_times(segment: bytes) -> Iterator[int]:
    """The first and the newest timestamp of each record batch of a segment; those below 1 are left out."""
    position = 0
    while position + BATCH_HEADER.size <= len(segment):
        _, length, first_ms, newest_ms = BATCH_HEADER.unpack_from(segment, position)
        if length <= 0:
            return
        yield from (time_ms for time_ms in (first_ms, newest_ms) if time_ms > 0)
        position += LENGTH_BYTES + length


def time_range(logs: Path) -> TimeRange:
    """The time range of a log directory: from the first record of the state log to the newest record of any log.

    Without a state log it begins with the first record of the other internal logs. Raises ValueError without a record.
    """
    times: dict[str, list[int]] = {}
    for path in logs.glob("*/*.log"):
        for name in INTERNAL_LOGS:
            if path.parent.name.startswith(name):
                times.setdefault(name, []).extend(batch_times(path.read_bytes()))
    stamps = [time_ms for of_log in times.values() for time_ms in of_log]
    if not stamps:
        raise ValueError(f"{logs}: no record in {', '.join(INTERNAL_LOGS)}")
    return TimeRange(first_ms=min(times.get(STATE_LOG) or stamps), last_ms=max(stamps))


def set_file_times(logs: Path, times: TimeRange, copied_after_ms: int = COPIED_AFTER_MS) -> None:
    """Set the modification time of every file. File times are evidence, and packed data sets have none.

    A segment gets the timestamp of its newest record, as a broker leaves it, and partition.metadata that of the first
    record; every other file a time behind the newest record of the log, by `copied_after_ms`.
    """
    for path in logs.rglob("*"):
        time_ms = times.last_ms + copied_after_ms
        if path.suffix == ".log" and path.is_file():
            stamps = [stamp for stamp in batch_times(path.read_bytes()) if stamp <= times.last_ms]
            time_ms = max(stamps, default=times.last_ms)
        elif path.name == "partition.metadata":
            time_ms = times.first_ms
        os.utime(path, ns=(time_ms * 1_000_000,) * 2)


def read_meta(data_set: Path) -> dict[str, Any]:
    """meta.json of an unpacked data set; empty where there is none."""
    path = data_set / "meta.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


def write_settings(meta: dict[str, Any], folder: Path) -> None:
    """Write the configuration of the recorded broker as broker.properties for the option --settings."""
    folder.mkdir()
    lines = [f"{name}={value}\n" for name, value in sorted(meta.get("brokerConfig", {}).items())]
    (folder / "broker.properties").write_text("".join(lines), encoding="utf-8")


def copy_for_broker(logs: Path, meta: dict[str, Any], target: Path) -> None:
    """Copy a log directory of a Kafka broker, with its file times, and add the files that mark one of the light broker.

    The light broker refuses the directory of another broker. It opens this copy: the mark and the catalogue name the
    topics of the partition folders, and a clean shutdown.
    """
    shutil.copytree(logs, target)
    topics = _topics(target, meta)
    catalogue = {
        "version": 1,
        "cluster_id": meta.get("clusterId", "AAAAAAAAAAAAAAAAAAAAAQ"),
        "next_producer_id": 0,
        "features": {},
        "broker_configs": {},
        "group_configs": {},
        "topics": topics,
    }
    (target / "meta.properties").unlink(missing_ok=True)
    (target / "sharelens.broker.json").write_text('{"format": 1}\n', encoding="utf-8")
    (target / "sharelens.catalog.json").write_text(json.dumps(catalogue), encoding="utf-8")
    (target / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":-1}', encoding="utf-8")


def _topics(logs: Path, meta: dict[str, Any]) -> list[dict[str, Any]]:
    """The topics of a log directory as the catalogue lists them, sorted by name."""
    partitions: dict[str, list[int]] = {}
    ids: dict[str, str] = {}
    for folder in sorted(path for path in logs.iterdir() if path.is_dir()):
        place = PARTITION_FOLDER.fullmatch(folder.name)
        metadata = folder / "partition.metadata"
        topic_id = TOPIC_ID.search(metadata.read_text(encoding="utf-8")) if metadata.is_file() else None
        if place is not None and topic_id is not None:
            partitions.setdefault(place["topic"], []).append(int(place["partition"]))
            ids[place["topic"]] = topic_id[1]
    config = meta.get("brokerConfig", {})
    return [
        {
            "name": topic,
            "topic_id": ids[topic],
            "partitions": max(max(numbers) + 1, int(config.get(PARTITION_COUNTS.get(topic, ""), 0))),
            "is_internal": topic.startswith("__"),
            "configs": {},
        }
        for topic, numbers in sorted(partitions.items())
    ]
