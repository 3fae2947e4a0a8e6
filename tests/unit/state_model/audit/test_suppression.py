"""Suppressions: what entries may say, and which findings they cover."""

from datetime import date

import pyarrow as pa
import pytest

from state_model.audit.columnar.suppressed import suppressed_by
from state_model.audit.suppression import suppressions_of

ENTRY = {"rule": 62, "reason": "known", "until": "2026-12-31"}
SCHEMA = pa.schema(
    [
        ("rule", pa.string()),
        ("group_id", pa.string()),
        ("topic_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("state_partition", pa.int32()),
    ]
)


def covered(*rows, **place):
    findings = pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)
    return [index == 0 for index in suppressed_by(findings, suppressions_of([ENTRY | place]))]


def test_an_entry_covers_the_findings_of_its_rule_and_place():
    rule = "complete_count_too_small"
    rows = [
        (rule, "g", "id", "orders", 0, 7),
        (rule, "h", "id", None, 1, 8),
        (rule, None, None, None, None, 8),
        ("stale_write", "g", "id", "orders", 0, 7),
    ]
    assert covered(*rows) == [True, True, True, False]
    assert covered(*rows, group="g") == [True, False, False, False]
    assert covered(*rows, topic="id") == [True, True, False, False]
    assert covered(*rows, topic="orders") == [True, False, False, False]
    assert covered(*rows, topic="id", partition=1) == [False, True, False, False]
    assert covered(*rows, state_partition=8) == [False, True, True, False]


def test_a_number_covers_all_its_rules():
    (entry,) = suppressions_of([ENTRY | {"rule": 40}])
    assert entry.rules == ("acquired_state_written", "unknown_delivery_state", "archiving_before_4_4")


def test_a_suppression_holds_through_its_last_day():
    (entry,) = suppressions_of([ENTRY | {"until": date(2026, 12, 31)}])
    assert not entry.is_expired(date(2026, 12, 31))
    assert entry.is_expired(date(2027, 1, 1))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"rule": 99}, "entry 2: rule 99 is no rule"),
        ({"rule": 22}, "entry 2: rule 22 has never a finding"),
        ({"rule": None}, "entry 2: no rule"),
        ({"reason": None}, "entry 2: no reason"),
        ({"reason": " "}, "entry 2: reason is a text, not ' '"),
        ({"until": None}, "entry 2: no until"),
        ({"until": "soon"}, "entry 2: until is a day as 2026-12-31, not 'soon'"),
        ({"until": 20261231}, "entry 2: until is a day"),
        ({"group": 7}, "entry 2: group is a text, not 7"),
        ({"partition": -1}, "entry 2: partition is a number from 0 on, not -1"),
        ({"partition": True}, "entry 2: partition is a number"),
        ({"colour": "red"}, "entry 2: unknown key 'colour'; there are rule, group"),
    ],
)
def test_the_first_wrong_entry_is_named(entry, message):
    with pytest.raises(ValueError) as caught:
        suppressions_of([ENTRY, ENTRY | entry, {}])
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("entries", ["text", {"rule": 62}, 7, [7]])
def test_a_list_of_mappings_is_needed(entries):
    with pytest.raises(ValueError, match="suppressions are a list|entry 1: an entry is a mapping"):
        suppressions_of(entries)
