"""`records --early-draft`: control records of the early design, read from segments among records and markers."""

import json

import pytest

from sharelens.broker.ports import Record
from sharelens.broker.storage import record_batch
from sharelens.cli import main
from state_model.early_draft.records import encode
from tests.unit.state_model.early_draft.test_replay import DELTAS, FIRST

CONTROL = record_batch.CONTROL
START_MS = 1_790_000_000_000


def batch(offset, key, value, attributes=0):
    return record_batch.build(
        [Record(key=key, value=value, timestamp_ms=START_MS + offset)], base_offset=offset, attributes=attributes
    )


def written(folder, *damaged):
    """A log directory whose topic has records, a transaction marker, the draft's second example, and more."""
    parts = [batch(offset, b"k", b"v") for offset in range(129)]
    parts.append(
        record_batch.build_control(
            commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=0, now_ms=START_MS, base_offset=129
        )
    )
    records = [FIRST, *(delta for delta, _, _ in DELTAS.values())]
    parts += [batch(130 + number, *encode(record), CONTROL) for number, record in enumerate(records)]
    parts += [batch(138 + number, *pair, CONTROL) for number, pair in enumerate(damaged)]
    directory = folder / "orders-0"
    directory.mkdir(parents=True)
    (directory / "00000000000000000000.log").write_bytes(b"".join(parts))
    return str(folder)


def rows_of(capsys, *words):
    assert main(["records", "--early-draft", *words, "--output", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_control_records_of_the_draft_are_read_from_the_log_of_the_topic(tmp_path, capsys):
    rows = rows_of(capsys, "--log-dir", written(tmp_path / "logs"))
    assert [row["log_offset"] for row in rows] == list(range(130, 138))
    assert rows[0]["type"] == "SHARE_CHECKPOINT"
    assert (rows[0]["start_offset"], rows[0]["end_offset"], rows[0]["back_offset"]) == (100, 100, None)
    assert {row["type"] for row in rows[1:]} == {"SHARE_DELTA"}
    for row in rows[1:]:
        delta = DELTAS[row["log_offset"]][0]
        assert (row["group_id"], row["checkpoint_epoch"], row["back_offset"]) == ("G1", 1, delta.back_offset)
        assert [tuple(state.values()) for state in row["states"]] == [state[:4] for state in delta.states]


def test_a_control_record_that_cannot_be_decoded_is_a_row_with_the_reason(tmp_path, capsys):
    key, value = encode(FIRST)
    rows = rows_of(capsys, "--log-dir", written(tmp_path / "logs", (key, value[:-3])))
    assert rows[-1]["type"] == "SHARE_CHECKPOINT"
    assert rows[-1]["group_id"] is None
    assert "bytes" in rows[-1]["error"]
    assert all(row["error"] is None for row in rows[:-1])


def test_groups_and_partitions_are_chosen_as_elsewhere(tmp_path, capsys):
    logs = written(tmp_path / "logs")
    assert len(rows_of(capsys, "--log-dir", logs, "--group", "G1", "--topic", "orders:0")) == 8
    assert rows_of(capsys, "--log-dir", logs, "--group", "G2") == []


@pytest.mark.parametrize(
    ("words", "reason"),
    [(("--topic", "orders:1"), "no partition"), (("--from-offset", "3"), "takes --group, --topic and --partition")],
)
def test_what_cannot_be_meant_is_refused(words, reason, tmp_path, capsys):
    assert main(["records", "--early-draft", "--log-dir", written(tmp_path / "logs"), *words]) == 2
    assert reason in capsys.readouterr().err


def test_a_lake_has_no_such_records(tmp_path, capsys):
    assert main(["records", "--early-draft", "--lake", str(tmp_path)]) == 2
    assert "--log-dir" in capsys.readouterr().err
