"""Kafka's DumpLogSegments on a partition that was rolled, cut, reopened: records, both indexes, producers, aborts."""

import re
from pathlib import Path

import pytest

from tests.broker.kafka_tools import DUMP_LOG_SEGMENTS, kafka_tool
from tests.logs.broker_logs import Clock, open_log, produced, values

pytestmark = pytest.mark.components

OPTIONS = {"segment_bytes": 12_000, "index_interval_bytes": 500}
RECORD = re.compile(r"\| offset: (\d+) .* payload: (.*)")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str | None]]:
    """A partition's folder, and what it holds by offset (None: a marker)."""
    folder, clock = tmp_path_factory.mktemp("logs") / "orders-0", Clock()
    log = open_log(folder, clock=clock, **OPTIONS)
    expected: list[str | None] = []
    for number in range(600):
        text = f"value {number}"
        clock.pass_ms(number % 3)
        if number % 4 == 0:
            log.append_records(values(text, text), codec=number % 5)
            expected += [text, text]
        else:
            log.append_client(
                produced(text, producer_id=7, sequence=len([n for n in range(number) if n % 4]), codec=number % 5,
                         timestamp_ms=clock.now_ms() - 50, transactional=number % 100 <= 50)
            )  # fmt: skip
            expected.append(text)
        if number % 100 == 50:
            log.append_marker(7, 0, commit=number % 200 == 50, coordinator_epoch=1)
            expected.append(None)
        if number == 300:
            log.abandon()
            with max(folder.glob("*.log")).open("ab") as torn:
                torn.write(b"\x00" * 40)
            log = open_log(folder, clock=clock, **OPTIONS)
    log.close()
    return folder, expected


def files(folder: Path, suffix: str) -> str:
    actual = sorted(path for path in folder.glob(f"*{suffix}") if path.stat().st_size)
    assert actual
    return ",".join(map(str, actual))


def test_every_record_is_printed(written):
    folder, expected = written
    assert len(list(folder.glob("*.log"))) > 3
    done = kafka_tool(DUMP_LOG_SEGMENTS, "--deep-iteration", "--print-data-log", "--files", files(folder, ".log"))
    assert "isvalid: false" not in done.out
    actual = {int(match[1]): match[2] for line in done.lines if (match := RECORD.match(line))}
    assert actual == {offset: text for offset, text in enumerate(expected) if text is not None}
    markers = re.findall(r"\| offset: (\d+) .*endTxnMarker: (COMMIT|ABORT) coordinatorEpoch: 1", done.out)
    assert [int(offset) for offset, _ in markers] == [at for at, text in enumerate(expected) if text is None]
    assert [kind for _, kind in markers] == ["COMMIT", "ABORT"] * 3


@pytest.mark.parametrize("check", ["--index-sanity-check", "--verify-index-only"])
def test_offset_indexes_hold(written, check):
    done = kafka_tool(DUMP_LOG_SEGMENTS, check, "--files", files(written[0], ".index"))
    if check == "--index-sanity-check":
        assert "passed sanity check" in done.out
    assert "Mismatches" not in done.out
    assert "failed" not in done.out


def test_time_indexes_hold(written):
    done = kafka_tool(DUMP_LOG_SEGMENTS, "--files", files(written[0], ".timeindex"))
    for complaint in ("Found timestamp mismatch", "Found out of order timestamp", "not be found"):
        assert complaint not in done.out
    assert done.out.count("timestamp: ") > 10


def test_aborted_transactions_and_producer_snapshots_are_read(written):
    folder, expected = written
    done = kafka_tool(DUMP_LOG_SEGMENTS, "--files", files(folder, ".txnindex"))
    printed = re.findall(r"producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+)", done.out)
    log = open_log(folder, is_clean=True, **OPTIONS)
    aborted = log.aborted_transactions(0, len(expected))
    assert [tuple(map(int, entry)) for entry in printed] == [
        (entry.producer_id, entry.first_offset, entry.last_offset) for entry in aborted
    ]
    assert len(aborted) == 3
    done = kafka_tool(DUMP_LOG_SEGMENTS, "--files", str(max(folder.glob("*.snapshot"))))
    assert "producerId: 7 producerEpoch: 0 coordinatorEpoch: 1" in done.out
    ((_, entry),) = log.producers.items()
    assert f"lastSequence: {entry.last_sequence}" in done.out
