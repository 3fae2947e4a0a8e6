"""Numbers in the configuration that a streams group's record has."""

from typing import Any

import pytest

from state_model.audit.model_groups.history import ModelRecord
from state_model.audit.streams.configurations import STANDBY_REPLICAS, odd_member, standby_replicas
from state_model.audit.streams.history import History
from state_model.streams.records import MEMBER, METADATA


def of_group(*entries: tuple[str, str]) -> ModelRecord:
    """The metadata record of a group with these entries of its configuration."""
    value = {"lastAssignmentConfigs": [{"key": key, "value": text} for key, text in entries]}
    return ModelRecord(METADATA, None, value, log_offset=0, timestamp_ms=0)


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


@pytest.mark.parametrize(
    ("values", "pair"),
    [
        ({}, None),
        ({"rebalanceTimeoutMs": 0}, (1, 0)),
        ({"rebalanceTimeoutMs": -1}, (1, -1)),
        ({"processId": ""}, (1, 0)),
        ({"instanceId": "one"}, (1, 0)),
    ],
)
def test_a_member_has_a_process_a_timeout_and_no_instance(values: dict[str, Any], pair: tuple[int, int] | None) -> None:
    value = {"rebalanceTimeoutMs": 1, "processId": "p", "instanceId": None} | values
    odd = odd_member(History(), ModelRecord(MEMBER, "m", value, log_offset=0, timestamp_ms=0))
    assert (None if odd is None else odd.difference[1:3]) == pair
