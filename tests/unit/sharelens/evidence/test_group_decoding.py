"""Records of the group coordinator as rows: what becomes a row, a problem or a name of a topic."""

import json
from collections import Counter

import pyarrow as pa
import pytest

from sharelens.evidence.group_decoding import FEW, decode_groups
from state_model.group_schemas import RECORD_TYPES
from tests.consumer_group_vectors import CONSUMER_RECORDS, CONSUMER_VECTORS, KEYS
from tests.logs.log_rows import log_rows

GROUP_EPOCH = b"\0\x0b\0\2g1", bytes.fromhex("0000 00000004 1122334455667788 00")


@pytest.mark.parametrize("repetitions", [1, FEW], ids=["few", "many"])
def test_records_of_consumer_groups_are_rows(repetitions: int) -> None:
    tombstones = [(key, None) for key, _ in CONSUMER_RECORDS]
    keys, values = zip(*(repetitions * [GROUP_EPOCH]), *CONSUMER_RECORDS, *tombstones, strict=True)
    decoded = decode_groups(pa.Table.from_batches([log_rows(list(keys), list(values))]))
    assert (decoded.problems.num_rows, decoded.odd_records.num_rows) == (0, 0)
    counts = Counter(RECORD_TYPES[number].name for number, *_ in CONSUMER_VECTORS)
    expected = {name: 2 * count for name, count in counts.items()} | {"ShareGroupMetadata": repetitions}
    assert decoded.counts == expected
    rows = decoded.records.slice(repetitions).to_pylist()
    for row, (number, key, _, value) in zip(rows, CONSUMER_VECTORS, strict=False):
        fields = KEYS[key]
        assert (row["record_type"], row["value_version"], json.loads(row["value_json"])) == (number, 0, value)
        names = row["group_id"], row["member_id"], row["regular_expression"]
        assert names == (fields["groupId"], fields.get("memberId"), fields.get("regularExpression"))
    assert all(row["is_tombstone"] and row["value_json"] is None for row in rows[len(CONSUMER_VECTORS) :])
    assert {(row["topic"], row["source"]) for row in decoded.names.to_pylist()} == {("t", "group_record")}


@pytest.mark.parametrize("repetitions", [1, FEW], ids=["few", "many"])
def test_a_value_of_a_consumer_group_that_is_cut_short_is_a_problem(repetitions: int) -> None:
    cut = [(key, value[:3]) for key, value in CONSUMER_RECORDS]
    keys, values = zip(*(repetitions * [GROUP_EPOCH]), *cut, strict=True)
    decoded = decode_groups(pa.Table.from_batches([log_rows(list(keys), list(values))]))
    assert decoded.records.num_rows == repetitions
    assert decoded.problems.num_rows == decoded.odd_records.num_rows == len(cut)
