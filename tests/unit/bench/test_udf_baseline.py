import pytest
from hypothesis import given

from bench.udf_baseline import DECODED, decoded_columns
from state_model.share_records import encode_record
from tests.logs.share_values import RECORDS, described


def as_rows(columns):
    """Structs by field name, as a table holds them."""
    batches, tags = columns["state_batches"], columns["unknown_tags"]
    names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    return columns | {
        "state_batches": None if batches is None else [dict(zip(names, batch, strict=True)) for batch in batches],
        "unknown_tags": [dict(zip(("batch_index", "tag", "data"), tag, strict=True)) for tag in tags],
    }


@given(RECORDS)
def test_the_udf_fills_the_columns_of_the_silver_table(record):
    key, value = encode_record(record)
    columns = decoded_columns(bytearray(key), None if value is None else bytearray(value))
    assert set(columns) == set(DECODED.names)
    assert as_rows(columns) == described(record) | {"record_bytes": len(key) + len(value or b"")}


@pytest.mark.parametrize(("key", "value"), [(b"\x00\x07", b""), (b"\x00", b""), (None, None)])
def test_what_the_udf_cannot_decode_is_no_row(key, value):
    assert decoded_columns(key, value) is None
