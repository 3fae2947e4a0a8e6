"""The impact of violations: record offsets in both forms, and words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.audit.columnar.affected import affected_columns
from state_model.audit.columnar.violations import violation_rows
from state_model.audit.impact import NO_LAST, Impact, impact_text
from state_model.audit.rule import Difference, Field
from state_model.audit.table import BY_CODE, RULES

VALUES = st.integers(-(1 << 62), 1 << 62) | st.integers(-2, 5)
AT = st.just(-1) | st.integers(0, 1 << 62)


def affected(rule, difference):
    columns = affected_columns(
        violation_rows(
            rule=rule.id,
            field=int(difference.field),
            at=difference.at,
            expected=difference.expected,
            seen=difference.actual,
        )
    )
    return columns["first_offset"][0].as_py(), columns["last_offset"][0].as_py()


@given(st.sampled_from(RULES), st.builds(Difference, st.sampled_from(Field), VALUES, VALUES, AT))
def test_the_affected_offsets_are_those_of_the_reference(rule, difference):
    assert affected(rule, difference) == (rule.affected_offsets(difference) or (-1, NO_LAST))


@pytest.mark.parametrize(
    ("code", "difference", "offsets"),
    [
        ("start_offset_goes_back", Difference(Field.START_OFFSET, 10, 4), (4, 9)),
        ("start_offset_beyond_end", Difference(Field.START_OFFSET, 10, 14), (10, 13)),
        ("cold_snapshot_changes_state", Difference(Field.START_OFFSET, 10, 4), (4, NO_LAST)),
        ("cold_snapshot_changes_state", Difference(Field.OFFSET_STATE, 1, 2, at=7), (7, NO_LAST)),
        ("cold_snapshot_changes_state", Difference(Field.LEADER_EPOCH, 1, 2), None),
        ("invalid_start_offset", Difference(Field.START_OFFSET, 0, -1), None),
        ("snapshot_epoch_skips", Difference(Field.SNAPSHOT_EPOCH, 1, 3), None),
    ],
)
def test_the_difference_bounds_the_affected_offsets(code, difference, offsets):
    assert BY_CODE[code].affected_offsets(difference) == offsets


@pytest.mark.parametrize(
    ("impact", "first", "last", "text"),
    [
        (Impact.DELIVERED_AGAIN, 4, 9, "records 4-9 may have been delivered again after their outcome"),
        (Impact.LOST, 4, 4, "record 4 may never have been processed"),
        (Impact.STUCK, 7, None, "records from offset 7 on may wait without being delivered"),
        (Impact.STUCK, None, None, "records of the share partition may wait without being delivered"),
        (Impact.NONE, None, None, "no record is affected"),
    ],
)
def test_the_impact_in_words_names_the_offsets(impact, first, last, text):
    assert impact_text(impact, first, last, has_share_partition=True) == text


def test_a_finding_about_the_log_can_affect_all_its_share_partitions():
    text = impact_text(Impact.STUCK, None, None, has_share_partition=False)
    assert text.startswith("records of any share partition of the state partition ")
