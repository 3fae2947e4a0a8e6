"""What retention has cut, for those who look for the rows that are gone."""

import pytest

from jobs import retained


@pytest.mark.parametrize(
    ("table", "group"),
    [
        ("bronze.log_record", retained.BRONZE),
        ("silver.share_record", retained.SILVER),
        ("gold.delivery_history", retained.HISTORY),
    ],
)
def test_a_table_with_log_offsets_follows_the_cuts_of_its_layer_or_of_the_histories(table: str, group: str) -> None:
    assert retained.group_of(table) == group
