"""Numbers in the configuration that a streams group's record has."""

import pytest

from state_model.audit.streams.configurations import STANDBY_REPLICAS, standby_replicas
from state_model.audit.streams.history import StreamsRecord
from state_model.streams.records import METADATA


def of_group(*entries: tuple[str, str]) -> StreamsRecord:
    """The metadata record of a group with these entries of its configuration."""
    value = {"lastAssignmentConfigs": [{"key": key, "value": text} for key, text in entries]}
    return StreamsRecord(METADATA, None, value, log_offset=0, timestamp_ms=0)


@pytest.mark.parametrize(
    ("text", "replicas"),
    [
        ("0", 0),
        ("2", 2),
        ("999999999", 999_999_999),
        ("1000000000", None),
        ("-1", None),
        ("²", None),
        ("many", None),
        ("", None),
    ],
)
def test_standby_replicas_are_a_number_of_few_digits(text: str, replicas: int | None) -> None:
    assert standby_replicas(of_group((STANDBY_REPLICAS, text))) == replicas


def test_a_group_without_the_setting_has_no_number() -> None:
    assert standby_replicas(of_group(("other", "1"))) is None
    assert standby_replicas(of_group()) is None
