"""Causes of rows of findings: the same in any order, and for rows that have causes already."""

import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.audit.columnar.explained import INVOLVED, of_rules, with_causes
from state_model.audit.columnar.finding_schema import FINDING
from state_model.audit.common_causes import GROUP_DELETED, RECORDS_LOST, SEQUENCES, TOPIC_DELETED
from state_model.audit.rule import GROUP_RECORD_RULES
from state_model.audit.table import BY_CODE, BY_ID
from state_model.topics import METADATA_TOPIC, OFFSETS_TOPIC, STATE_TOPIC
from tests.depths import examples


def finding(rule, group="g", partition=0, *, state_partition=0, offsets=(3, 9), extra_records=()):
    """A row of a finding whose violating record is the last of some of its log."""
    of_rule = BY_CODE[rule]
    is_of_group = of_rule.number in GROUP_RECORD_RULES
    topic = OFFSETS_TOPIC if is_of_group else STATE_TOPIC
    records = [{"topic": topic, "partition": state_partition, "offset": offset} for offset in offsets]
    return dict.fromkeys(FINDING.names) | {
        "severity": of_rule.severity or "info", "rule": rule, "number": of_rule.number, "title": of_rule.title,
        "group_id": group, "topic_id": "T", "partition": None if is_of_group else partition, "count": 1, "field": "f",
        "state_partition": None if is_of_group else state_partition, "first_log_offset": offsets[-1],
        "last_log_offset": offsets[-1], "first_seen_ms": 5, "last_seen_ms": 5, "expected": "1", "seen": "2",
        "impact": "none", "impact_text": "", "completeness": "complete", "records": [*records, *extra_records],
    }  # fmt: skip


def causes(*rows):
    return with_causes(pa.Table.from_pylist(list(rows), schema=FINDING)).column("cause_inferred").to_pylist()


@pytest.mark.parametrize("rule", sorted(SEQUENCES))
def test_the_record_before_the_violating_one_bounds_what_was_lost(rule):
    broken = [finding(rule, group, offsets=(1, 3, 9, 12)[: 3 + number % 2]) for number, group in enumerate("abc")]
    assert causes(*broken) == [None] * 3  # 3 to 9, and 9 to 12
    broken[1] = finding(rule, "b", offsets=(2, 4, 7))
    assert causes(*broken) == [RECORDS_LOST] * 3
    elsewhere = finding(rule, "b", offsets=(2, 4, 7), state_partition=1)
    assert causes(broken[0], elsewhere, broken[2]) == [None] * 3


def test_a_record_of_the_metadata_log_shows_that_a_topic_is_gone():
    removal = {"topic": METADATA_TOPIC, "partition": 0, "offset": 80}
    leftover_findings = [finding("state_without_group", group, extra_records=[removal]) for group in "ab"]
    assert causes(*leftover_findings) == [TOPIC_DELETED] * 2
    assert causes(*(row | {"records": row["records"][:-1]} for row in leftover_findings)) == [None] * 2


def test_a_part_of_the_rules_is_taken_behind_the_search_for_causes():
    rows = [finding("state_after_group_deletion", partition=number) for number in range(2)]
    table = with_causes(pa.Table.from_pylist([*rows, finding("stale_write")], schema=FINDING))
    assert of_rules(table, [680]).column("cause_inferred").to_pylist() == [GROUP_DELETED] * 2
    assert of_rules(table, []).num_rows == 0


ROWS = st.lists(
    st.builds(
        lambda rule, group, partition, at, size: finding(rule, group, partition, offsets=range(max(0, at - size), at)),
        st.sampled_from(sorted(BY_ID[rule].code for rule in INVOLVED)), st.sampled_from("abc"), st.integers(0, 1),
        st.integers(1, 9), st.integers(1, 4),
    ),
    max_size=12,
    unique_by=lambda row: (row["rule"], row["group_id"], row["partition"]),
)  # fmt: skip


@pytest.mark.slow
@given(ROWS, st.integers(0, 1 << 20))
@examples("table")
def test_order_and_former_causes_are_free(rows, seed):
    table = with_causes(pa.Table.from_pylist(rows, schema=FINDING))
    assert with_causes(table).equals(table)
    order = pa.array(random.Random(seed).sample(range(len(rows)), len(rows)), pa.int64())
    assert with_causes(table.take(order)).equals(table.take(order))
