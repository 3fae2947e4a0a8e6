"""The recorded metadata log against what the broker's Admin API answered, its snapshots, and its dump."""

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sharelens.cli import main
from sharelens.evidence.metadata_events import MetadataHistory
from sharelens.evidence.metadata_reading import read_metadata
from sharelens.evidence.reading import read_whole
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.metadata_files import MetadataFiles, metadata_files
from state_model.group_records import camel_case
from state_model.metadata.events import Snapshot
from state_model.metadata.history import Timeline, Validity, topic_names
from state_model.metadata.records import decode_control, decode_record
from tests.datasets import dataset

NODES = ("node1", "node2")
PASSWORD = "Kst0re-Secret-rv_"
OWN_LAYER = {
    "TOPIC": "DYNAMIC_TOPIC_CONFIG",
    "GROUP": "DYNAMIC_GROUP_CONFIG",
    "CLIENT_METRICS": "DYNAMIC_CLIENT_METRICS_CONFIG",
}
VOLATILE = ("name", "voters")
"""Kinds of keys that a snapshot does not repeat as they are."""


def read(*nodes: str) -> MetadataHistory:
    history = read_metadata([scan_log_directory(str(dataset("metadata") / node)) for node in nodes], max_bytes=1 << 24)
    assert history is not None
    return history


def files_of(node: str) -> MetadataFiles:
    files = metadata_files([scan_log_directory(str(dataset("metadata") / node))])
    assert files is not None
    return files


def moments() -> list[dict[str, Any]]:
    with gzip.open(dataset("metadata") / "moments.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def own_settings(moment: Mapping[str, Any]) -> dict[tuple[str, str, str], str | None]:
    """The settings of the resources' own layer, as the broker answered them."""
    settings = {}
    for resource, values in moment["configs"].items():
        kind, _, name = resource.partition(":")
        layer = "DYNAMIC_BROKER_CONFIG" if name else "DYNAMIC_DEFAULT_BROKER_CONFIG"
        for key, entry in values.items():
            if entry["source"] == OWN_LAYER.get(kind, layer):
                settings[kind.lower(), name, key] = entry["value"]
    return settings


def settings_at(rows: list[Validity]) -> dict[tuple[str, ...], object]:
    return {tuple(map(str, row.key[1:])): row.content["value"] for row in rows if row.key[0] == "config"}


def topics_at(rows: list[Validity]) -> dict[str, Any]:
    names = topic_names(rows)
    topics: dict[str, Any] = {name: {"id": topic_id, "partitions": []} for topic_id, name in names.items()}
    for row in sorted((row for row in rows if row.key[0] == "partition"), key=lambda row: int(row.key[2])):
        content = {name: list(value) if isinstance(value, tuple) else value for name, value in row.content.items()}
        topics[names[str(row.key[1])]]["partitions"].append(
            {
                "partition": row.key[2],
                "leader": content["leader"],
                "replicas": content["replicas"],
                "isr": content["isr"],
                "elr": content["eligible_leader_replicas"],
                "lastKnownElr": content["last_known_elr"],
            }
        )
    return topics


@pytest.mark.parametrize("nodes", [("node1",), ("node2",), NODES])
def test_topics_settings_features_and_brokers_are_what_the_broker_answered_at_each_moment(
    nodes: tuple[str, ...],
) -> None:
    history = read(*nodes)
    assert history.problems == []
    compared = 0
    for moment in moments():
        end = moment["metadataEndOffset"]
        if end > history.end_offset:
            continue
        rows = history.at(end)
        answered = {
            name: {
                **topic,
                "partitions": [
                    {**part, "leader": -1 if part["leader"] is None else part["leader"]} for part in topic["partitions"]
                ],
            }
            for name, topic in moment["topics"].items()
        }
        assert topics_at(rows) == answered
        reached = {tuple(resource.lower().split(":", 1)) for resource in moment["configs"]}
        settings = settings_at(rows)
        assert {key: settings[key] for key in settings if (key[0], key[1].lower()) in reached} == own_settings(moment)
        levels = {row.key[1]: row.content["level"] for row in rows if row.key[0] == "feature"}
        assert levels == moment["features"]
        brokers = {row.key[1]: (row.content["rack"], row.content["fenced"]) for row in rows if row.key[0] == "broker"}
        assert brokers == {broker["id"]: (broker["rack"], broker["fenced"]) for broker in moment["brokers"]}
        compared += 1
    assert compared == (12 if nodes == ("node2",) else 16)


@pytest.mark.parametrize("node", NODES)
def test_each_snapshot_has_the_values_and_epochs_that_the_log_makes(node: str) -> None:
    history = read(*NODES)
    compared = 0
    for file in files_of(node).snapshots:
        if not file.end_offset:
            continue
        fresh = Timeline()
        fresh.take(Snapshot(end_offset=file.end_offset, timestamp_ms=1, records=tuple(records_of(file.partition))))
        expected = {row.key: content_of(row) for row in fresh.validities if row.key[0] not in VOLATILE}
        replayed_content = {
            row.key: content_of(row) for row in history.at(file.end_offset) if row.key[0] not in VOLATILE
        }
        assert replayed_content == expected
        epochs = [row.content["leader_epoch"] for row in fresh.validities if row.key[0] == "partition"]
        compared += sum(epoch != 0 for epoch in epochs)
    assert compared


def content_of(row: Validity) -> Mapping[str, object]:
    """The content without digests, which differ from reading to reading."""
    return {**row.content, "hidden": None} if row.key[0] == "config" else row.content


def records_of(partition: Any) -> Iterator[Any]:
    for chunk in read_whole(partition, include_uncommitted=True):
        assert chunk.problems.num_rows == 0
        for row in chunk.records.to_pylist():
            at = {"offset": row["offset"], "timestamp_ms": row["timestamp_ms"]}
            if row["is_control"]:
                yield decode_control(row["key"], row["value"], **at)
            else:
                yield decode_record(row["value"], digest_key=b"k", **at)


def printed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {camel_case(name): printed(entry) for name, entry in value.items() if name != "hidden"}
    return [printed(entry) for entry in value] if isinstance(value, tuple) else value


def dumped() -> dict[str, list[dict[str, Any]]]:
    """The payloads of data records that kafka-dump-log printed, by file."""
    files: dict[str, list[dict[str, Any]]] = {}
    with gzip.open(dataset("metadata") / "dump.txt.gz", "rt") as lines:
        for line in lines:
            if line.startswith("Dumping "):
                payloads = files.setdefault(line.split()[1].removesuffix(",").lstrip("./"), [])
            elif " payload: " in line:
                payloads.append(json.loads(line.partition(" payload: ")[2]))
    return files


def test_every_record_is_decoded_as_the_dump_tool_prints_it() -> None:
    by_file = dumped()
    expected = [
        payload
        for name in sorted(by_file)
        if name.startswith("node1") and name.endswith(".log")
        for payload in by_file[name]
    ]
    records = [record for record in records_of(files_of("node1").log) if not record.is_control]
    assert len(records) == len(expected) > 150
    compared_count = 0
    for record, payload in zip(records, expected, strict=True):
        assert (record.name, record.version) == (payload["type"], payload["version"])
        if record.value is None or record.value.get("hidden"):
            continue
        values = printed(record.value)
        assert {name: values[name] for name in payload["data"]} == payload["data"]
        compared_count += 1
    assert compared_count > 120


def secret_bytes() -> list[bytes]:
    """The keys of SCRAM users and the password that the recorded log has, each as plain bytes."""
    secrets = []
    for row in (
        row
        for chunk in read_whole(files_of("node1").log, include_uncommitted=True)
        for row in chunk.records.to_pylist()
    ):
        value = row["value"]
        if value[1:2] == b"\x0b":
            at = 4 + value[3]
            for _ in range(3):
                secrets.append(value[at + 1 : at + value[at]])
                at += value[at]
    return [PASSWORD.encode(), *secrets]


@pytest.mark.parametrize("form", ["text", "json", "csv"])
def test_no_secret_of_the_log_is_in_an_answer(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    secrets = secret_bytes()
    assert len(secrets) >= 7
    assert all(
        any(secret in path.read_bytes() for path in Path(dataset("metadata")).rglob("*.log")) for secret in secrets
    )
    assert main(["configurations", "--log-dir", str(dataset("metadata") / "node1"), "--output", form]) == 0
    out, err = capsys.readouterr()
    answer = (out + err).encode()
    assert b"ssl.keystore.password" in answer
    history = repr(read(*NODES)).encode()
    for secret in secrets:
        for text in (secret, secret.hex().encode(), repr(secret)[2:-1].encode()):
            assert text not in answer
            assert text not in history
