"""The broker's storage opens folders that real brokers wrote: same offsets, epochs, producers, aborted transactions."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from sharelens.broker.storage import record_batch as rb
from sharelens.broker.storage.producer_state import ProducerStates
from sharelens.kafka_log.codecs import NAMES
from sharelens.kafka_log.text_files import parse_leader_epochs, parse_partition_offsets
from tests.datasets import dataset, scenarios
from tests.logs.broker_logs import open_log

pytestmark = pytest.mark.compat

INTERVAL_BYTES = 4096
DERIVED = (".index", ".timeindex", ".txnindex", ".snapshot")


def folders(name: str) -> list[Path]:
    return sorted(path.parent for path in (dataset(name) / "logs").glob("*/leader-epoch-checkpoint"))


def ends(name: str) -> dict[tuple[str, int], int]:
    path = dataset(name) / "logs" / "replication-offset-checkpoint"
    return parse_partition_offsets(path.read_text(), str(path))


def copied(folder: Path, target: Path) -> Path:
    """A copy of a partition without what can be derived from its batches."""
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(folder, target, ignore=shutil.ignore_patterns(*(f"*{suffix}" for suffix in DERIVED))))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", scenarios())
def test_a_partition_opens_with_the_end_and_epochs_that_kafka_has(name, tmp_path):
    opened_count = 0
    for folder in folders(name):
        topic, _, partition = folder.name.rpartition("-")
        log = open_log(copied(folder, tmp_path / "partition"), index_interval_bytes=INTERVAL_BYTES)
        assert log.high_watermark == ends(name)[topic, int(partition)], folder.name
        before = parse_leader_epochs((folder / "leader-epoch-checkpoint").read_text(), str(folder))
        kept_entries = [entry for entry in before if entry[1] < log.high_watermark]
        assert log.epochs.entries() == (*kept_entries, (before[-1][0] + 2, log.high_watermark)), folder.name
        log.close()
        opened_count += 1
    assert opened_count > 0


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", scenarios())
def test_offset_indexes_are_those_that_kafka_wrote(name, tmp_path):
    """A broker that was restarted counts from the beginning, so its entries lie elsewhere: one start only."""
    compared = 0
    for folder in folders(name):
        epochs = parse_leader_epochs((folder / "leader-epoch-checkpoint").read_text(), str(folder))
        if epochs != ((0, 0),):
            continue
        log = open_log(copied(folder, tmp_path / "partition"), index_interval_bytes=INTERVAL_BYTES)
        log.close()
        for path in folder.glob("*.index"):
            assert (tmp_path / "partition" / path.name).read_bytes() == path.read_bytes(), path
            compared += 1
    if name in ("basic", "big-small", "transactions"):
        assert compared > 0


def test_aborted_transactions_and_producers_are_those_that_kafka_wrote(tmp_path):
    indexes = producers = 0
    for folder in folders("transactions"):
        log = open_log(copied(folder, tmp_path / "partition"), index_interval_bytes=INTERVAL_BYTES)
        log.close()
        for path in folder.glob("*.txnindex"):
            ours = tmp_path / "partition" / path.name
            assert (ours.read_bytes() if ours.exists() else b"") == path.read_bytes(), path
            indexes += path.stat().st_size > 0
        last = max(folder.glob("*.snapshot"), default=None)
        if last is None or int(last.stem) != log.high_watermark:
            continue
        ours = ProducerStates.load(tmp_path / "partition" / last.name)
        theirs = ProducerStates.load(last)
        assert {key: described(entry) for key, entry in ours.items()} == {
            key: described(entry) for key, entry in theirs.items()
        }, last
        producers += len(theirs)
    assert indexes > 2
    assert producers > 2


def described(entry) -> tuple[object, ...]:
    return (
        entry.epoch, entry.coordinator_epoch, entry.last_timestamp_ms, entry.open_from,
        entry.batches[-1] if entry.batches else None,
    )  # fmt: skip


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", scenarios())
def test_batch_headers_and_records_are_what_kafka_printed_of_them(name):
    facts: dict[Path, list[dict[str, Any]]] = {}
    for line in (dataset(name) / "batches.jsonl").read_text().splitlines():
        fact = json.loads(line)
        folder = f"{fact['topic']}-{fact['partition']}"
        facts.setdefault(dataset(name) / "logs" / folder / fact["segment"], []).append(fact)
    assert facts
    for path, batches in facts.items():
        data = path.read_bytes()
        headers = {header.position: header for header in rb.split(data)}
        for fact in batches:
            header = headers[fact["position"]]
            assert printed(header) == {name: fact[name] for name in printed(header)}
            assert len(rb.parse(data, header)) == fact["count"]


def printed(header: rb.BatchHeader) -> dict[str, Any]:
    return {
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "sizeInBytes": header.size_bytes,
        "compression": NAMES[header.codec],
        "crc": header.crc,
        "maxTimestamp": header.max_timestamp_ms,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "baseSequence": header.base_sequence,
        "leaderEpoch": header.leader_epoch,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "count": header.record_count,
    }


def test_coordinators_batches_are_kafkas_to_the_byte(tmp_path):
    """Appended again, the records of a first epoch give the batches that Kafka wrote."""
    compared = 0
    for folder in folders("basic"):
        if not folder.name.startswith("__"):
            continue
        path = folder / f"{0:020d}.log"
        data = path.read_bytes()
        log = open_log(tmp_path / folder.name)
        for header in rb.split(data):
            if header.leader_epoch == 0:
                log.append_records(rb.parse(data, header), codec=header.codec, base_sequence=0)
                compared += 1
        ours = (tmp_path / folder.name / path.name).read_bytes()
        assert ours == data[: len(ours)]
    assert compared > 100
