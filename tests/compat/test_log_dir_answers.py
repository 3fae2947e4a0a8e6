"""Instant answers from the recorded log directories against what the real brokers said, number by number."""

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sharelens.cli import main
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.output import table_name
from tests.datasets import KINDS, dataset, kinds_first, scenarios

pytestmark = pytest.mark.usefixtures("evidence_opened_once")

STATE_TOPIC = "__share_group_state"
UNINITIALIZED = 42
VALUE_FIELDS = {
    "snapshot_epoch": "snapshotEpoch",
    "state_epoch": "stateEpoch",
    "leader_epoch": "leaderEpoch",
    "start_offset": "startOffset",
    "create_timestamp_ms": "createTimestamp",
    "write_timestamp_ms": "writeTimestamp",
}
TYPES = {0: "snapshot", 1: "update"}
Json = dict[str, Any]
Ask = Callable[..., list[Json]]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Runs a command with --output json and returns its document; any exit code but 0 fails."""

    def rows_of(*words: str) -> list[Json]:
        code = main([*words, "--output", "json"])
        out, err = capsys.readouterr()
        assert code == 0, err
        document = json.loads(out)
        assert isinstance(document, list)
        return document

    return rows_of


def lines(path: Path) -> Iterator[Json]:
    packed = path.with_name(path.name + ".gz")
    with gzip.open(packed, "rt", encoding="utf-8") if packed.exists() else path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def per_offset(
    batches: Sequence[Json], first: str, last: str, state: str, count: str
) -> list[tuple[int, int, int, int]]:
    """Ranges with equal neighbours joined: the same for two lists that say the same of every offset."""
    joined: list[tuple[int, int, int, int]] = []
    for batch in sorted(batches, key=lambda batch: int(batch[first])):
        batch_range = (batch[first], batch[last], batch[state], batch[count])
        if joined and joined[-1][1] + 1 == batch_range[0] and joined[-1][2:] == batch_range[2:]:
            joined[-1] = (joined[-1][0], *batch_range[1:])
        else:
            joined.append(batch_range)
    return joined


def brokers_answer(entry: Json) -> Json | None:
    """What ReadShareGroupState and its summary said of one share partition; None where the broker knew none."""
    read, summary = entry["read"], entry["summary"]
    if read["errorCode"] == UNINITIALIZED:
        return None
    assert read["errorCode"] == 0
    assert summary["errorCode"] == 0
    assert (summary["stateEpoch"], summary["startOffset"]) == (read["stateEpoch"], read["startOffset"])
    return {
        "state_epoch": read["stateEpoch"],
        "leader_epoch": summary["leaderEpoch"],
        "start_offset": read["startOffset"],
        "delivery_complete_count": summary.get("deliveryCompleteCount"),
        "ranges": per_offset(read["stateBatches"], "firstOffset", "lastOffset", "deliveryState", "deliveryCount"),
    }


def our_answer(row: Json, broker: Json) -> Json:
    fields = ("state_epoch", "leader_epoch", "start_offset", "delivery_complete_count")
    our_fields = {name: row[name] for name in fields if name in broker}
    ranges = per_offset(row["state_batches"], "first_offset", "last_offset", "delivery_state", "delivery_count")
    assert len(ranges) == len(row["state_batches"]), "neighbours of equal state are joined in the answer"
    return our_fields | {"ranges": ranges}


def key_of(row: Json) -> tuple[str, str, int]:
    return row["group_id"], row["topic_id"], row["partition"]


def first_offsets(logs: Path) -> dict[int, int]:
    directory = scan_log_directory(str(logs), topics={STATE_TOPIC})
    return {part.partition: part.segments[0].base_offset for part in directory.partitions if part.segments}


def answerable(checkpoint: Json, first: dict[int, int]) -> bool:
    """Whether all that the broker's coordinator held at the checkpoint still lies in the segments."""
    return all(first.get(int(part), 0) <= start for part, start in checkpoint["logStartOffsets"].items())


def at_offsets(checkpoint: Json, first: dict[int, int]) -> str:
    ends = {int(part): end for part, end in checkpoint["logEndOffsets"].items() if int(part) in first}
    return ",".join(f"{part}:{end - 1}" for part, end in sorted(ends.items()))


def compare_states(checkpoint: Json, rows: list[Json]) -> int:
    """Compares all share partitions of a checkpoint; how many there were."""
    ours = {key_of(row): row for row in rows}
    assert len(ours) == len(rows)
    assert [key_of(row) for row in rows] == sorted(ours), "sorted by group, topic id, partition"
    for entry in checkpoint["states"]:
        key = (entry["group"], entry["topicId"], entry["partition"])
        broker = brokers_answer(entry)
        if broker is None:
            assert key not in ours, f"{key} is deleted or was never there"
            continue
        broker = {name: value for name, value in broker.items() if value is not None}
        assert our_answer(ours[key], broker) == broker, f"{key} at checkpoint {checkpoint['name']}"
        assert ours[key]["completeness"] == "complete"
    return len(checkpoint["states"])


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", scenarios())
def test_state_at_every_checkpoint_is_what_the_broker_answered(name: str, ask: Ask) -> None:
    logs = dataset(name) / "logs"
    first = first_offsets(logs)
    compared = 0
    for checkpoint in lines(dataset(name) / "checkpoints.jsonl"):
        if answerable(checkpoint, first):
            rows = ask("state", "--log-dir", str(logs), "--at-offset", at_offsets(checkpoint, first))
            compared += compare_states(checkpoint, rows)
    assert compared > 0


@pytest.mark.parametrize("name", scenarios())
def test_state_now_is_the_brokers_last_answer(name: str, ask: Ask) -> None:
    *_, last = lines(dataset(name) / "checkpoints.jsonl")
    assert compare_states(last, ask("state", "--log-dir", str(dataset(name) / "logs"))) > 0


def formatted(line: Json) -> Json:
    """A record of Kafka's own formatter under our names."""
    key, value = line["key"], line["value"]
    data = {} if value is None else value["data"]
    batches = data.get("stateBatches")
    count = None if value is None else data.get("deliveryCompleteCount", -1)
    return {
        "state_partition": line["partition"],
        "log_offset": line["offset"],
        "timestamp_ms": line["timestamp"],
        "type": "tombstone" if value is None else TYPES[key["type"]],
        "group_id": key["data"]["groupId"],
        "topic_id": key["data"]["topicId"],
        "partition": key["data"]["partition"],
        **{ours: data.get(kafkas) for ours, kafkas in VALUE_FIELDS.items()},
        "delivery_complete_count": count,
        "state_batches": batches if batches is None else [tuple(batch.values()) for batch in batches],
    }


def in_log_order(rows: Iterator[Json]) -> list[Json]:
    return sorted(rows, key=lambda row: (row["state_partition"], row["log_offset"]))


def plain_batches(row: Json) -> Json:
    """A record of ours with its state batches as tuples, without the names of delivery states."""
    fields = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    batches = row["state_batches"]
    return row | {"state_batches": batches and [tuple(batch[name] for name in fields) for batch in batches]}


@pytest.mark.parametrize("name", kinds_first(KINDS))
def test_records_are_what_kafkas_formatter_prints(name: str, ask: Ask) -> None:
    rows = ask("records", "--log-dir", str(dataset(name) / "logs"))
    expected = in_log_order(map(formatted, lines(dataset(name) / "formatter.jsonl")))
    assert len(rows) == len(expected) > 0
    for row, expected_row in zip(rows, expected, strict=True):
        assert plain_batches(row) == expected_row


def test_the_recorded_sets_cover_deletion_resets_and_pruning() -> None:
    """So that the comparisons above mean something."""
    entries = [
        entry
        for name in scenarios()
        for checkpoint in lines(dataset(name) / "checkpoints.jsonl")
        for entry in checkpoint["states"]
    ]
    assert sum(brokers_answer(entry) is None for entry in entries) >= 20
    assert any(first_offsets(dataset(name) / "logs").get(0, 0) > 0 for name in scenarios())


COPIES = [("logs-live", "live"), ("logs-crashed", "crashed"), ("logs", ".")]


@pytest.mark.parametrize(("copy", "dump"), COPIES)
def test_a_copy_taken_at_any_moment_holds_a_prefix(copy: str, dump: str, ask: Ask) -> None:
    """Copies of a broker's directory while it wrote, after it was killed, and after it came back."""
    folder = dataset("crash")
    whole_log = [plain_batches(row) for row in ask("records", "--log-dir", str(folder / copy), "--include-uncommitted")]
    assert whole_log == in_log_order(map(formatted, lines(folder / dump / "formatter.jsonl")))
    batches = [plain_batches(row) for row in ask("records", "--log-dir", str(folder / copy))]
    for partition in {row["state_partition"] for row in whole_log}:
        partition_rows = [row for row in batches if row["state_partition"] == partition]
        assert (
            partition_rows == [row for row in whole_log if row["state_partition"] == partition][: len(partition_rows)]
        )
    if copy == "logs":
        assert batches == whole_log, "a broker that stopped cleanly has committed everything"
    else:
        assert len(batches) < len(whole_log)


def test_copies_in_any_order_are_one_log(ask: Ask) -> None:
    folder = dataset("crash")
    directories = [str(folder / copy) for copy, _ in COPIES]
    states = {}
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        words = [word for number in order for word in ("--log-dir", directories[number])]
        states[order] = (ask("records", *words), ask("state", *words))
    assert len({json.dumps(answer) for answer in states.values()}) == 1
    assert states[0, 1, 2] == (ask("records", "--log-dir", directories[2]), ask("state", "--log-dir", directories[2]))


@pytest.mark.parametrize("name", ["edge", "edge44"])
def test_hostile_names_that_a_broker_accepted_stay_one_word_of_one_line(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = str(dataset(name) / "logs")
    assert main(["state", "--log-dir", logs, "--output", "json"]) == 0
    groups = {row["group_id"] for row in json.loads(capsys.readouterr().out)}
    assert any(not group.isprintable() for group in groups)
    assert any(" " in group for group in groups)
    assert main(["state", "--log-dir", logs]) == 0
    _, *rows, _ = capsys.readouterr().out.splitlines()
    assert all(line.isprintable() for line in rows)
    for group in groups:
        assert any(line.startswith(table_name(group) + " ") for line in rows), group
    for group in groups:
        assert main(["state", "--log-dir", logs, "--group", group, "--output", "json"]) == 0
        assert {row["group_id"] for row in json.loads(capsys.readouterr().out)} == {group}
