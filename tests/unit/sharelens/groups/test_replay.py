"""The order of records of groups, and records of share groups whose value has an unknown version."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sharelens.groups.members import assigned as assigned_members
from sharelens.groups.replay import decoded, in_log_order
from sharelens.groups.summary import groups
from sharelens.measures.deletions import deleted_by
from sharelens.measures.schemas import LIFE
from sharelens.questions.timelines.entries import group_entries
from tests.logs.group_logs import assigned, epoch, group_log, initialized, joined

READABLE_ENTRIES = (joined("m"), assigned("m", 2, 0), initialized(0), epoch(2))
UNKNOWN = (joined("n"), assigned("m", 3), initialized(), epoch(3))
LOG = group_log(*READABLE_ENTRIES, *UNKNOWN, undecoded=(4, 5, 6, 7))


def test_only_rows_with_a_known_value_or_none_are_decoded() -> None:
    assert decoded(LOG).column("log_offset").to_pylist() == [0, 1, 2, 3]
    assert decoded(group_log((11, None, None))).num_rows == 1


def test_questions_leave_out_what_they_do_not_know() -> None:
    (row,) = groups(LOG).to_pylist()
    assert (row["group_epoch"], row["member_count"], row["completeness_reason"]) == (2, 1, "quarantined")
    assert [entry["event"] for entry in group_entries(LOG)] == ["member_joined", "rebalanced"]
    assert [span[0] for span in assigned_members(LOG, "T", 0).spans] == ["m"]
    assert deleted_by(LIFE.empty_table(), LOG).to_pylist() == []


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), unique=True), st.booleans())
def test_records_are_in_log_order(places: list[tuple[int, int]], is_sorted: bool) -> None:
    places = sorted(places) if is_sorted else places
    records = pa.table({"partition": [place[0] for place in places], "log_offset": [place[1] for place in places]})
    ordered = in_log_order(records)
    assert [*zip(*(column.to_pylist() for column in ordered.columns), strict=True)] == sorted(places)
    assert (ordered is records) == (places == sorted(places))
