"""Records of the group coordinator as rows: which records are rows, and which are only counted."""

from collections import Counter

import pyarrow as pa
import pytest

from sharelens.evidence.group_decoding import FEW, decode_groups
from state_model.group_schemas import RECORD_TYPES
from tests.consumer_group_vectors import CONSUMER_RECORDS, CONSUMER_VECTORS
from tests.logs.log_rows import log_rows

GROUP_EPOCH = b"\0\x0b\0\2g1", bytes.fromhex("0000 00000004 1122334455667788 00")


@pytest.mark.parametrize("repetitions", [1, FEW], ids=["few", "many"])
def test_records_of_consumer_groups_are_counted_and_are_no_rows(repetitions: int) -> None:
    malformed = [(key, value[:3]) for key, value in CONSUMER_RECORDS]
    tombstones = [(key, None) for key, _ in CONSUMER_RECORDS]
    keys, values = zip(*(repetitions * [GROUP_EPOCH]), *CONSUMER_RECORDS, *malformed, *tombstones, strict=True)
    decoded = decode_groups(pa.Table.from_batches([log_rows(list(keys), list(values))]))
    assert decoded.records.column("record_name").to_pylist() == ["ShareGroupMetadata"] * repetitions
    assert (decoded.problems.num_rows, decoded.odd_records.num_rows, decoded.names.num_rows) == (0, 0, 0)
    counts = Counter(RECORD_TYPES[number].name for number, *_ in CONSUMER_VECTORS)
    expected = {name: 3 * count for name, count in counts.items()} | {"ShareGroupMetadata": repetitions}
    assert decoded.counts == expected
