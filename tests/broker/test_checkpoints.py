"""Checkpoints of a run: they are there, they change nothing, and our pipeline says the same."""

import json

import pytest

from sharelens.kafka_formats.messages.api_keys import ApiKey
from sharelens.workloads.checkpoints import EARLIEST, Checkpoints, _Coordinator
from sharelens.workloads.journal import JournalError
from sharelens.workloads.load import Amount
from sharelens.workloads.wire import UnreachableError, ask
from tests.broker.workload_runs import SETTINGS, checkpoints_of, compare_checkpoints, run_profiles
from tests.depths import in_soak

pytestmark = pytest.mark.broker

STATE_TOPIC = "__share_group_state"


def state_ends(bootstrap):
    partitions = [{"partition_index": index, "timestamp": -1} for index in range(4)]
    body = {"replica_id": -1, "topics": [{"name": STATE_TOPIC, "partitions": partitions}]}
    return [each.offset for each in ask(bootstrap, ApiKey.LIST_OFFSETS, 7, body).topics[0].partitions]


@pytest.mark.parametrize("version", ["4.4", *in_soak("4.3")])
def test_checkpoints_change_nothing_also_where_a_read_needs_the_right_leader_epoch(version, start_broker, tmp_path):
    settings = SETTINGS | {"offsets_topic_num_partitions": 4}
    broker = start_broker("--kafka-version", version, **settings)
    run_profiles(broker.bootstrap, tmp_path, ["offset-resets"], Amount(records=60))
    # Leader epochs rise by a restart, and go back in the state by the resets above.
    assert broker.stop() == 0
    broker = start_broker("--kafka-version", version, **settings)
    ends, path = state_ends(broker.bootstrap), tmp_path / "more.jsonl"
    checkpoints = Checkpoints(path, broker.bootstrap, "t-offset-resets", ["g-offset-resets", "nobody"])
    for _ in range(3):
        checkpoints.take("quiet", patience_s=30)
    checkpoints.close()
    assert state_ends(broker.bootstrap) == ends
    output = [json.loads(line) for line in path.read_text().splitlines()]
    assert [each["checkpoint"] for each in output] == [0, 1, 2]
    assert {(entry["group"], entry["read"]["errorCode"]) for each in output for entry in each["states"]} == {
        ("g-offset-resets", 0),
        ("nobody", 42),
    }
    assert broker.stop() == 0
    assert compare_checkpoints(broker.log_dir, checkpoints_of(tmp_path, "offset-resets"))["after"] == 3
    assert compare_checkpoints(broker.log_dir, path)["initialized"] == 3 * 2


def test_without_a_broker_no_checkpoint_is_written(tmp_path):
    path = tmp_path / "checkpoints.jsonl"
    checkpoints = Checkpoints(path, "127.0.0.1:1", "t", ["g"])
    checkpoints.take("quiet", patience_s=0.1)
    checkpoints.close()
    assert (checkpoints.taken_count, path.read_text()) == (0, "")


def test_a_broker_that_is_away_while_a_checkpoint_is_written_costs_none(monkeypatch, tmp_path):
    checkpoints = Checkpoints(tmp_path / "checkpoints.jsonl", "127.0.0.1:1", "t", ["g"])
    key = ("g", "id", 0)
    away = [True, True, False]

    def offsets(_: object, indexes, timestamp):
        if timestamp == EARLIEST and away.pop(0):
            raise UnreachableError("away")
        return dict.fromkeys(indexes, 7)

    monkeypatch.setattr(_Coordinator, "share_partitions", lambda *_: {key: 3})
    monkeypatch.setattr(_Coordinator, "answers", lambda _, keys: dict.fromkeys(keys, ()))
    monkeypatch.setattr(_Coordinator, "offsets", offsets)
    monkeypatch.setattr("sharelens.workloads.checkpoints.state_entry", lambda *_: {})
    checkpoints.take("after", patience_s=30)
    checkpoints.close()
    (line,) = (tmp_path / "checkpoints.jsonl").read_text().splitlines()
    assert (json.loads(line)["logEndOffsets"], away) == ({"3": 7}, [])


def test_checkpoints_are_never_written_over(tmp_path):
    (tmp_path / "checkpoints.jsonl").touch()
    with pytest.raises(JournalError, match="is there already"):
        Checkpoints(tmp_path / "checkpoints.jsonl", "127.0.0.1:1", "t", ["g"])


def test_the_comparison_fails_where_a_checkpoint_is_one_record_off(start_broker, tmp_path):
    broker = start_broker(**SETTINGS)
    run_profiles(broker.bootstrap, tmp_path, ["steady"], Amount(records=200))
    assert broker.stop() == 0
    path = checkpoints_of(tmp_path, "steady")
    compare_checkpoints(broker.log_dir, path)
    *_, last = map(json.loads, path.read_text().splitlines())
    ends = last["logEndOffsets"]
    wrong = [last | {"logEndOffsets": ends | {index: end - 1}} for index, end in ends.items() if end > 1]
    assert len(wrong) > 1
    for number, checkpoint in enumerate(wrong):
        copy = tmp_path / f"{number}.jsonl"
        copy.write_text(json.dumps(checkpoint) + "\n")
        with pytest.raises(AssertionError):
            compare_checkpoints(broker.log_dir, copy)
