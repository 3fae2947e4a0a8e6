"""A recording as a folder: copied logs, what Kafka's own classes print of them, moments, journal, versions."""

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from state_model.topics import OFFSETS_TOPIC
from tools.kafka_tools import KAFKA_VERSION
from tools.record_groups.cluster import Cluster
from tools.record_groups.moments import Recorder

CHECKPOINTS: Final = (
    "log-start-offset-checkpoint",
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
)
LEFT_OUT: Final = ("__transaction_state-",)
METADATA_LOG: Final = "__cluster_metadata-0"


def write_data_set(cluster: Cluster, recorder: Recorder, target: Path, description: str) -> None:
    """Write the files of a set; the cluster has stopped in order, its JVM has not."""
    logs = target / "logs"
    copied = _copy_logs(cluster.log_dir, logs)
    dump = list(_dumped(cluster.jvm, logs))
    records = [entry for kind, entry in dump if kind == "record"]
    _write_lines(target / "batches.jsonl", [entry for kind, entry in dump if kind == "batch"])
    _write_lines(target / "formatter-offsets.jsonl", records)
    _write_lines(target / "checkpoints.jsonl", recorder.moments)
    notes = [{"t": at_ms, "ev": "note", "note": text} for at_ms, text in recorder.notes]
    _write_lines(target / "journal.jsonl", notes)
    counts = Counter(map(_kind_of, records))
    _write_json(target / "record-counts.json", dict(sorted(counts.items())))
    meta = {
        "scenario": target.name,
        "kafkaVersion": KAFKA_VERSION,
        "description": description,
        "topicIds": _topic_ids(recorder.moments),
        "brokerConfig": {name: str(value) for name, value in sorted(cluster.settings.items())},
        "copiedPartitionDirs": copied,
        "command": f"python -m tools.record_groups FOLDER {target.name}",
    }
    _write_json(target / "meta.json", meta)


def _copy_logs(log_dir: Path, logs: Path) -> list[str]:
    """Copy the checkpoint files and all partitions with records but those of transactions; the copied names."""
    logs.mkdir()
    copied = []
    for folder in sorted(path for path in log_dir.iterdir() if path.is_dir()):
        has_records = any(path.stat().st_size for path in folder.glob("*.log"))
        if not has_records or folder.name.startswith(LEFT_OUT) or folder.name.endswith("-delete"):
            continue
        # Kafka writes an index over preallocated zeros, and cuts it at a clean end.
        shutil.copytree(folder, logs / folder.name)
        copied.append(folder.name)
    for name in CHECKPOINTS:
        shutil.copy(log_dir / name, logs / name)
    return copied


def _dumped(jvm: Any, logs: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each batch and each record of the groups' log, as Kafka's own reader and converters have them."""
    serde = jvm.org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde()
    for folder in sorted(logs.glob(f"{OFFSETS_TOPIC}-*")):
        partition = int(folder.name.rpartition("-")[2])
        for segment in sorted(folder.glob("*.log")):
            opened = jvm.org.apache.kafka.common.record.internal.FileRecords.open(jvm.java.io.File(str(segment)))
            for batch in opened.batches().iterator():
                yield "batch", _batch(batch, partition, segment.name)
                for record in batch.iterator():
                    yield (
                        "record",
                        {
                            "partition": partition,
                            "offset": record.offset(),
                            "timestamp": record.timestamp(),
                            **_content(jvm, serde, batch, record),
                        },
                    )
            opened.close()


def _batch(batch: Any, partition: int, segment: str) -> dict[str, Any]:
    return {
        "topic": OFFSETS_TOPIC, "partition": partition, "segment": segment, "position": batch.position(),
        "baseOffset": batch.baseOffset(), "lastOffset": batch.lastOffset(), "sizeInBytes": batch.sizeInBytes(),
        "magic": batch.magic(), "compression": str(batch.compressionType()).lower(), "crc": batch.checksum(),
        "crcValid": batch.isValid(), "maxTimestamp": batch.maxTimestamp(),
        "timestampType": str(batch.timestampType()), "producerId": batch.producerId(),
        "producerEpoch": batch.producerEpoch(), "baseSequence": batch.baseSequence(),
        "leaderEpoch": batch.partitionLeaderEpoch(), "transactional": batch.isTransactional(),
        "control": batch.isControlBatch(), "count": batch.countOrNull(),
    }  # fmt: skip


def _content(jvm: Any, serde: Any, batch: Any, record: Any) -> dict[str, Any]:
    if batch.isControlBatch():
        kind = jvm.org.apache.kafka.common.record.internal.ControlRecordType.parse(record.key())
        return {"control": str(kind), "producerId": batch.producerId()}
    converters = jvm.org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters
    decoded = serde.deserialize(record.key(), record.value())
    key, value = decoded.key(), decoded.value()
    content: dict[str, Any] = {
        "key": {"type": key.apiKey(), "data": json.loads(converters.writeRecordKeyAsJson(key).toString())},
        "value": None
        if value is None
        else {
            "version": value.version(),
            "data": json.loads(converters.writeRecordValueAsJson(value.message(), value.version()).toString()),
        },
    }
    if batch.isTransactional():
        content |= {"transactional": True, "producerId": batch.producerId(), "producerEpoch": batch.producerEpoch()}
    return content


def _kind_of(record: Mapping[str, Any]) -> str:
    if "control" in record:
        return f"{OFFSETS_TOPIC} control"
    value = record["value"]
    return f"{OFFSETS_TOPIC} key{record['key']['type']} " + ("tombstone" if value is None else f"v{value['version']}")


def _topic_ids(moments: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The ids that each topic had, in order."""
    ids: dict[str, list[str]] = {}
    for moment in moments:
        for name, topic in moment["topics"].items():
            topic_ids = ids.setdefault(name, [])
            if topic["id"] not in topic_ids:
                topic_ids.append(topic["id"])
    return ids


def _write_lines(path: Path, entries: Iterable[Mapping[str, Any]]) -> None:
    path.write_text(
        "".join(json.dumps(entry, separators=(",", ":"), ensure_ascii=False) + "\n" for entry in entries),
        encoding="utf-8",
    )


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
